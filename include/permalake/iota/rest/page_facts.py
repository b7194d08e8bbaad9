"""What the explorer's pages show of messages, milestones, outputs and addresses, as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from permalake.iota.codec.reasons import described
from permalake.iota.codec.to_json import block_json, milestone_payload_json, output_json
from permalake.iota.rest import ledger
from permalake.iota.rest.balances import TooManyOutputsError, balance_of
from permalake.iota.rest.chain_states import CHAINS, life_of
from permalake.iota.rest.conditions import conditions_in_words
from permalake.iota.rest.content_words import (
    KINDS,
    metadata,
    payload_in_words,
    payload_type,
    tagged_data,
)
from permalake.iota.rest.holdings import OWNERS, holdings, since
from permalake.iota.rest.known_networks import coin
from permalake.iota.rest.messages import protocol_of
from permalake.iota.rest.page_moves import history_of_holdings, ledger_effect
from permalake.iota.rest.token_holdings import tokens_in, tokens_of
from permalake.lake.serving import Scan
from permalake.web.state import RequestLake
from permalake.web.synthetic import is_synthetic

_SECONDS = "%Y-%m-%d %H:%M:%S"
MOST = 200
"""Rows of a list on a page."""
MOST_OWNED = 80
"""Outputs of an address on its page, each with its conditions."""
_OWNERS = (*OWNERS.items(), ("alias_outputs", "governor"))
"""Tables of outputs, and columns that say whose they are."""


def noun_of(lake: RequestLake) -> str:
    """Return what the protocol calls a message."""
    return "block" if protocol_of(lake) == "stardust" else "message"


def words_of(lake: RequestLake, output: dict[str, Any]) -> list[str]:
    """Return the conditions of an output in words."""
    return conditions_in_words(output, _hrp(lake), coin(lake.settings, lake.network))


def message_facts(lake: RequestLake, row: ledger.Row) -> dict[str, Any]:
    """Return a message: its place, state, effect on the ledger, parents, children, JSON and bytes."""
    block = block_json(row["message"], protocol_of(lake))
    parents: list[str] = block.get("parents") or block.get("parentMessageIds") or []
    protocol = protocol_of(lake)
    is_conflicting = row["inclusion_state"] == 0
    return {
        "id": row["message_id"],
        "noun": noun_of(lake),
        **_place_of_message(lake, row),
        "state": ledger.STATES[row["inclusion_state"]],
        "conflict_reason": row["conflict_reason"] if is_conflicting else None,
        "conflict": described(row["conflict_reason"]) if is_conflicting else None,
        "payload": payload_in_words(payload_type(row["message"], protocol), protocol),
        "tagged": tagged_data(block),
        "parents": [parent.removeprefix("0x") for parent in parents],
        **_children(lake, row["message_id"]),
        "effect": ledger_effect(lake, row),
        "json": block,
        "bytes": row["message"].hex(),
    }


def _place_of_message(lake: RequestLake, row: ledger.Row) -> dict[str, Any]:
    """Return milestone, place and time; without a milestone the estimate, and when the head first had it."""
    if row["milestone_index"] is None:
        place = {"milestone_index": None, "white_flag_index": None}
        return place | {"est_milestone_index": row["est_milestone_index"], **time_of(row["seen_at"])}
    return {
        "milestone_index": row["milestone_index"],
        "white_flag_index": ledger.white_flag_index(lake, row),
        **time_of(ledger.milestone(lake, row["milestone_index"])["timestamp"]),
    }


def _children(lake: RequestLake, message_id: str) -> dict[str, Any]:
    """Return the first children of a message, and how many there are."""
    scan = lake.find("parents", "parent_id", message_id)
    rows = lake.rows(
        "SELECT message_id FROM parents WHERE parent_id = $id ORDER BY milestone_index, message_id "
        "LIMIT $most",
        {"id": message_id, "most": MOST + 1},
        parents=scan,
    )
    return {
        "children": [row["message_id"] for row in rows[:MOST]],
        "children_count": _count(lake, rows, "parents", scan, column="parent_id", value=message_id),
    }


def _count(
    lake: RequestLake, rows: Sequence[ledger.Row], table: str, scan: Scan, *, column: str, value: str
) -> int:
    """Return how many rows of a table have a value.

    ``rows``: the first of them, and one more than a page has where there are more.
    """
    if len(rows) <= MOST:
        return len(rows)
    [counted] = lake.rows(
        f"SELECT count(*) AS n FROM {table} WHERE {column} = $value",  # noqa: S608
        {"value": value},
        **{table: scan},
    )
    return int(counted["n"])


def time_of(moment: int | datetime) -> dict[str, Any]:
    """Return the time of a milestone (unix seconds, or as rows have it), and whether it is made up."""
    when = moment if isinstance(moment, datetime) else datetime.fromtimestamp(moment, UTC)
    return {"time": when.strftime("%Y-%m-%d %H:%M:%S UTC"), "is_synthetic": is_synthetic(when.date())}


def milestone_facts(lake: RequestLake, row: ledger.Row) -> dict[str, Any]:
    """Return a milestone: its messages in white-flag order, its ledger changes, JSON."""
    index = row["milestone_index"]
    messages = lake.rows(
        "SELECT message_id, message, inclusion_state, conflict_reason, count(*) OVER () AS of_milestone "
        "FROM messages WHERE milestone_index = $index ORDER BY white_flag_index LIMIT $most",
        {"index": index, "most": MOST},
        messages=Scan(milestones=[index]),
    )
    created, consumed = ledger.utxo_changes(lake, index)
    protocol = protocol_of(lake)
    return {
        "index": index,
        **time_of(row["timestamp"]),
        "message_id": row["message_id"],
        "messages": [
            {
                "id": message["message_id"],
                "payload": payload_in_words(payload_type(message["message"], protocol), protocol),
                "state": ledger.STATES[message["inclusion_state"]],
                "conflict": described(message["conflict_reason"])
                if message["inclusion_state"] == 0
                else None,
            }
            for message in messages
        ],
        "message_count": messages[0]["of_milestone"] if messages else 0,
        "created": created[:MOST],
        "created_count": len(created),
        "consumed": consumed[:MOST],
        "consumed_count": len(consumed),
        "json": milestone_payload_json(row["payload"], protocol_of(lake)),
    }


def output_facts(lake: RequestLake, row: ledger.Row) -> dict[str, Any]:
    """Return an output: amount, when it was created and spent, JSON and bytes."""
    spender = ledger.spender(lake, row)
    document = output_json(row["data"], protocol_of(lake))
    return {
        "id": row["output_id"],
        "kind": row["kind"],
        "kind_words": KINDS[row["kind"]],
        "amount": str(row["amount"]),
        "created_in": row["milestone_index"],
        **time_of(row["ms_timestamp"]),
        "transaction_id": row["output_id"][:64],
        "spent_in": spender and spender["milestone_index"],
        "spent_at": spender and time_of(spender["ms_timestamp"])["time"],
        "spent_by": spender and spender["transaction_id"],
        "chain": _chain_id(lake, row),
        "conditions": words_of(lake, document),
        "tokens": tokens_in(lake, document),
        "metadata": metadata(document),
        "json": document,
        "bytes": row["data"].hex(),
    }


def _hrp(lake: RequestLake) -> str:
    return lake.settings.network(lake.network).bech32_hrp


def _chain_id(lake: RequestLake, row: ledger.Row) -> str | None:
    """Return the id of the alias, NFT or foundry whose state an output is."""
    if row["kind"] not in CHAINS:
        return None
    table, column = f"{row['kind']}_outputs", CHAINS[row["kind"]][0]
    rows = lake.rows(
        f"SELECT {column} AS id FROM {table} WHERE output_id = $id",  # noqa: S608
        {"id": row["output_id"]},
        **{table: Scan(milestones=[row["milestone_index"]])},
    )
    return rows[0]["id"] if rows else None


def address_facts(lake: RequestLake, address: str) -> dict[str, Any]:
    """Return an address: its newest outputs of every kind, what of them is unspent, and its history."""
    last = ledger.ledger_index(lake)
    rows: list[ledger.Row] = []
    for table, owner in _OWNERS:
        scan = lake.find(table, owner, address)
        if not scan.is_empty:
            rows += lake.rows(
                f"SELECT output_id, '{table.removesuffix('_outputs')}' AS kind, amount, milestone_index, "  # noqa: S608
                f"ms_timestamp, data FROM {table} WHERE {owner} = $address AND milestone_index <= $last "
                "ORDER BY milestone_index DESC, output_id DESC LIMIT $most",
                {"address": address, "last": last, "most": MOST_OWNED + 1},
                **{table: scan},
            )
    newest = sorted({row["output_id"]: row for row in rows}.values(), key=_place, reverse=True)
    shown = newest[:MOST_OWNED]
    spenders = ledger.spent(lake, [row["output_id"] for row in shown])
    held = holdings(lake, address)
    return {
        "address": address,
        "balance": _balance(lake, address),
        "ledger_index": last,
        "is_seen": held.is_seen,
        "unspent": str(held.amount),
        "opening": str(held.opening),
        "since": since(lake),
        "native": tokens_of(lake, address, held),
        "complete": len(newest) <= MOST_OWNED,
        "outputs": [
            {
                "id": row["output_id"],
                "kind": row["kind"],
                "kind_words": KINDS[row["kind"]],
                "amount": str(row["amount"]),
                **life_of(row, spenders.get(row["output_id"])),
                "conditions": words_of(lake, output_json(row["data"], protocol_of(lake))),
            }
            for row in shown
        ],
        "history": history_of_holdings(lake, held, coin(lake.settings, lake.network)),
    }


def _balance(lake: RequestLake, address: str) -> dict[str, str] | None:
    """Return what an address owns, and what of it no timelock holds.

    None on Chrysalis, if it is unknown, and of more outputs than a request adds up.
    """
    try:
        account = balance_of(lake, address) if protocol_of(lake) == "stardust" else None
    except TooManyOutputsError:
        return None
    return {"total": str(account[0]), "available": str(account[1])} if account else None


def _place(row: ledger.Row) -> tuple[int, str]:
    return row["milestone_index"], row["output_id"]


def tag_facts(lake: RequestLake, tag: str) -> dict[str, Any]:
    """Return the newest messages with a tag, and how many there are."""
    scan = lake.find("tags", "tag", tag)
    rows = lake.rows(
        "SELECT message_id, milestone_index, ms_timestamp, inclusion_state FROM tags WHERE tag = $tag "
        "ORDER BY milestone_index DESC, message_id DESC LIMIT $most",
        {"tag": tag, "most": MOST + 1},
        tags=scan,
    )
    return {
        "tag": tag,
        "text": bytes.fromhex(tag).decode("utf-8", "replace"),
        "message_count": _count(lake, rows, "tags", scan, column="tag", value=tag),
        "messages": [
            {
                "id": row["message_id"],
                "milestone_index": row["milestone_index"],
                "time": row["ms_timestamp"].strftime(_SECONDS),
                "state": ledger.STATES[row["inclusion_state"]],
            }
            for row in rows[:MOST]
        ],
    }
