"""The RPCs of the configuration's chains."""

from __future__ import annotations

from permalake.config import Settings
from permalake.net.http import Patience, Service
from permalake.wormhole.enrich.evm import Evm
from permalake.wormhole.enrich.jsonrpc import Node
from permalake.wormhole.enrich.questions import ChainRpc
from permalake.wormhole.enrich.solana import Solana
from permalake.wormhole.reference import load_reference

_KINDS: dict[str, type[Evm] | type[Solana]] = {"evm": Evm, "solana": Solana}


def rpcs(settings: Settings, patience: Patience | None = None) -> dict[int, ChainRpc]:
    """By Wormhole chain id, as far as the chain's family is one whose RPC we speak."""
    known = load_reference(settings.wormhole.reference if settings.wormhole else None).chains
    found: dict[int, ChainRpc] = {}
    for number, section in settings.chains.items():
        chain = known.get(number)
        kind = _KINDS.get(chain.family or "") if chain else None
        if chain and kind:
            service = Service(
                f"chain {number}",
                section.rpc_url.get_secret_value(),
                section.rate_per_second,
                patience=patience,
            )
            node = Node(service, section.concurrency, f"chains.{number}.rpc_url")
            found[number] = kind(chain, node)
    return found
