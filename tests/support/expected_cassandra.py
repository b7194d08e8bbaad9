"""What Cassandra must hold for a synthetic tangle, worked out row by row from the expected lake rows."""

from __future__ import annotations

import datetime as dt
import json

from support import lake_frames

LISTED = {
    "basic_outputs": "extended",
    "alias_outputs": "alias",
    "foundry_outputs": "foundry",
    "nft_outputs": "nft",
    "legacy_outputs": "legacy",
}
ROLES = ("address", "sender", "issuer", "state_controller", "governor", "dust_return_address")


def stardust(folder, keep=lambda name, row: True):
    """Rows of every table of the Stardust schema, each a dict of the columns that are not null; ``keep``
    leaves lake rows out."""
    lake = {name: [row for row in lake_frames.read(folder / name) if keep(name, row)] for name in NAMES}
    time = {row["milestone_index"]: moment(row["timestamp"]) for row in lake["milestones"]}
    order = {row["message_id"]: (row["milestone_index"], row["white_flag_index"]) for row in lake["messages"]}
    carrier = {
        row["transaction_id"]: row["message_id"]
        for row in lake["transactions"]
        if row["inclusion_state"] == 1
    }
    unspent = {one["output_id"] for one in lake["ledger"][-1]["unspent"]}
    rows = {
        "messages": [
            {
                **pick(row, "message_id", "version", "milestone_index", "inclusion_state"),
                "message": raw(row["message"]),
                "conflict_reason": signed(row["conflict_reason"], 8),
            }
            for row in lake["messages"]
        ],
        "transactions": [{**without(row, "date"), "data": raw(row["data"])} for row in lake["transactions"]],
        "milestones": [
            {
                "milestone_index": row["milestone_index"],
                "message_id": row["message_id"] or "",
                "timestamp": row["timestamp"],
                "payload": raw(row["payload"]),
            }
            for row in lake["milestones"]
        ],
        "tags": [
            {
                **pick(row, "tag", "ms_range_id", "milestone_index", "message_id"),
                "ms_timestamp": time[row["milestone_index"]],
                "inclusion_state": bytes([row["inclusion_state"]]),
            }
            for row in lake["tags"]
        ],
        "parents": [
            {**without(row, "date"), "ms_timestamp": time[row["milestone_index"]]} for row in lake["parents"]
        ],
        "sync": [
            {**pick(row, "ms_range_id", "milestone_index"), "synced_by": 0, "logged_by": 0}
            for row in lake["ms_analytics"]
        ],
        "ms_analytics": [without(row, "date") for row in lake["ms_analytics"]],
        "address_analytics": [without(row, "date") for row in lake["address_analytics"]],
        "daily_analytics": [{**row, "date": day(row["date"])} for row in lake["daily_analytics"]],
        "date_cache": [{**row, "date": day(row["date"])} for row in lake["date_cache"]],
        "metrics_cache": [{**row, "date": day(row["date"])} for row in lake["metrics_cache"]],
        "tag_hints": hints(
            (row["tag"], kind, row["ms_range_id"])
            for name, kind in (
                ("tags", "tag"),
                ("basic_outputs", "ext_output"),
                ("nft_outputs", "nft_output"),
            )
            for row in lake[name]
            if row["tag"]
        ),
        "addresses_hints": [
            dict(zip(("address", "output_kind", "variant", "ms_range_id"), hint, strict=True))
            for hint in sorted(
                {
                    (row[role], kind, role, row["ms_range_id"])
                    for name, kind in LISTED.items()
                    for row in lake[name]
                    for role in ROLES
                    if row.get(role)
                }
            )
        ],
    }
    for name, key in OUTPUTS.items():
        last = {}
        for row in sorted(lake[name], key=lambda row: order[carrier[row["output_id"][:64]]]):
            last[row[key], row["milestone_index"]] = output(row, time)
        rows[name] = list(last.values())
    rows["legacy_outputs"] = [
        {**output(row, time), "is_used": row["output_id"] not in unspent} for row in lake["legacy_outputs"]
    ]
    return {name: [present(row) for row in listed] for name, listed in rows.items()}


def chrysalis(folder, size):
    """Rows of every table of the Chrysalis schema after one publish of all days into an empty store;
    ``v1.`` marks tables of the second keyspace."""
    facts = stardust(folder)
    lake = {name: lake_frames.read(folder / name) for name in ("messages", "parents")}
    parents = {}
    for row in lake["parents"]:
        parents.setdefault(row["message_id"], set()).add(row["parent_id"])
    addresses = [
        {
            "address": row["address"],
            "milestone_index": row["milestone_index"],
            "output_type": row["output_type"],
            "transaction_id": row["output_id"][:64],
            "idx": int.from_bytes(raw(row["output_id"][64:]), "little"),
            "amount": row["amount"],
            "address_type": 0,
            "inclusion_state": b"\x01",
            "updated_at": row["ms_timestamp"],
        }
        for row in facts["legacy_outputs"]
    ]
    indexes = [
        {**lookup(row), "indexation": row["tag"], "inclusion_state": row["inclusion_state"]}
        for row in facts["tags"]
    ]
    children = [
        {**lookup(row), "parent_id": row["parent_id"], "inclusion_state": bytes([row["inclusion_state"]])}
        for row in facts["parents"]
    ]
    by_output = ("milestone_index", "output_type", "transaction_id", "idx")
    by_message = ("milestone_index", "message_id")
    rows = {
        "addresses": partitioned(addresses, "address", by_output, size),
        "indexes": partitioned(indexes, "indexation", by_message, size),
        "v1.parents": partitioned(children, "parent_id", by_message, size),
        "v1.messages": [
            {
                "message_id": raw(row["message_id"]),
                "message": raw(row["message"]),
                "metadata": metadata(row, parents.get(row["message_id"], set())),
            }
            for row in lake["messages"]
        ],
        "v1.transactions": [
            {**row, "inclusion_state": bytes([row["inclusion_state"]])} for row in facts["transactions"]
        ],
        "v1.milestones": facts["milestones"],
        "v1.sync": [{**without(row, "ms_range_id"), "key": "permanode"} for row in facts["sync"]],
    }
    newest = {}
    for name, variant, key in (
        ("addresses", "address", "address"),
        ("indexes", "index", "indexation"),
        ("v1.parents", "parent", "parent_id"),
    ):
        for row in rows[name]:
            at = row[key], variant, row["partition_id"]
            newest[at] = max(newest.get(at, 0), row["milestone_index"])
    rows["hints"] = [
        {"hint": hint, "variant": variant, "partition_id": partition, "milestone_index": milestone}
        for (hint, variant, partition), milestone in newest.items()
    ]
    return rows


def lookup(row):
    return {**pick(row, "milestone_index", "message_id"), "updated_at": row["ms_timestamp"]}


def partitioned(rows, key, order, size):
    """The earliest partition that is not full, row by row in order of publishing."""
    filled = {}
    placed = []
    for row in sorted(rows, key=lambda row: tuple(row[name] for name in order)):
        place = filled[row[key]] = filled.get(row[key], -1) + 1
        placed.append({**row, "partition_id": place // size})
    return placed


def metadata(row, parents):
    told = {
        "messageId": row["message_id"],
        "parentMessageIds": sorted(parents),
        "isSolid": True,
        "referencedByMilestoneIndex": row["milestone_index"],
        "ledgerInclusionState": ["conflicting", "included", "noTransaction"][row["inclusion_state"]],
        "conflictReason": row["conflict_reason"] or None,
    }
    return json.dumps(present(told), separators=(",", ":")).encode()


OUTPUTS = {
    "basic_outputs": "output_id",
    "alias_outputs": "alias_id",
    "foundry_outputs": "foundry_id",
    "nft_outputs": "nft_id",
}
NAMES = (
    *OUTPUTS,
    "legacy_outputs",
    "messages",
    "transactions",
    "milestones",
    "tags",
    "parents",
    "ms_analytics",
    "address_analytics",
    "daily_analytics",
    "date_cache",
    "metrics_cache",
    "ledger",
)


def output(row, time):
    return {**without(row, "date"), "data": raw(row["data"]), "ms_timestamp": time[row["milestone_index"]]}


def hints(found):
    return [dict(zip(("tag", "table_kind", "ms_range_id"), hint, strict=True)) for hint in sorted(set(found))]


def pick(row, *names):
    return {name: row[name] for name in names}


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names and not name.startswith("_")}


def present(row):
    return {name: value for name, value in row.items() if value is not None}


def raw(text):
    return bytes.fromhex(text)


def day(text):
    return dt.date.fromisoformat(text)


def moment(seconds):
    return dt.datetime.fromtimestamp(seconds, dt.UTC).replace(tzinfo=None)


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value
