"""Where a page of Wormhole leads: to pages of ours, and to a chain's own explorer; applications in words."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from permalake.wormhole.contracts.chain_pages import EXPLORERS
from permalake.wormhole.reference import Reference

Links = list[tuple[str, str]]
"""Label and address of each link; the one without a label is ours, below the server's root."""
APPLICATIONS = {
    "PORTAL_TOKEN_BRIDGE": "token bridge (Portal)",
    "PORTAL_NFT_BRIDGE": "NFT bridge (Portal)",
    "CCTP_WORMHOLE_INTEGRATION": "Circle's CCTP",
    "CONNECT": "Connect",
    "ETH_BRIDGE": "ETH bridge",
    "GENERIC_RELAYER": "generic relayer",
    "MAYAN": "Mayan",
    "MAYAN_MCTP": "Mayan over CCTP",
    "MAYAN_SWIFT": "Mayan Swift",
    "NATIVE_TOKEN_TRANSFER": "native token transfers",
    "OMNISWAP": "Omniswap",
    "TBTC": "tBTC",
    "WORMCHAIN_GATEWAY_TRANSFER": "Wormchain gateway",
    "WORMHOLE_SETTLEMENTS": "Wormhole settlements",
    "UNKNOWN": "no application that is listed",
}
_PATHS = {"evm": ("tx", "address", "token"), "solana": ("tx", "address", "address")}
"""By family: paths of transactions, accounts and tokens in its explorers."""


def application_in_words(app_id: str) -> str:
    """Return the name of an application with its id."""
    return f"{APPLICATIONS[app_id]}, {app_id}" if app_id in APPLICATIONS else app_id


def searched(text: str | None) -> Links:
    """Return the link to what is found by a text."""
    return [("", f"/wormhole?q={quote(text, safe='')}")] if text else []


def of_transaction(reference: Reference, chain: int, transaction: str | None) -> Links:
    """Return the links of a transaction."""
    return [*searched(transaction), *_explored(reference, chain, 0, transaction)]


def of_account(reference: Reference, chain: int, address: str | None) -> Links:
    """Return the links of an address in its native form."""
    own_page = [("", f"/wormhole/address/{quote(address, safe='')}")] if address else []
    return [*own_page, *_explored(reference, chain, 1, address)]


def of_token(reference: Reference, chain: int, address: str, native: str | None) -> Links:
    """Return the links of a token; ``address``: its 32 bytes in hex."""
    return [("", f"/wormhole/token/{chain}/{address}"), *_explored(reference, chain, 2, native)]


def of_chain(chain: int) -> Links:
    """Return the links of a chain."""
    explorer = EXPLORERS.get(chain)
    return [("", f"/wormhole/chain/{chain}"), *([(_host(explorer), explorer)] if explorer else [])]


def _explored(reference: Reference, chain: int, what: int, value: str | None) -> Links:
    listed, explorer = reference.chains.get(chain), EXPLORERS.get(chain)
    paths = _PATHS.get(listed.family or "") if listed else None
    if not (value and explorer and paths):
        return []
    return [(_host(explorer), f"{explorer}/{paths[what]}/{quote(value, safe='')}")]


def _host(address: str) -> str:
    return urlsplit(address).netloc
