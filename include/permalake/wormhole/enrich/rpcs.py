"""The RPCs of the configured chains."""

from __future__ import annotations

from permalake.config import Settings
from permalake.net.http import Patience, Service
from permalake.wormhole.enrich.evm import Evm
from permalake.wormhole.enrich.jsonrpc import RpcNode, probe
from permalake.wormhole.enrich.questions import ChainRpc
from permalake.wormhole.enrich.solana import Solana
from permalake.wormhole.reference import load_reference

_FAMILIES: dict[str, type[Evm] | type[Solana]] = {"evm": Evm, "solana": Solana}


def rpcs(settings: Settings, patience: Patience | None = None) -> dict[int, ChainRpc]:
    """Return the RPCs by Wormhole chain id, for chains of a family whose protocol is known here."""
    known = load_reference(settings.wormhole.reference if settings.wormhole else None).chains
    found: dict[int, ChainRpc] = {}
    for number, section in settings.chains.items():
        chain = known.get(number)
        family = _FAMILIES.get(chain.family or "") if chain else None
        if chain and family:
            service = Service(
                f"chain {number}",
                section.rpc_url.get_secret_value(),
                section.rate_per_second,
                patience=patience,
                probe=probe(family.errors),
            )
            node = RpcNode(service, section.concurrency, f"chains.{number}.rpc_url", family.errors)
            found[number] = family(chain, node)
    return found
