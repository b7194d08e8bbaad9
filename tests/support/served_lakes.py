"""A lake of the synthetic worlds, written from their expected rows without Spark, and a client of its API.

The rows come from a generator that shares no code with this project, so answers are checked against something
that the project did not compute. Consumed outputs are told by the inputs of included transactions.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa

from permalake.config import Settings
from permalake.contracts import Table
from permalake.iota.codec.milestones import decode_milestone
from permalake.iota.codec.receipts import Receipt
from permalake.iota.contracts import IOTA_TABLES
from permalake.lake.catalog import open_catalog
from support import lakes
from support.expected_rows import read
from support.ledger_walk import parse, text

DATA = Path(__file__).parents[1] / "data" / "synthetic"
NETWORKS = {"stardust": "shimmer", "chrysalis": "chrysalis-mainnet"}
HRPS = {"stardust": "smr", "chrysalis": "iota"}
KINDS = ("basic", "alias", "foundry", "nft", "legacy", "treasury")
OWNERS = {"alias": "state_controller"}


@cache
def expected(protocol: str, table: str) -> list[dict[str, Any]]:
    """The expected rows of a table, as the generator wrote them."""
    file = DATA / protocol / "expected" / f"{table}.jsonl.gz"
    return read(file) if file.exists() else []


def settings_of(folder: Path, **serve: Any) -> Settings:
    networks = {
        name: {"protocol": protocol, "bech32_hrp": HRPS[protocol], "path": str(DATA), "v_byte_cost": 100}
        for protocol, name in NETWORKS.items()
    }
    return Settings(lake={"warehouse": str(folder / "lake")}, networks=networks, serve=serve)  # type: ignore[arg-type]


def write(settings: Settings, protocols: Iterable[str] = tuple(NETWORKS)) -> None:
    """Publish every day of the worlds, each world in one publication."""
    lake = lakes.OpenLake(settings)
    for protocol in protocols:
        network = NETWORKS[protocol]
        days = [date.fromisoformat(row["date"]) for row in expected(protocol, "date_cache")]
        attempt = lake.begin(network, min(days), max(days), f"write-{network}")
        for name, contract in IOTA_TABLES.items():
            if rows := rows_of(protocol, contract):
                staged = open_catalog(settings, attempt.id).load_table((network, name))
                staged.append(pa.Table.from_pylist(rows, schema=contract.arrow))
        lake.builds.publish(lakes.pass_audit(attempt))


def rows_of(protocol: str, contract: Table) -> list[dict[str, Any]]:
    """The rows of a table as its contract has them; what the generator left out follows from other tables."""
    name = contract.name
    days = {row["milestone_index"]: row["date"] for row in expected(protocol, "messages")}
    carriers = {
        row["transaction_id"]: row["message_id"]
        for row in expected(protocol, "transactions")
        if row["inclusion_state"] == 1
    }
    typed = []
    for row in COMPUTED[name](protocol) if name in COMPUTED else expected(protocol, name):
        told = {"date": days.get(row.get("milestone_index", -1)), **row}
        if name == "legacy_outputs":
            told["message_id"] = carriers.get(row["output_id"][:64])
        typed.append(
            {column.name: typed_value(column.type, told.get(column.name)) for column in contract.columns}
        )
    return sorted(typed, key=lambda row: [str(row["date"]), *(row[name] for name in contract.order)])


def typed_value(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "binary":
        return bytes.fromhex(value)
    if kind == "date":
        return date.fromisoformat(value)
    if kind == "timestamptz":
        return datetime.fromtimestamp(value, UTC)
    return value


@cache
def consumed(protocol: str) -> list[dict[str, Any]]:
    """Rows of consumed_outputs: inputs of included transactions, and the treasury outputs of receipts."""
    made = {
        row["output_id"]: (kind, row.get(OWNERS.get(kind, "address")), row["amount"])
        for kind in KINDS
        for row in expected(protocol, f"{kind}_outputs")
    }
    times = {row["milestone_index"]: row["timestamp"] for row in expected(protocol, "milestones")}
    rows = []
    for row in expected(protocol, "transactions"):
        if row["variant"] != "input" or row["inclusion_state"] != 1 or row["data"][2:] not in made:
            continue
        rows.append(_use(row["data"][2:], made, times, row["milestone_index"], row))
    for row in expected(protocol, "milestones"):
        receipt = decode_milestone(bytes.fromhex(row["payload"]), protocol).receipt  # type: ignore[arg-type]
        if isinstance(receipt, Receipt) and receipt.treasury_input.hex() in made:
            rows.append(_use(receipt.treasury_input.hex(), made, times, row["milestone_index"], {}))
    return rows


def _use(output_id: str, made: Any, times: Any, index: int, row: dict[str, Any]) -> dict[str, Any]:
    kind, address, amount = made[output_id]
    return {
        "output_id": output_id,
        "kind": kind,
        "address": address,
        "amount": amount,
        "transaction_id": row.get("transaction_id"),
        "message_id": row.get("message_id"),
        "milestone_index": index,
        "ms_timestamp": times[index],
    }


@cache
def conflicts(protocol: str) -> list[dict[str, Any]]:
    """Rows of conflicting_transactions; a signer's address is the hash of its public key (TIP-7)."""
    hrp = HRPS[protocol]
    times = {row["milestone_index"]: row["timestamp"] for row in expected(protocol, "milestones")}
    reasons = {row["message_id"]: row["conflict_reason"] for row in expected(protocol, "messages")}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for row in expected(protocol, "transactions"):
        if row["inclusion_state"] != 0 or row["variant"] == "input":
            continue
        data, message_id = bytes.fromhex(row["data"]), row["message_id"]
        if row["variant"] == "output":
            made = parse(data, hrp)
            address, amount, is_signer = made.owner, made.amount, 0
        elif data[0] == 0:
            key_hash = blake2b(data[2:34], digest_size=32).digest()
            address, amount, is_signer = text(0, key_hash, hrp), 0, 1
        else:
            continue
        told = rows.setdefault(
            (message_id, address),
            {
                "address": address,
                "milestone_index": row["milestone_index"],
                "ms_timestamp": times[row["milestone_index"]],
                "message_id": message_id,
                "transaction_id": row["transaction_id"],
                "conflict_reason": reasons[message_id],
                "is_signer": 0,
                "amount": 0,
            },
        )
        told["amount"] += amount
        told["is_signer"] |= is_signer
    return list(rows.values())


COMPUTED = {"consumed_outputs": consumed, "conflicting_transactions": conflicts}
"""Rows of tables that the generator left out."""
