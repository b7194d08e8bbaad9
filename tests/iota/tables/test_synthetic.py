"""Synthetic tangles (not made by this project) come out with exactly the expected rows in every table."""

from collections import Counter
from datetime import date

import pytest

from permalake.iota.codec.bech32 import decode_address
from permalake.iota.cone.decoded import DECODED, Row
from permalake.iota.contracts import IOTA_TABLES, carried, ledger_changes, metrics
from permalake.iota.tables import tangle as tangle_tables
from permalake.spark.session import CONF, SMALL_CONF
from support.iota_days import (
    SYNTHETIC,
    build,
    coordinator_keys,
    differences,
    expected,
    plain,
    shaped,
    tangle,
)
from support.ledger_walk import text
from support.plain_outputs import KINDS, milestone_id
from support.plain_outputs import facts as plain_facts

DAYS = {"stardust": ("2022-09-28", "2022-09-30"), "chrysalis": ("2021-05-10", "2021-05-12")}
# Not among the expected rows of the generator.
OWN = {
    *("quarantine", "consumed_outputs", "receipts", "protocol_parameters"),
    *(table.name for table in (*metrics.TABLES, *ledger_changes.TABLES, *carried.TABLES)),
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


def test_nothing_is_refused(world):
    _, built = world
    assert built.refused == {}
    assert built.quarantine == []


@pytest.mark.parametrize("name", sorted(set(IOTA_TABLES) - OWN))
def test_rows_of(world, name):
    protocol, built = world
    ours, theirs = built.rows(name), expected(protocol, name)
    if name == "milestones" and protocol == "stardust":
        last = {row["end_ms"] for row in expected(protocol, "date_cache")}
        assert all(row["message_id"] is None for row in ours if row["milestone_index"] in last)
        for row in (*ours, *theirs):
            if row["milestone_index"] in last:
                row["message_id"] = None
    assert differences(ours, theirs) == ([], [])


def test_ledger_changes_add_up_to_the_expected_ledger(world):
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


def test_columns_of_outputs_are_those_of_their_bytes(world):
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
    assert protocol == "chrysalis" or wanted <= set(seen)


def test_milestone_ids(world):
    protocol, built = world
    keys = [bytes.fromhex(key.key) for key in coordinator_keys(protocol)] if protocol == "stardust" else ()
    for row in built.rows("milestones"):
        assert row["milestone_id"] == milestone_id(bytes.fromhex(row["payload"]), keys)


def test_receipts_migrate_what_no_transaction_created(world):
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


def test_announced_parameters_are_rows(spark):
    row = dict.fromkeys(DECODED.names) | {
        "kind": int(Row.MILESTONE),
        "date": date(2022, 9, 28),
        "milestone_index": 7,
        "timestamp": 1664323200,
        "parameters": {"target_index": 4_000_000_000, "version": 3, "parameters": b"\1\2"},
    }
    silent = row | {"milestone_index": 8, "parameters": None}
    frame = tangle_tables.protocol_parameters(spark.createDataFrame([row, silent], DECODED))
    assert [plain(one.asDict()) for one in shaped("protocol_parameters", frame).collect()] == [
        {
            "milestone_index": 7,
            "ms_timestamp": 1664323200,
            "target_milestone_index": 4_000_000_000,
            "protocol_version": 3,
            "params": "0102",
            "date": "2022-09-28",
        }
    ]


def test_a_day_alone_comes_out_as_in_the_range(spark, tmp_path):
    day = "2022-09-30"
    built = build(spark, SYNTHETIC / "stardust" / "archive", day, day, tmp_path / "decoded")
    assert built.refused == {}
    theirs = [row for row in expected("stardust", "messages") if row["date"] == day]
    assert differences(built.rows("messages"), theirs) == ([], [])
    for name in ("consumed_outputs", "address_analytics"):
        assert {row["date"] for row in built.rows(name)} == {day}
