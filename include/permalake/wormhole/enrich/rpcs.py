"""The RPCs of the configured chains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from permalake.config import Settings
from permalake.config.services import ChainSettings
from permalake.net.http import Probe, RetryPolicy, Service
from permalake.wormhole.enrich.evm import Evm
from permalake.wormhole.enrich.jsonrpc import RpcNode, probe
from permalake.wormhole.enrich.questions import ChainRpc
from permalake.wormhole.enrich.registries import Aptos, Cosmos
from permalake.wormhole.enrich.solana import Solana
from permalake.wormhole.reference import ChainInfo, load_reference

_FAMILIES: dict[str, type[Evm | Solana | Cosmos]] = {"evm": Evm, "solana": Solana, "cosmos": Cosmos}


def rpcs(settings: Settings, retry_policy: RetryPolicy | None = None) -> dict[int, ChainRpc]:
    """Return the RPCs by Wormhole chain id, for chains of a family whose protocol is known here."""
    chains = load_reference(settings.wormhole.reference if settings.wormhole else None).chains
    by_chain: dict[int, ChainRpc] = {}
    for number, section in settings.chains.items():
        chain = chains.get(number)
        if chain and (rpc := _opened(chain, section, retry_policy)):
            by_chain[number] = rpc
    return by_chain


@contextmanager
def opened(settings: Settings, retry_policy: RetryPolicy | None = None) -> Iterator[dict[int, ChainRpc]]:
    """Give the RPCs by Wormhole chain id to a ``with`` block, and close them at its end."""
    by_chain = rpcs(settings, retry_policy)
    try:
        yield by_chain
    finally:
        for rpc in by_chain.values():
            rpc.close()


def _opened(chain: ChainInfo, section: ChainSettings, retry_policy: RetryPolicy | None) -> ChainRpc | None:
    name, setting, rate = f"chain {chain.id}", f"chains.{chain.id}.rpc_url", section.rate_per_second
    url = section.rpc_url.get_secret_value()
    if chain.family == "aptos":
        return Aptos(chain, Service(name, url, rate, retry_policy=retry_policy, probe=Probe("")), setting)
    family = _FAMILIES.get(chain.family or "")
    if family is None:
        return None
    service = Service(name, url, rate, retry_policy=retry_policy, probe=probe(family.errors))
    return family(chain, RpcNode(service, section.concurrency, setting, family.errors))
