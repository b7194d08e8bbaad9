"""What Cassandra must hold for a synthetic tangle, worked out row by row from the expected lake rows."""

from __future__ import annotations

import datetime as dt

import lake_frames

LISTED = {
    "basic_outputs": "extended",
    "alias_outputs": "alias",
    "foundry_outputs": "foundry",
    "nft_outputs": "nft",
    "legacy_outputs": "legacy",
}
ROLES = ("address", "sender", "issuer", "state_controller", "governor", "dust_return_address")


def stardust(folder):
    """Rows of every table of the Stardust schema, each a dict of the columns that are not null."""
    lake = {name: lake_frames.read(folder / name) for name in NAMES}
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
