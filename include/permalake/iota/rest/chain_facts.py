"""What the explorer's pages show of aliases, NFTs and foundries: their states, and what belongs to them."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from permalake.iota.codec.outputs import ALIAS_ADDRESS, NFT_ADDRESS
from permalake.iota.codec.to_json import output_json
from permalake.iota.rest import ledger
from permalake.iota.rest.conditions import bech32_of, conditions_in_words
from permalake.iota.rest.content_words import metadata
from permalake.iota.rest.holdings import OWNERS
from permalake.iota.rest.known_networks import coin
from permalake.iota.rest.token_facts import token_facts
from permalake.web.problems import not_found
from permalake.web.state import RequestLake

_SECONDS = "%Y-%m-%d %H:%M:%S"
MOST = 100
"""States, and foundries of an alias, that a page lists."""
CHAINS = {"alias": ("alias_id", 32), "nft": ("nft_id", 32), "foundry": ("foundry_id", 38)}
"""Column of the id, and its bytes, by kind of output."""
_ADDRESS_TYPES = {"alias": ALIAS_ADDRESS, "nft": NFT_ADDRESS}


def is_known(lake: RequestLake, kind: str, chain_id: str) -> bool:
    """Return whether the lake holds an output with that id."""
    return bool(_states(lake, kind, chain_id, 1))


def chain_facts(lake: RequestLake, kind: str, chain_id: str) -> dict[str, Any]:
    """Return an alias, NFT or foundry with its states, newest first; 404 where none is published.

    A foundry that is older than the lake has no states; it is told as far as outputs hold its token.
    """
    hrp = lake.settings.network(lake.network).bech32_hrp
    states = _states(lake, kind, chain_id, MOST + 1)
    token = token_facts(lake, chain_id) if kind == "foundry" else None
    if not states and token is None:
        raise not_found(f"{kind} {chain_id}")
    spenders = ledger.spent(lake, [row["output_id"] for row in states[:MOST]])
    shown = _newest_first(states[:MOST], spenders)
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
        "foundries": _foundries(lake, address) if kind == "alias" and address else [],
        "ledger_index": ledger.ledger_index(lake),
        "conditions": conditions_in_words(newest, hrp, coin(lake.settings, lake.network)),
        "metadata": metadata(newest),
        "json": newest or None,
        "complete": len(states) <= MOST,
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


def _newest_first(states: list[ledger.Row], spenders: dict[str, ledger.Row]) -> list[ledger.Row]:
    """Return states by milestone, those of one milestone by who consumed whom."""
    ordered: list[ledger.Row] = []
    for _, group in groupby(states, key=lambda row: row["milestone_index"]):
        made = {row["output_id"][:64]: row for row in group}
        spent_by = {
            created: spenders[row["output_id"]]["transaction_id"]
            for created, row in made.items()
            if row["output_id"] in spenders
        }
        turns: list[ledger.Row] = []
        for first in made.keys() - set(spent_by.values()):
            at: str | None = first
            while at in made:
                turns.append(made[at])
                at = spent_by.get(at)
        ordered += reversed(turns)
    return ordered


def life_of(row: ledger.Row, spender: ledger.Row | None) -> dict[str, Any]:
    """Return when an output was created and spent, and by what: milestones, times in UTC, transactions."""
    return {
        "created_in": row["milestone_index"],
        "created_at": row["ms_timestamp"].strftime(_SECONDS),
        "created_by": row["output_id"][:64],
        "spent_in": spender and spender["milestone_index"],
        "spent_at": spender and spender["ms_timestamp"].strftime(_SECONDS),
        "spent_by": spender and spender["transaction_id"],
    }


def _states(lake: RequestLake, kind: str, chain_id: str, most: int) -> list[ledger.Row]:
    table, column = f"{kind}_outputs", CHAINS[kind][0]
    scan = lake.find(table, column, chain_id)
    if scan.is_empty:
        return []
    kind_columns = {"nft": ", issuer", "alias": ", state_index"}.get(kind, "")
    owner = OWNERS[table]
    return lake.rows(
        f"SELECT output_id, amount, milestone_index, ms_timestamp, data, {owner} AS owner{kind_columns} "  # noqa: S608
        f"FROM {table} "
        f"WHERE {column} = $id AND milestone_index <= $last ORDER BY milestone_index DESC, output_id DESC "
        "LIMIT $most",
        {"id": chain_id, "last": ledger.ledger_index(lake), "most": most},
        **{table: scan},
    )


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


def _foundries(lake: RequestLake, address: str) -> list[str]:
    """Return the ids of the foundries of an alias."""
    scan = lake.find("foundry_outputs", "address", address)
    if scan.is_empty:
        return []
    rows = lake.rows(
        "SELECT DISTINCT foundry_id FROM foundry_outputs WHERE address = $address "
        "ORDER BY foundry_id LIMIT $most",
        {"address": address, "most": MOST},
        foundry_outputs=scan,
    )
    return [row["foundry_id"] for row in rows]
