"""The states of aliases, NFTs and foundries: outputs with their id, and since when each held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from permalake.iota.codec.to_json import output_json
from permalake.iota.rest import ledger
from permalake.iota.rest.holdings import OWNERS
from permalake.lake.serving import Scan
from permalake.web.state import RequestLake

_SECONDS = "%Y-%m-%d %H:%M:%S"
CHAINS = {"alias": ("alias_id", 32), "nft": ("nft_id", 32), "foundry": ("foundry_id", 38)}
"""Column of the id, and its bytes, by kind of output."""

_NO_ID = "0x" + 64 * "0"
"""The id in the output that creates an alias or NFT: it follows from that output's own."""


def states(lake: RequestLake, kind: str, chain_id: str, most: int) -> list[ledger.Row]:
    """Return the newest states of a chain, by milestone."""
    return _selected(
        lake, kind, chain_id, "ORDER BY milestone_index DESC, output_id DESC LIMIT $most", most=most
    )


def _selected(lake: RequestLake, kind: str, chain_id: str, tail: str, **bound: Any) -> list[ledger.Row]:
    table, column = f"{kind}_outputs", CHAINS[kind][0]
    scan = lake.find(table, column, chain_id)
    if scan.is_empty:
        return []
    kind_columns = {"nft": ", issuer", "alias": ", state_index"}.get(kind, "")
    owner = OWNERS[table]
    return lake.rows(
        f"SELECT output_id, amount, milestone_index, ms_timestamp, data, {owner} AS owner{kind_columns} "  # noqa: S608
        f"FROM {table} "
        f"WHERE {column} = $id AND milestone_index <= $last {tail}",
        {"id": chain_id, "last": ledger.ledger_index(lake), **bound},
        **{table: scan},
    )


def newest_first(states: list[ledger.Row], spenders: dict[str, ledger.Row]) -> list[ledger.Row]:
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


def moments(
    lake: RequestLake,
    kind: str,
    chain_id: str,
    shown: Sequence[ledger.Row],
    spenders: Mapping[str, ledger.Row],
    *,
    is_complete: bool,
) -> dict[str, Any]:
    """Return since when a chain is, and since when it is as its newest state says.

    Args:
        lake: The published state.
        kind: Its kind.
        chain_id: Its id.
        shown: Its newest states, the newest first.
        spenders: What consumed them, by output id.
        is_complete: Whether these are all that the lake holds.

    Returns:
        ``created``, ``state_since``, ``index_since`` (of an alias: its state index) and ``destroyed``, each
        ``{milestone_index, time, transaction_id}``. None is what has not happened, and a creation before the
        lake begins.
    """
    if not shown:
        return dict.fromkeys(("created", "state_since", "index_since", "destroyed"))
    newest = shown[0]
    first = shown[-1] if is_complete else _first(lake, kind, chain_id)
    end = spenders.get(newest["output_id"])
    return {
        "created": _moment(first) if _is_creation(lake, kind, first) else None,
        "state_since": _moment(newest),
        "index_since": _moment(_first_of_index(lake, chain_id, shown, is_complete=is_complete))
        if kind == "alias"
        else None,
        "destroyed": _moment(end, end["transaction_id"]) if end else None,
    }


def _moment(row: ledger.Row, transaction_id: str | None = None) -> dict[str, Any]:
    return {
        "milestone_index": row["milestone_index"],
        "time": row["ms_timestamp"].strftime(_SECONDS),
        "transaction_id": transaction_id or row["output_id"][:64],
    }


def _first_of_index(
    lake: RequestLake, alias_id: str, shown: Sequence[ledger.Row], *, is_complete: bool
) -> ledger.Row:
    """Return the state with which an alias got its state index; its governor leaves that as it is."""
    index = shown[0]["state_index"]
    with_index = [row for row in shown if row["state_index"] == index]
    if is_complete or len(with_index) < len(shown):
        return with_index[-1]
    return _first(lake, "alias", alias_id, "AND state_index = $index", index=index)


def _first(lake: RequestLake, kind: str, chain_id: str, condition: str = "", **bound: Any) -> ledger.Row:
    """Return the earliest state that meets a condition; where a milestone has several, the first one made."""
    rows = _selected(lake, kind, chain_id, f"{condition} ORDER BY milestone_index LIMIT 1000", **bound)
    of_milestone = [row for row in rows if row["milestone_index"] == rows[0]["milestone_index"]]
    return newest_first(of_milestone, ledger.spent(lake, [row["output_id"] for row in of_milestone]))[-1]


def _is_creation(lake: RequestLake, kind: str, state: ledger.Row) -> bool:
    """Return whether a state has none before it; False where that is not known."""
    if kind != "foundry":
        return bool(output_json(state["data"], "stardust")[f"{kind}Id"] == _NO_ID)
    consumed = lake.rows(
        "SELECT data FROM consumed_outputs WHERE transaction_id = $id AND kind = 'foundry'",
        {"id": state["output_id"][:64]},
        consumed_outputs=Scan(milestones=[state["milestone_index"]]),
    )
    place = _place(output_json(state["data"], "stardust"))
    return all(row["data"] and _place(output_json(row["data"], "stardust")) != place for row in consumed)


def _place(foundry: Mapping[str, Any]) -> tuple[int, Any]:
    """Return serial number and alias of a foundry, which its id consists of."""
    return foundry["serialNumber"], foundry["unlockConditions"]
