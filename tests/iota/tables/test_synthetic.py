"""Synthetic tangles (not made by this project) come out with exactly the expected rows in every table."""

import gzip
import json
import re
import unicodedata
from collections import Counter, defaultdict
from datetime import UTC, date, datetime
from itertools import pairwise

import pyarrow as pa
import pytest

from permalake.iota.codec.bech32 import decode_address
from permalake.iota.cone.decoded import ARROW, Row
from permalake.iota.contracts import IOTA_TABLES, activity, carried, ledger_changes, metrics, movements
from permalake.iota.tables.base_tables import base_tables
from permalake.iota.tables.decoded_columns import DecodedRange
from permalake.spark.session import CONF, SMALL_CONF
from support.iota_days import (
    SYNTHETIC,
    build,
    coordinator_keys,
    differences,
    expected,
    plain,
    tangle,
)
from support.ledger_walk import moved_tokens, parse, text
from support.plain_outputs import KINDS, milestone_id, native_tokens
from support.plain_outputs import facts as plain_facts
from support.served_lakes import conflicts

DAYS = {"stardust": ("2022-09-28", "2022-09-30"), "chrysalis": ("2021-05-10", "2021-05-12")}
# Not among the expected rows of the generator.
OWN = {
    *("quarantine", "consumed_outputs", "receipts", "protocol_parameters"),
    *(
        table.name
        for module in (metrics, ledger_changes, carried, movements, activity)
        for table in module.TABLES
    ),
}


@pytest.fixture(scope="module")
def spark(spark):
    """Set as for large inputs: plans are compiled, and adapted while they run."""
    ours = spark.newSession()
    for name in SMALL_CONF:
        ours.conf.unset(name)
        if name in CONF:
            ours.conf.set(name, CONF[name])
    return ours


@pytest.fixture(scope="module", params=["stardust", "chrysalis"])
def world(request, spark, tmp_path_factory):
    protocol = request.param
    built = build(
        spark,
        SYNTHETIC / protocol / "archive",
        *DAYS[protocol],
        tmp_path_factory.mktemp(protocol) / "decoded",
        protocol=protocol,
        hrp=tangle(protocol)["bech32_hrp"],
        keys=coordinator_keys(protocol),
        threshold=2,
    )
    return protocol, built


def test_nothing_is_refused(world) -> None:
    _, built = world
    assert built.refused == {}
    assert built.quarantine == []


@pytest.mark.parametrize("name", sorted(set(IOTA_TABLES) - OWN))
def test_rows_of(world, name) -> None:
    protocol, built = world
    ours, theirs = built.rows(name), expected(protocol, name)
    if name == "milestones" and protocol == "stardust":
        last = {row["end_ms"] for row in expected(protocol, "date_cache")}
        assert all(row["message_id"] is None for row in ours if row["milestone_index"] in last)
        for row in (*ours, *theirs):
            if row["milestone_index"] in last:
                row["message_id"] = None
    assert differences(ours, theirs) == ([], [])


def test_ledger_changes_add_up_to_the_expected_ledger(world) -> None:
    """Unspent outputs at the end are those at the first day's end, and what was created and not consumed."""
    protocol, built = world
    first, last = expected(protocol, "ledger")
    consumed = {row["output_id"] for row in built.rows("consumed_outputs") if row["date"] == last["date"]}
    tables = ("basic_outputs", "alias_outputs", "foundry_outputs", "nft_outputs", "legacy_outputs")
    created = {row["output_id"] for name in tables for row in built.rows(name) if row["date"] == last["date"]}
    unspent = {row["output_id"] for row in first["unspent"]}
    assert (unspent | created) - consumed == {row["output_id"] for row in last["unspent"]}
    assert sum(len(row["output_id"]) == 68 for row in built.rows("consumed_outputs")) == (
        first["consumed_count"] + last["consumed_count"]
    )


def test_columns_of_outputs_are_those_of_their_bytes(world) -> None:
    protocol, built = world
    hrp = tangle(protocol)["bech32_hrp"]
    included = {
        row["transaction_id"]: row["message_id"]
        for row in built.rows("transactions")
        if row["inclusion_state"] == 1
    }
    seen = Counter()
    for kind in KINDS.values():
        for row in built.rows(f"{kind}_outputs"):
            facts = plain_facts(bytes.fromhex(row["data"]), lambda *address: text(*address, hrp))
            assert {name: row[name] for name in facts} == facts
            assert row["message_id"] == included[row["output_id"][:64]]
            seen.update(name for name, value in facts.items() if value)
    wanted = {"timelock_time", "expiration_time", "storage_return_amount", "state_index", "serial_number"}
    wanted |= {"state_metadata", "metadata", "immutable_metadata", "minted_tokens", "maximum_supply"}
    assert protocol == "chrysalis" or wanted <= set(seen)


def consumed(protocol):
    """(output id, transaction, raw bytes) of what transactions consumed, as the archive has it."""
    file = SYNTHETIC / protocol / "archive" / "consumed_outputs.jsonl.gz"
    for row in map(json.loads, gzip.decompress(file.read_bytes()).splitlines()):
        ids = (row[name].removeprefix("0x") for name in ("outputId", "transactionIdSpent"))
        yield *ids, bytes.fromhex(row["rawOutput"].removeprefix("0x")), row["milestone"]


def test_consumed_outputs_keep_their_bytes(world) -> None:
    """What a mirror builds the day from again; the treasury's outputs follow from receipts."""
    protocol, built = world
    kept = {(row["output_id"], row["data"]) for row in built.rows("consumed_outputs")}
    archived = {(output_id, raw.hex()) for output_id, _, raw, _ in consumed(protocol)}
    assert {(output_id, data) for output_id, data in kept if len(output_id) == 68} == archived
    assert all(data is None for output_id, data in kept if len(output_id) == 64)


def created(protocol):
    """(output id, transaction, raw bytes, milestone) of created outputs; no transaction: of a receipt."""
    known = {row["transaction_id"] for row in expected(protocol, "transactions")}
    for kind in (*KINDS.values(), "legacy"):
        for row in expected(protocol, f"{kind}_outputs"):
            transaction = row["output_id"][:64]
            transaction = transaction if transaction in known else None
            yield row["output_id"], transaction, bytes.fromhex(row["data"]), row["milestone_index"]


def moves(protocol):
    """(output id, whether spent, transaction, milestone, bytes, address) of every change of the ledger."""
    hrp = tangle(protocol)["bech32_hrp"]
    times = {row["milestone_index"]: row["timestamp"] for row in expected(protocol, "milestones")}
    for is_spent, outputs in enumerate((created(protocol), consumed(protocol))):
        for output_id, transaction, raw, milestone in outputs:
            output = parse(raw, hrp)
            holder = output.holder(times[milestone]) if is_spent else output.owner
            yield output_id, is_spent, transaction, milestone, raw, holder


def test_native_tokens_are_those_of_the_bytes(world) -> None:
    protocol, built = world
    theirs = {
        (output_id, is_spent, transaction, milestone, holder, token, str(amount))
        for output_id, is_spent, transaction, milestone, raw, holder in moves(protocol)
        for token, amount in native_tokens(raw)
    }
    names = ("output_id", "is_spent", "transaction_id", "milestone_index", "address", "token_id", "amount")
    rows = [tuple(row[name] for name in names) for row in built.rows("native_tokens")]
    assert sorted(rows) == sorted(theirs)
    assert {row[1] for row in rows} == (set() if protocol == "chrysalis" else {0, 1})


def test_foundries_mint_and_melt_what_their_counters_gained(world) -> None:
    protocol, built = world
    spent = [
        (transaction, plain_facts(raw, lambda *_: ""))
        for _, transaction, raw, _ in consumed(protocol)
        if raw[0] == 5
    ]
    before = {(transaction, facts["serial_number"]): facts for transaction, facts in spent}
    assert len(before) == len(spent)
    rows = built.rows("foundry_outputs")
    for row in rows:
        earlier = before.get((row["output_id"][:64], row["serial_number"]), {})
        for name in ("minted", "melted"):
            gained = int(row[f"{name}_tokens"]) - int(earlier.get(f"{name}_tokens", 0))
            assert row[f"newly_{name}"] == str(gained)
    assert bool(rows) == (protocol == "stardust")


def test_ledger_updates_are_the_moves_of_the_ledger(world) -> None:
    protocol, built = world
    theirs, parties = [], defaultdict(set)
    for output_id, is_spent, transaction, milestone, raw, holder in moves(protocol):
        amount = parse(raw, tangle(protocol)["bech32_hrp"]).amount
        theirs.append((holder, milestone, output_id, is_spent, amount, transaction))
        parties[transaction].add(holder)
    names = ("address", "milestone_index", "output_id", "is_spent", "amount", "transaction_id")
    rows = built.rows("ledger_updates")
    assert sorted(map(str, theirs)) == sorted(str(tuple(row[name] for name in names)) for row in rows)
    for row in rows:
        others = len(parties[row["transaction_id"]]) - 1 if row["transaction_id"] else 0
        assert row["counterparties"] == others
    assert len({row["counterparties"] for row in rows}) > 2


def payload_of(raw, protocol):
    """Kind of a message's payload, from its bytes (TIP-6, TIP-24)."""
    at = 8 if protocol == "chrysalis" else 1
    at += 1 + 32 * raw[at]
    if not int.from_bytes(raw[at : at + 4], "little"):
        return "no_payload"
    kinds = {0: "transaction", 1: "milestone", 2: "tagged_data"}
    kinds |= {5: "tagged_data", 6: "transaction", 7: "milestone"}
    return kinds[int.from_bytes(raw[at + 4 : at + 8], "little")]


def test_hours_are_those_of_the_milestones(world) -> None:
    protocol, built = world
    times = {row["milestone_index"]: row["timestamp"] for row in expected(protocol, "milestones")}

    def at(milestone, payload="transaction"):
        moment = datetime.fromtimestamp(times[milestone], UTC)
        return moment.date().isoformat(), moment.hour, payload

    theirs = defaultdict(Counter)
    for row in expected(protocol, "messages"):
        raw = bytes.fromhex(row["message"])
        state = {0: "conflicting_transactions", 1: "included_transactions"}.get(row["inclusion_state"])
        theirs[at(row["milestone_index"], payload_of(raw, protocol))].update(
            {"messages": 1, "message_bytes": len(raw), **({state: 1} if state else {})}
        )
    for _, transaction, raw, milestone in created(protocol):
        if transaction:
            theirs[at(milestone)]["transferred_tokens"] += parse(raw, "x").amount
    for milestone, tokens in moved_tokens(protocol).items():
        if tokens:
            theirs[at(milestone)]["moved_tokens"] += tokens
    for row in built.rows("hourly_activity"):
        found = theirs.pop((row["date"], row["hour"], row["payload"]))
        assert {name: row[name] for name in row if name not in ("date", "hour", "payload")} == {
            **dict.fromkeys(("included_transactions", "conflicting_transactions"), 0),
            **dict.fromkeys(("transferred_tokens", "moved_tokens"), 0),
            **found,
        }
    assert not theirs


def test_conflicts_and_intervals_are_counted(world) -> None:
    protocol, built = world
    reasons = Counter(
        (row["date"], row["conflict_reason"])
        for row in expected(protocol, "messages")
        if row["inclusion_state"] == 0
    )
    rows = built.rows("conflicts_daily")
    assert {(row["date"], row["conflict_reason"]): row["messages"] for row in rows} == reasons
    assert len(reasons) > 3
    assert all(row["meaning"] for row in rows)
    times = sorted((row["milestone_index"], row["timestamp"]) for row in expected(protocol, "milestones"))
    days = [datetime.fromtimestamp(time, UTC).date().isoformat() for _, time in times]
    steps = zip(pairwise(times), pairwise(days), strict=True)
    gaps = Counter((today, late[1] - early[1]) for (early, late), (day, today) in steps if day == today)
    found = {(row["date"], row["seconds"]): row["milestones"] for row in built.rows("milestone_intervals")}
    assert found == gaps


def test_conflicting_transactions_are_found_by_address(world) -> None:
    protocol, built = world
    names = [
        name for name in IOTA_TABLES["conflicting_transactions"].names if name not in ("date", "ms_timestamp")
    ]

    def told(rows):
        return sorted(str([row[name] for name in names]) for row in rows)

    rows = built.rows("conflicting_transactions")
    assert told(rows) == told(conflicts(protocol))
    assert {(row["is_signer"], row["amount"] > 0) for row in rows} == {(0, True), (1, True), (1, False)}


def ranked(sums, limit=100):
    """(date, metric, rank, name, value) of the greatest values, by date and metric."""
    for (day, metric), values in sums.items():
        order = sorted((-value, name) for name, value in values.items() if value)[:limit]
        yield from ((day, metric, rank, name, -value) for rank, (value, name) in enumerate(order, 1))


def test_top_addresses_are_the_first_of_all(world) -> None:
    protocol, built = world
    times = {row["milestone_index"]: row["date"] for row in expected(protocol, "messages")}
    sums = defaultdict(Counter)
    for _, is_spent, transaction, milestone, raw, holder in moves(protocol):
        if transaction:
            side = "sent" if is_spent else "received"
            sums[times[milestone], f"{side}_tokens"][holder] += parse(raw, "x").amount
            sums[times[milestone], f"{side}_outputs"][holder] += 1
    names = ("date", "metric", "rank", "address", "value")
    rows = [tuple(row[name] for name in names) for row in built.rows("top_addresses")]
    assert sorted(rows) == sorted(ranked(sums))


def test_tags_are_ranked_and_gathered_in_families(world) -> None:
    protocol, built = world
    outputs = Counter()
    for _, transaction, raw, _ in created(protocol):
        outputs[transaction] += parse(raw, "x").amount
    carried = {
        row["message_id"]: row["transaction_id"]
        for row in expected(protocol, "transactions")
        if row["inclusion_state"] == 1
    }
    dates = {row["message_id"]: row["date"] for row in expected(protocol, "messages")}
    sums, families = defaultdict(Counter), defaultdict(lambda: [set(), 0, 0, 0])
    for row in expected(protocol, "tags"):
        tag, day, transaction = row["tag"], dates[row["message_id"]], carried.get(row["message_id"])
        sums[day, "messages"][tag] += 1
        sums[day, "transferred_tokens"][tag] += outputs[transaction] if transaction else 0
        family = families[day, re.split(r"[:;,/|_.#@+=~\-\s]", readable(tag) or "")[0]]
        family[0].add(tag)  # type: ignore[attr-defined]
        family[1] += 1
        family[2] += transaction is not None
        family[3] += outputs[transaction] if transaction else 0
    rows = built.rows("top_tags")
    found = [(row["date"], row["metric"], row["rank"], row["tag"], row["value"]) for row in rows]
    assert sorted(found) == sorted(ranked(sums))
    assert all(row["text"] == readable(row["tag"]) for row in rows)
    figures = ("tags", "messages", "included_transactions", "transferred_tokens")
    ours = {
        (row["date"], row["family"]): [row[name] for name in figures] for row in built.rows("tag_families")
    }
    assert ours == {key: [len(tags), *rest] for key, (tags, *rest) in families.items()}


def readable(tag):
    """The text of a tag; None where it is no UTF-8 or has control characters."""
    try:
        text = bytes.fromhex(tag).decode()
    except UnicodeDecodeError:
        return None
    return text if all(unicodedata.category(one) != "Cc" for one in text) else None


def test_milestone_ids(world) -> None:
    protocol, built = world
    keys = [bytes.fromhex(key.key) for key in coordinator_keys(protocol)] if protocol == "stardust" else ()
    for row in built.rows("milestones"):
        assert row["milestone_id"] == milestone_id(bytes.fromhex(row["payload"]), keys)


def test_receipts_migrate_what_no_transaction_created(world) -> None:
    """TIP-17: a fund is the tail transaction's hash, an Ed25519 address and an amount; the receipt's head has
    its milestone of origin, whether it is final, and the number of funds."""
    protocol, built = world
    payloads = {row["milestone_index"]: bytes.fromhex(row["payload"]) for row in built.rows("milestones")}
    rows = built.rows("receipts")
    ids = {row["milestone_id"] for row in built.rows("milestones")}
    created = [row for row in expected(protocol, "legacy_outputs") if row["output_id"][:64] in ids]
    same = ("output_id", "milestone_index", "address", "amount")
    assert sorted([row[c] for c in same] for row in rows) == sorted([row[c] for c in same] for row in created)
    assert bool(rows) == (protocol == "chrysalis")
    for row in rows:
        _, kind, owner = decode_address(row["address"])
        fund = bytes.fromhex(row["tail_transaction_hash"]) + bytes([kind]) + owner
        payload = payloads[row["milestone_index"]]
        at = payload.index(fund + row["amount"].to_bytes(8, "little"))
        head = payload[at - 90 * row["idx"] - 7 : at - 90 * row["idx"]]
        assert head[:5] == row["migrated_at"].to_bytes(4, "little") + bytes([row["final"]])
        assert int.from_bytes(head[5:], "little") > row["idx"]


def test_announced_parameters_are_rows() -> None:
    row = dict.fromkeys(ARROW.names) | {
        "kind": int(Row.MILESTONE),
        "date": date(2022, 9, 28),
        "milestone_index": 7,
        "timestamp": 1664323200,
        "parameters": {"target_index": 4_000_000_000, "version": 3, "parameters": b"\1\2"},
    }
    silent = row | {"milestone_index": 8, "parameters": None}
    decoded = pa.Table.from_pylist([row, silent], ARROW)
    made = dict(base_tables(DecodedRange(decoded, 250_000)))["protocol_parameters"]
    assert [plain(one) for one in made.to_pylist()] == [
        {
            "milestone_index": 7,
            "ms_timestamp": 1664323200,
            "target_milestone_index": 4_000_000_000,
            "protocol_version": 3,
            "params": "0102",
            "date": "2022-09-28",
        }
    ]


def test_a_day_alone_comes_out_as_in_the_range(spark, tmp_path) -> None:
    day = "2022-09-30"
    built = build(spark, SYNTHETIC / "stardust" / "archive", day, day, tmp_path / "decoded")
    assert built.refused == {}
    theirs = [row for row in expected("stardust", "messages") if row["date"] == day]
    assert differences(built.rows("messages"), theirs) == ([], [])
    for name in ("consumed_outputs", "address_analytics"):
        assert {row["date"] for row in built.rows(name)} == {day}
