"""The synthetic Wormhole world as a published lake behind the REST API, made without Spark."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter, defaultdict
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from permalake.config import Settings
from permalake.wormhole.codec.applications.decode import decode_application
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.reference import load_reference
from support.lakes import OpenLake, pass_audit, put
from support.vaa_data import SYNTHETIC, read_lines

LAST_DAY = date(2024, 3, 12)
LATE_DAYS = (date(2024, 3, 9), date(2024, 3, 11))
"""Days with the value locked, of a lake where it lags behind."""
FAR_CHAIN = 40_000
"""A chain id beyond a signed 16-bit number."""
FAR_EMITTER = "ab" * 32
RECIPIENT_CHAIN, RECIPIENT = 20, "osmo1w508d6qejxtdg4y5r3zarvary0c5xw7kjxy2e2"
"""Where the second far message pays NTT out: to a chain that no other transfer goes to."""
HOSTILE_SYMBOL = '<script>alert("1")</script>'
HOSTILE_NAME = "\u202egnp.exe\x1b[31m\x00" + "<b>" + "A" * 65_536
SOLANA_TRANSACTION = (
    "5VERv8NMvzbJMEkV8xnrLkEaWRtSz9CosKDYjCJjBRnbJLgp8uirBgmQpjKhoR4tjF3ZpRzrFmBV6UjKdiSZkQUW"
)


def wormhole_settings(folder) -> Settings:
    return Settings(
        lake={"warehouse": str(folder / "lake")},
        wormhole={"path": str(folder), "reference": str(SYNTHETIC / "reference")},
    )


def publish_world(settings: Settings) -> dict[str, list[dict]]:
    """Publish every expected row of the world, and return the rows by table."""
    tables = world_rows()
    publish_days(settings, tables, sorted({row["date"] for rows in tables.values() for row in rows}))
    return tables


def world_rows() -> dict[str, list[dict]]:
    """Return the world's rows by table."""
    tables = {name: expected_rows(name) for name in WORMHOLE_TABLES if expected_file(name).exists()}
    _count_receivers(tables)
    tables["quarantine"] = [{**row, "date": row["date"]} for row in _quarantined()]
    _add_far_message(tables)
    tables["redemptions"] = list(_redemptions(tables))
    _add_applications(tables)
    _add_stand_ins(tables)
    tables["observations"] = list(_observations(tables["quorum_state"]))
    return tables


def publish_days(settings: Settings, tables: dict[str, list[dict]], days: list[date]) -> None:
    """Publish some days, each by itself."""
    lake = OpenLake(settings)
    for day in days:
        attempt = lake.begin("wormhole", day, day, f"run-{day}")
        for name, rows in tables.items():
            if own := [row for row in rows if row["date"] == day]:
                put(settings, attempt, name, own)
        lake.builds.publish(pass_audit(attempt))


def _count_receivers(tables) -> None:
    """Count the receivers on chains where the generator does not know them."""
    told = {row["row_key"]: row["receiver_address"] for row in tables["chain_details"]}
    found = defaultdict(set)
    for row in tables["token_transfer_payload"]:
        receiver = told.get(row["row_key"]) or row["target_address"]
        found[row["date"], row["target_chain"]].add(receiver)
    for row in tables["addresses_daily"]:
        row["addresses"] = row["addresses"] or len(found[row["date"], row["target_chain"]])


def expected_file(table):
    return SYNTHETIC / "expected" / f"{table}.jsonl.gz"


def expected_rows(table) -> list[dict]:
    contract = WORMHOLE_TABLES[table]
    raw = _inputs()
    rows = []
    for row in read_lines(expected_file(table)):
        if table == "quorum_state":
            row["signed_vaa"] = raw.get(row["signed_vaa_sha256"], b"").hex()
        if "date" not in row:
            continue
        rows.append({column.name: _typed(column.type, row.get(column.name)) for column in contract.columns})
    return rows


def _inputs():
    documents = (d for file in sorted((SYNTHETIC / "input").glob("*.jsonl.gz")) for d in read_lines(file))
    found = (base64.b64decode(document["vaa"]) for document in documents)
    return {hashlib.sha256(raw).hexdigest(): raw for raw in found}


def _quarantined():
    raw = _inputs()
    seen = datetime(2024, 3, 13, tzinfo=UTC)
    for row in read_lines(expected_file("quarantine")):
        yield {
            "source": "files",
            "origin": row["row_key"],
            "reason": row["reason"],
            "detail": None,
            "raw": raw.get(row["raw_sha256"], b""),
            "seen_at": seen,
            "date": date.fromisoformat(row["date"]),
        }


def _observations(states):
    """All guardians observed one message a second apart, but for the first that signed its VAA."""
    state = states[0]
    vaas = decode_vaas(pa.array([state["signed_vaa"]], pa.binary()))
    guardians = load_reference(SYNTHETIC / "reference").guardian_sets[int(vaas.guardian_set_index[0])]
    for index, guardian in enumerate(guardians):
        if index != vaas.guardian_index[0]:
            yield {
                "row_key": state["row_key"],
                "guardian_address": guardian.hex(),
                "signature": f"{index:0130x}",
                "observed_at": datetime(2024, 3, 13, 0, 0, 59 - index, 250_000, tzinfo=UTC),
                "in_vaa": int(index in vaas.guardian_index),
                "date": state["date"],
            }


def _redemptions(tables):
    """What became of transfers: nobody tells of a third, half of the others are redeemed after a while."""
    for number, transfer in enumerate(tables["token_transfer_payload"]):
        told = {
            "row_key": transfer["row_key"],
            "target_chain": transfer["target_chain"],
            "date": transfer["date"],
        }
        moment = datetime(2024, 3, 13, 0, 0, number % 60, tzinfo=UTC)
        if number % 3:
            yield {**told, "source": "wormholescan", "status": "in_flight", "asked_at": moment}
        if number % 3 == 2:
            redeemed = {"target_tx_id": f"0x{number:064x}", "redeemer": "0xab", "fee": "0.001"}
            yield {
                **{**told, **redeemed, "source": "rpc", "status": "completed"},
                **{"asked_at": moment, "redeemed_at": datetime(2024, 3, 12, 12, 30, tzinfo=UTC)},
            }


def _add_far_message(tables):
    """Add two messages of one transaction of a chain beyond 32767, and more sent back there than came."""
    for sequence in (7, 8):
        key = f"{FAR_CHAIN}:{FAR_EMITTER}:{sequence:016d}"
        like = next(row for row in tables["message_publication"] if row["date"] == LAST_DAY)
        tables["message_publication"].append(
            like
            | {
                "row_key": key,
                "emitter_chain": FAR_CHAIN,
                "emitter_address": FAR_EMITTER,
                "sequence": Decimal(sequence),
                "initiating_tx_id": SOLANA_TRANSACTION,
            }
        )
        state = next(row for row in tables["quorum_state"] if row["row_key"] == like["row_key"])
        tables["quorum_state"].append(state | {"row_key": key})
    key = f"{FAR_CHAIN}:{FAR_EMITTER}:{7:016d}"
    transfer = next(row for row in tables["token_transfer_payload"] if row["date"] == LAST_DAY)
    tables["token_transfer_payload"].append(transfer | {"row_key": key})
    details = next(r for r in tables["token_transfer_details"] if r["row_key"] == transfer["row_key"])
    tables["token_transfer_details"].append(
        details | {"row_key": key, "origin_symbol": HOSTILE_SYMBOL, "origin_name": HOSTILE_NAME}
    )
    tables["tvl_daily"].append(
        {
            "date": LAST_DAY,
            "origin_chain": FAR_CHAIN,
            "origin_address": FAR_EMITTER,
            "amount": "-12.5",
            "notional_usd": None,
        }
    )
    tables["messages_daily"].append(
        {"date": LAST_DAY, "emitter_chain": FAR_CHAIN, "messages": 2, "verified": 2, "quarantined": 0}
    )


def _add_stand_ins(tables):
    """Let a dollar, or an asset of half a dollar, stand in for the price of transfers that have none."""
    unpriced = [
        row
        for row in tables["token_transfer_details"]
        if row["token_price_usd"] is None and row["amount"] and len(row["amount"]) < 20
    ]
    for number, row in enumerate(unpriced):
        price = Decimal("0.5") if number % 2 else Decimal(1)
        row["stand_in"] = "half-dollar" if number % 2 else "usd"
        row["stand_in_price_usd"] = price
        row["stand_in_notional_usd"] = (Decimal(row["amount"]) * price).quantize(Decimal("1e-8"))


def _add_applications(tables):
    """Add what the day's step derives from the messages: their applications, counted by day and chain.

    The far messages are said to be deliveries of NTT, the second one of a transfer.
    """
    contracts = load_reference(SYNTHETIC / "reference").contracts()
    bridged = Counter(row["row_key"] for row in tables["token_transfer_payload"])
    counts = defaultdict(Counter)
    tables["application_messages"], tables["applications_daily"] = [], []
    for row in tables["message_publication"]:
        emitter, payload = bytes.fromhex(row["emitter_address"]), row["payload"] or b""
        found = decode_application(row["emitter_chain"], emitter, payload, contracts)
        told = {"row_key": row["row_key"], "date": row["date"], "fields": None}
        told |= {"app_id": found.app_id, "carrier_app_id": found.carrier, "kind": found.kind}
        told |= {"layout": found.layout, "is_listed": int(found.is_listed)}
        tables["application_messages"].append(told)
        if row["emitter_address"] == FAR_EMITTER:
            told |= {"app_id": "NATIVE_TOKEN_TRANSFER", "carrier_app_id": "GENERIC_RELAYER"}
        at = (row["date"], told["app_id"], row["emitter_chain"])
        counts[at].update(messages=1, transfers=bridged[row["row_key"]])
    for (day, app_id, chain), counted in counts.items():
        tables["applications_daily"].append(
            {
                **{"date": day, "app_id": app_id, "emitter_chain": chain, "notional_usd": None},
                **{name: counted[name] for name in ("messages", "transfers")},
            }
        )
    key = f"{FAR_CHAIN}:{FAR_EMITTER}:{8:016d}"
    moved = {"row_key": key, "date": LAST_DAY, "app_id": "NATIVE_TOKEN_TRANSFER", "in_token_transfers": 0}
    moved |= {"token_chain": 2, "token_address": FAR_EMITTER, "amount": "5", "sender_address": FAR_EMITTER}
    moved |= {"target_chain": RECIPIENT_CHAIN, "recipient_address": ("751e" * 10).rjust(64, "0")}
    tables["application_transfers"] = [moved]
    details = {"row_key": key, "date": LAST_DAY, "recipient_native_address": RECIPIENT}
    tables["application_transfer_details"] = [details]


def _typed(kind, value):
    if value is None:
        return None
    if kind == "binary":
        return bytes.fromhex(value)
    if kind == "date":
        return date.fromisoformat(value)
    if kind == "timestamptz":
        return datetime.fromisoformat(value)
    return Decimal(value) if kind.startswith("decimal") else value
