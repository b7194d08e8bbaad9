"""What the explorer's pages show of aliases, NFTs and foundries: their states, and what belongs to them."""

from __future__ import annotations

from typing import Any

from permalake.iota.codec.outputs import ALIAS_ADDRESS, NFT_ADDRESS
from permalake.iota.codec.to_json import output_json
from permalake.iota.rest import ledger
from permalake.iota.rest.chain_states import life_of, moments, newest_first, states
from permalake.iota.rest.conditions import bech32_of, conditions_in_words
from permalake.iota.rest.content_words import metadata
from permalake.iota.rest.holdings import since
from permalake.iota.rest.known_networks import coin
from permalake.iota.rest.token_facts import token_facts
from permalake.web.problems import not_found
from permalake.web.state import RequestLake

MOST = 100
"""States, and foundries of an alias, that a page lists."""
_ADDRESS_TYPES = {"alias": ALIAS_ADDRESS, "nft": NFT_ADDRESS}


def is_known(lake: RequestLake, kind: str, chain_id: str) -> bool:
    """Return whether the lake holds an output with that id."""
    return bool(states(lake, kind, chain_id, 1))


def chain_facts(lake: RequestLake, kind: str, chain_id: str) -> dict[str, Any]:
    """Return an alias, NFT or foundry with its states, newest first; 404 where none is published.

    A foundry that is older than the lake has no states; it is told as far as outputs hold its token.
    """
    hrp = lake.settings.network(lake.network).bech32_hrp
    chain_states = states(lake, kind, chain_id, MOST + 1)
    token = token_facts(lake, chain_id) if kind == "foundry" else None
    if not chain_states and token is None:
        raise not_found(f"{kind} {chain_id}")
    spenders = ledger.spent(lake, [row["output_id"] for row in chain_states[:MOST]])
    shown = newest_first(chain_states[:MOST], spenders)
    is_complete = len(chain_states) <= MOST
    newest = output_json(shown[0]["data"], "stardust") if shown else {}
    address = bech32_of(_ADDRESS_TYPES[kind], chain_id, hrp) if kind in _ADDRESS_TYPES else None
    return {
        "kind": kind,
        "id": chain_id,
        "address": address,
        "alias": bech32_of(ALIAS_ADDRESS, chain_id[2:66], hrp) if kind == "foundry" else None,
        "supply": _supply(newest) if kind == "foundry" and newest else None,
        "token": token,
        "issuer": shown[0].get("issuer") if shown else None,
        **_foundries(lake, address if kind == "alias" else None),
        "ledger_index": ledger.ledger_index(lake),
        "conditions": conditions_in_words(newest, hrp, coin(lake.settings, lake.network)),
        "metadata": metadata(newest),
        "json": newest or None,
        "complete": is_complete,
        "since": since(lake),
        **moments(lake, kind, chain_id, shown, spenders, is_complete=is_complete),
        "outputs": [
            {
                "id": row["output_id"],
                "amount": str(row["amount"]),
                **life_of(row, spenders.get(row["output_id"])),
                "state_index": row.get("state_index"),
                "owner": row["owner"],
            }
            for row in shown
        ],
    }


def _supply(foundry: dict[str, Any]) -> dict[str, Any]:
    """Return the supply of a native token (TIP-18) by a state of its foundry."""
    scheme = foundry["tokenScheme"]
    minted, melted, most = (
        int(scheme[name], 16) for name in ("mintedTokens", "meltedTokens", "maximumSupply")
    )
    return {
        "minted": str(minted),
        "melted": str(melted),
        "supply": str(minted - melted),
        "maximum": str(most),
    }


def _foundries(lake: RequestLake, address: str | None) -> dict[str, Any]:
    """Return the ids of the first foundries of an alias, and how many it has; None is no alias."""
    scan = lake.find("foundry_outputs", "address", address) if address else None
    if scan is None or scan.is_empty:
        return {"foundries": [], "foundry_count": 0}
    rows = lake.rows(
        "SELECT foundry_id, count(*) OVER () AS of_alias FROM foundry_outputs WHERE address = $address "
        "GROUP BY foundry_id ORDER BY foundry_id LIMIT $most",
        {"address": address, "most": MOST},
        foundry_outputs=scan,
    )
    return {
        "foundries": [row["foundry_id"] for row in rows],
        "foundry_count": rows[0]["of_alias"] if rows else 0,
    }
