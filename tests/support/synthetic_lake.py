"""A lake of the two synthetic tangles, staged without Spark from their generator's expected rows.

What these lack (consumed outputs, columns of unlock conditions, milestone ids) is computed here from the raw
bytes, without the transforms. Network ``cut`` is the Stardust tangle with balances since a milestone.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json

from permalake.config import Settings
from permalake.iota.contracts import IOTA_TABLES
from support import lakes, plain_outputs
from support.iota_days import SYNTHETIC, coordinator_keys, expected, tangle
from support.ledger_walk import parse, text
from support.own_copies import copied

NETWORKS = {"shimmer": "stardust", "iota": "chrysalis", "cut": "stardust"}
TABLES = (
    *("milestones", "messages", "parents", "tags", "transactions", "date_cache"),
    *("basic_outputs", "alias_outputs", "foundry_outputs", "nft_outputs", "legacy_outputs"),
    *("treasury_outputs", "ms_analytics", "address_analytics"),
)


def settings_of(warehouse, **serve):
    """The configuration of the lake."""
    networks = {
        name: {
            "protocol": protocol,
            "bech32_hrp": tangle(protocol)["bech32_hrp"],
            "path": str(SYNTHETIC / protocol / "archive"),
            "coordinator_public_keys": [key.model_dump() for key in coordinator_keys(protocol)],
            "coordinator_threshold": 2,
        }
        for name, protocol in NETWORKS.items()
    }
    return Settings(lake={"warehouse": str(warehouse)}, networks=networks, serve=serve)


def build(settings, networks=NETWORKS) -> None:
    """Publish every day of every network."""
    for network in networks:
        rows = tables(NETWORKS[network])
        if network == "cut":
            rows = {name: [_cut(row) for row in found] for name, found in rows.items()}
        publish(settings, network, rows, days(rows))


def days(rows):
    """The days of a tangle's rows by table, in order."""
    return sorted({row["date"] for row in rows["milestones"]})


def publish(settings, network, rows, among) -> None:
    """Publish some days, each by itself."""
    lake = lakes.OpenLake(settings)
    for day in among:
        attempt = lake.begin(network, day, day, f"{network} {day}")
        for name, found in rows.items():
            lakes.put(settings, attempt, name, [row for row in found if row["date"] == day])
        lake.builds.publish(lakes.pass_audit(attempt))


def _cut(row):
    return row | {"since_milestone": 1} if "since_milestone" in row else row


@copied
def tables(protocol):
    """Rows by table, in the contracts' types."""
    hrp = tangle(protocol)["bech32_hrp"]
    raw = {name: expected(protocol, name) for name in TABLES}
    dates = {
        row["milestone_index"]: dt.datetime.fromtimestamp(row["timestamp"], dt.UTC).date().isoformat()
        for row in raw["milestones"]
    }
    times = {row["milestone_index"]: row["timestamp"] for row in raw["milestones"]}
    included = {
        row["transaction_id"]: row["message_id"] for row in raw["transactions"] if row["inclusion_state"] == 1
    }
    keys = [bytes.fromhex(key.key) for key in coordinator_keys(protocol)] if protocol == "stardust" else ()
    for row in raw["milestones"]:
        row["milestone_id"] = plain_outputs.milestone_id(bytes.fromhex(row["payload"]), keys)
    for kind in plain_outputs.KINDS.values():
        for row in raw[f"{kind}_outputs"]:
            row.update(plain_outputs.facts(bytes.fromhex(row["data"]), lambda *owner: text(*owner, hrp)))
            row["message_id"] = included[row["output_id"][:64]]
    _count_minting(raw["foundry_outputs"])
    for row in raw["legacy_outputs"]:
        row["message_id"] = included.get(row["output_id"][:64])
    raw["richest_addresses"], raw["token_distribution"] = _holders(raw["date_cache"])
    raw["consumed_outputs"] = list(_consumed(protocol, raw["transactions"], times, hrp))
    raw["ledger_updates"] = list(_updates(raw, times, included))
    raw["native_tokens"] = list(_tokens(raw, times)) if protocol == "stardust" else []
    return {
        name: [
            _typed(IOTA_TABLES[name], {"date": dates.get(row.get("milestone_index")), **row}) for row in found
        ]
        for name, found in raw.items()
    }


def _count_minting(foundries):
    """Add what each state of a foundry minted and melted since the one before."""
    before = {}
    for row in sorted(foundries, key=lambda row: row["milestone_index"]):
        now = int(row["minted_tokens"]), int(row["melted_tokens"])
        minted, melted = before.get(row["foundry_id"], (0, 0))
        row.update(newly_minted=str(now[0] - minted), newly_melted=str(now[1] - melted))
        before[row["foundry_id"]] = now


def _holders(days):
    """Made-up figures of the whole ledger, which the days of the tangles are too few for."""
    holders = [
        {
            "rank": rank,
            "address": f"smr1qqqqq{'qpz'[rank - 1]}",
            "balance": 300 - rank,
            "since_milestone": None,
            "date": day["date"],
        }
        for day in days
        for rank in (1, 2, 3)
    ]
    buckets = [
        {"bucket": 2, "addresses": 3, "amount": 600, "since_milestone": None, "date": day["date"]}
        for day in days
    ]
    return holders, buckets


def _consumed(protocol, transactions, times, hrp):
    file = SYNTHETIC / protocol / "archive" / "consumed_outputs.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    held = {
        row["outputId"].removeprefix("0x"): bytes.fromhex(row["rawOutput"].removeprefix("0x"))
        for row in lines
    }
    for row in transactions:
        if row["variant"] != "input" or row["inclusion_state"] != 1:
            continue
        output_id = row["data"][2:]
        output, time = parse(held[output_id], hrp), times[row["milestone_index"]]
        facts = {}
        if output.kind in ("basic", "nft"):
            facts = plain_outputs.facts(held[output_id], lambda *owner: text(*owner, hrp))
        expired = (facts.get("expiration_time") or time + 1) <= time
        yield {
            "output_id": output_id,
            "kind": output.kind,
            "address": facts["expiration_return_address"] if expired else output.owner,
            "amount": output.amount,
            "transaction_id": row["transaction_id"],
            "message_id": row["message_id"],
            "milestone_index": row["milestone_index"],
            "ms_timestamp": time,
            "bytes": held[output_id],
        }


def _tokens(raw, times):
    """Rows of native_tokens: what outputs hold that are created and consumed."""
    created = [
        {**row, "bytes": bytes.fromhex(row["data"]), "is_spent": 0, "transaction_id": row["output_id"][:64]}
        for kind in plain_outputs.KINDS.values()
        for row in raw[f"{kind}_outputs"]
    ]
    for row in (*created, *({**row, "is_spent": 1} for row in raw["consumed_outputs"])):
        for token, amount in plain_outputs.native_tokens(row["bytes"]):
            yield {
                **{name: row[name] for name in ("output_id", "is_spent", "transaction_id")},
                **{"token_id": token, "amount": str(amount), "milestone_index": row["milestone_index"]},
                "address": row.get("state_controller") or row["address"],
                "ms_timestamp": times[row["milestone_index"]],
            }


def _updates(raw, times, included):
    """Rows of ledger_updates: what is created for an address, and what it consumes."""
    for kind in ("basic", "alias", "foundry", "nft", "legacy"):
        owner = "state_controller" if kind == "alias" else "address"
        for row in raw[f"{kind}_outputs"]:
            transaction = row["output_id"][:64]
            yield {
                "address": row[owner],
                "milestone_index": row["milestone_index"],
                "ms_timestamp": times[row["milestone_index"]],
                "output_id": row["output_id"],
                "is_spent": 0,
                "kind": kind,
                "amount": row["amount"],
                "transaction_id": transaction if transaction in included else None,
                "counterparties": 0,
            }
    for row in raw["consumed_outputs"]:
        yield {**row, "is_spent": 1, "counterparties": 0}


def _typed(table, row):
    def value(column):
        found = row.get(column.name)
        if found is None:
            return None
        if column.type == "binary":
            return bytes.fromhex(found)
        if column.type == "date":
            return dt.date.fromisoformat(found)
        return dt.datetime.fromtimestamp(found, dt.UTC) if column.type == "timestamptz" else found

    return {column.name: value(column) for column in table.columns}
