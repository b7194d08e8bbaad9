"""The daily metrics: against a walk over the ledger in plain Python, and days built one by one or at once."""

import gzip
import json
import random
import re
from collections import Counter
from datetime import date, timedelta
from itertools import pairwise

import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from permalake.audit.scope import Scope
from permalake.domains import domain_of
from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.errors import PermalakeError
from permalake.iota.codec.bech32 import decode_address
from permalake.iota.contracts import IOTA_TABLES, carried, ledger_changes, metrics
from permalake.iota.tables import ledger_daily
from permalake.iota.tables.carried_sums import CONTINUED, Ending, chained
from permalake.iota.tables.carried_tables import StateRules
from permalake.iota.tables.day_sums import BALANCE_CORRECTIONS, LEDGER_SUMS, ledger_sums
from permalake.iota.tables.day_tables import BALANCE_CHANGES
from permalake.iota.tables.day_tables import ledger_changes as ledger_changes_query
from permalake.iota.tables.decoded_columns import DecodedRange
from permalake.iota.tables.known_ledger import LedgerFile
from permalake.paths import SAMPLE
from permalake.pipeline.day_queries import cast
from support.audit_days import violations
from support.iota_days import (
    DATA,
    RICHEST,
    SYNTHETIC,
    build,
    coordinator_keys,
    decoded_rows,
    expected,
    plain,
    tangle,
)
from support.iota_network import Network
from support.iota_queries import carried_rows, queried
from support.lakes import pass_audit
from support.ledger_walk import Day, Output, days_of, measured, moved_tokens

OF_ADDRESSES = ("active_addresses", "address_balances", "token_distribution", "richest_addresses")
OF_OUTPUTS = ("ledger_outputs", "unlock_conditions")
RUNNING = (*OF_ADDRESSES, *OF_OUTPUTS, "ledger_totals")
SPANS = {"stardust": ("2022-09-28", "2022-09-30"), "chrysalis": ("2021-05-10", "2021-05-12")}


class World:
    """A synthetic tangle, built at once."""

    def __init__(self, spark, protocol, folder):
        self.spark = spark
        self.protocol = protocol
        self.walked = days_of(protocol)
        archive = (spark, SYNTHETIC / protocol / "archive", *SPANS[protocol])
        network = {
            "protocol": protocol,
            "hrp": tangle(protocol)["bech32_hrp"],
            "keys": coordinator_keys(protocol),
            "threshold": 2,
        }
        self.built = build(*archive, folder / "decoded", **network)
        self.decoded = DecodedRange(decoded_rows(*archive, **network), 1)

    def state_of(self, day, knows_before=True):
        """The carried tables of one day alone, going on from what the range says of the days before."""
        earlier = F.col("date") < day if knows_before else F.lit(False)
        return collected(
            lambda name: self.built.tables[name].where(F.col("date") == day),
            lambda name: self.built.tables[name].where(earlier),
            rented=self.protocol == "stardust",
        )


def collected(own, history, rented=True, ledger=None):
    """Rows of the carried tables by table."""
    made = carried_rows(own, history, StateRules(RICHEST, 100, rented, ledger))
    return {name: [plain(row) for row in rows.to_pylist()] for name, rows in made.items()}


@pytest.fixture(scope="module", params=["stardust", "chrysalis"])
def world(request, spark, tmp_path_factory):
    return World(spark, request.param, tmp_path_factory.mktemp(request.param))


def keyed(rows, name):
    """Rows by key, so that a difference shows where it is."""
    found = {tuple(row[column] for column in IOTA_TABLES[name].key): row for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("name", [*OF_ADDRESSES, *OF_OUTPUTS])
def test_figures_are_those_of_a_walk_over_the_ledger(world, name) -> None:
    walked = measured(world.walked, RICHEST)[name]
    assert walked
    assert keyed(world.built.rows(name), name) == keyed(walked, name)


def test_the_ledger_weighs_what_its_outputs_weigh(world) -> None:
    """TIP-19: v_byte_cost (100) x (10 x 34 bytes of id + the output and 40 bytes of metadata)."""
    count = size = amount = 0
    rows = sorted(world.built.rows("ledger_totals"), key=lambda row: row["date"])
    for day, row in zip(world.walked, rows, strict=True):
        for sign, outputs in ((1, day.created), (-1, day.consumed)):
            held = [one for one in outputs if one.kind != "treasury"]
            count += sign * len(held)
            size += sign * sum(one.size + 40 for one in held)
            amount += sign * sum(one.amount for one in held)
        assert (row["outputs"], row["amount"]) == (count, amount)
        weights = (row["key_bytes"], row["data_bytes"], row["storage_deposit"])
        stardust = (34 * count, size, 100 * (340 * count + size))
        assert weights == (stardust if world.protocol == "stardust" else (None, None, None))


@pytest.mark.parametrize("v_byte_cost", [100, 20_000])
def test_a_storage_deposit_is_the_rent_and_at_most_the_amount(world, v_byte_cost) -> None:
    """The high cost makes the rent exceed some amounts."""
    days = chained([(day.date, day.first, day.last) for day in world.walked], None)
    moved = ledger_sums(world.decoded.included, world.decoded.receipts, v_byte_cost)
    flows = moved.to_pylist()
    total, walked, limited = 0, {}, 0
    for day in world.walked:
        for sign, outputs in ((1, day.created), (-1, day.consumed)):
            for one in (one for one in outputs if one.kind != "treasury"):
                rent = v_byte_cost * (10 * 34 + 40 + one.size)
                total += sign * min(rent, one.amount)
                limited += one.amount < rent
        walked[day.date] = total
    assert ledger_daily.storage_deposits(flows, days, None) == walked
    assert limited or v_byte_cost == 100


def test_a_storage_deposit_goes_on_from_a_known_one_only() -> None:
    day = date(2022, 9, 28)
    flows = [
        {"date": day, "kind": "basic", "side": "created", "deposit": 30},
        {"date": day, "kind": "treasury", "side": "created", "deposit": 9},
        {"date": day, "kind": "nft", "side": "consumed", "deposit": 10},
    ]
    days = chained([(day, 11, 20)], Ending(date(2022, 9, 27), 10, 3, date(2022, 9, 1)))
    assert ledger_daily.storage_deposits(flows, days, 5) == {day: 25}
    assert ledger_daily.storage_deposits(flows, days, None) == {day: None}
    unknown = [*flows, {"date": day, "kind": "alias", "side": "created", "deposit": None}]
    assert ledger_daily.storage_deposits(unknown, days, 5) == {day: None}


def test_tokens_move_to_whoever_may_unlock_them(world) -> None:
    """An output that is created expired moves to its return address (the stardust tangle has one)."""
    rows = world.built.rows("ms_activity")
    assert {row["milestone_index"]: row["moved_tokens"] for row in rows} == moved_tokens(world.protocol)


def test_balances_change_as_the_generators_ledger_does(world) -> None:
    first, last = (holdings(day) for day in expected(world.protocol, "ledger"))
    before, after = (
        {row["address"]: row["balance"] for row in world.built.rows("address_balances") if row["date"] == day}
        for day in SPANS[world.protocol]
    )
    ours = {address: balance - before.get(address, 0) for address, balance in after.items()}
    theirs = {address: last[address] - first[address] for address in first.keys() | last.keys()}
    assert any(theirs.values())
    assert {a: n for a, n in ours.items() if n} == {a: n for a, n in theirs.items() if n}


def holdings(day):
    held = Counter()
    for output in day["unspent"]:
        held[output["address"]] += output["amount"]
    return held


def test_a_day_alone_is_the_day_of_the_range(world) -> None:
    day = SPANS[world.protocol][1]
    alone = world.state_of(day)
    for name in RUNNING:
        of_range = [row for row in world.built.rows(name) if row["date"] == day]
        assert keyed(alone[name], name) == keyed(of_range, name)


def test_a_day_whose_past_is_unknown_counts_from_its_first_milestone(world) -> None:
    alone = world.state_of(SPANS[world.protocol][1], knows_before=False)
    walked = measured(world.walked[1:], RICHEST)
    for name in (*OF_ADDRESSES, *OF_OUTPUTS):
        assert keyed(alone[name], name) == keyed(walked[name], name)
    assert {row["since_milestone"] for row in alone["token_distribution"]} == {world.walked[1].first}


def ledger_before(protocol):
    """Raw outputs that were unspent before the tangle's first milestone: what its days consumed or left, and
    did not create."""
    tables = [f"{kind}_outputs" for kind in ("basic", "alias", "foundry", "nft", "legacy")]
    created = {row["output_id"] for table in tables for row in expected(protocol, table)}
    file = SYNTHETIC / protocol / "archive" / "consumed_outputs.jsonl.gz"
    consumed = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    held = {row["outputId"].removeprefix("0x"): row["rawOutput"] for row in consumed}
    for row in expected(protocol, "ledger")[-1]["unspent"]:
        _, kind, value = decode_address(row["address"])
        owner, amount = bytes([kind]) + value, row["amount"].to_bytes(8, "little")
        plain_output = {"legacy": b"\0" + owner + amount, "basic": b"\3" + amount + b"\0\1\0" + owner + b"\0"}
        if row["output_id"] not in created:
            held[row["output_id"]] = plain_output[row["kind"]].hex()
    raw = [output for output_id, output in held.items() if output_id not in created]
    if protocol == "chrysalis":
        [first, *_] = (one for one in days_of(protocol)[0].consumed if one.kind == "treasury")
        raw.append((b"\2" + first.amount.to_bytes(8, "little")).hex())
    return raw


def test_figures_that_go_on_from_a_known_ledger_are_absolute(world, spark, tmp_path) -> None:
    protocol, built = world.protocol, world.built
    file = tmp_path / "ledger.jsonl.gz"
    lines = (json.dumps({"rawOutput": f"0x{raw}", "more": {}}) + "\n" for raw in ledger_before(protocol))
    file.write_bytes(gzip.compress("".join(lines).encode()))
    ledger = LedgerFile(file, protocol, tangle(protocol)["bech32_hrp"], world.walked[0].first - 1)

    def nothing(name):
        return spark.createDataFrame([], IOTA_TABLES[name].spark)

    rows = collected(built.tables.__getitem__, nothing, protocol == "stardust", ledger)
    held = {}
    for day in expected(protocol, "ledger"):
        balances = holdings(day)
        at = {name: [row for row in found if row["date"] == day["date"]] for name, found in rows.items()}
        assert {row["since_milestone"] for name in at for row in at[name] if "since_milestone" in row} == {
            None
        }
        held |= {row["address"]: row["balance"] for row in at["address_balances"]}
        assert {address: balance for address, balance in held.items() if balance} == balances
        richest = [row["balance"] for row in sorted(at["richest_addresses"], key=lambda row: row["rank"])]
        assert richest == sorted(balances.values(), reverse=True)[:RICHEST]
        assert sum(row["addresses"] for row in at["token_distribution"]) == len(balances)
        kinds = Counter(output["kind"] for output in day["unspent"])
        for row in at["ledger_outputs"]:
            if row["kind"] == "treasury":
                assert row["unspent_amount"] == day["treasury"]
            else:
                assert row["unspent_count"] == kinds[row["kind"]]
        [total] = at["ledger_totals"]
        assert total["amount"] + day["treasury"] == day["total_supply"]


def test_a_known_ledger_holds_outputs_only(tmp_path) -> None:
    file = tmp_path / "ledger.jsonl"
    file.write_text('{"rawOutput": "0300"}\n')
    ledger = LedgerFile(file, "stardust", "smr", 1)
    with pytest.raises(PermalakeError, match="a line holds no output of stardust"):
        list(ledger.batches())
    for line in ("{}", '{"rawOutput": "xy"}', '{"rawOutput": 3}', "no JSON"):
        file.write_text(line + "\n")
        with pytest.raises(PermalakeError, match=re.escape(str(file))):
            list(ledger.batches())
    nowhere = LedgerFile(tmp_path / "nothing", "stardust", "smr", 1)
    with pytest.raises(PermalakeError, match=r"set networks\.NAME\.ledger"):
        list(nowhere.batches())


DAMAGE = {
    "daily_activity": ("booked_tokens", "true", {("activity_of_days", "booked_tokens")}),
    "active_addresses": ("addresses", "period = 'day'", {("active_on_the_day", "addresses")}),
    "ledger_outputs": (
        "unspent_bytes",
        "kind = 'treasury'",
        {("ledger_outputs_go_on", "treasury unspent bytes")},
    ),
    "unlock_conditions": (
        "created_amount",
        "condition = 'timelock'",
        {("unlock_conditions_go_on", "timelock unspent amount")},
    ),
    "token_distribution": ("amount", "bucket = 6", {("distribution_adds_up", "amount")}),
    "richest_addresses": ("rank", f"rank = {RICHEST}", {("richest_in_order", f"rank {RICHEST + 1}")}),
}


def test_laws_name_what_is_damaged_and_nothing_else(world) -> None:
    day = SPANS[world.protocol][1]
    tables, wanted = dict(world.built.tables), set()
    for name, (column, where, found) in DAMAGE.items():
        value = F.col(column) + F.expr(f"if({where} and date = '{day}', 1, 0)").cast("int")
        tables[name] = tables[name].withColumn(column, value)
        wanted |= found
    laws = [
        law
        for law in domain_of("shimmer").laws()
        if law.table in {table.name for table in (*metrics.TABLES, *ledger_changes.TABLES, *carried.TABLES)}
    ]
    engine = DuckDBEngine(lambda name: tables[name].toArrow())
    rows = violations(laws, Scope(frozenset(tables), engine))
    assert {(row["law"], row["place"], row["date"]) for row in rows} == {
        (law, place, day) for law, place in wanted
    }


# -- Many days ---------------------------------------------------------------------------------------


def history_of_days(seed=7):
    """Days over two turns of months and one of a year, some missing, some with milestones missing before."""
    chance = random.Random(seed)
    holders = [f"smr1q{name}" for name in "acdefghjklmnpqrstuvwxyz023456789"]
    days, milestone, unspent = [], 100, []
    for offset in range(58):
        day = date(2022, 12, 12) + timedelta(days=offset)
        if chance.random() < 0.3:
            milestone += chance.random() < 0.2
            continue
        one = Day(day, milestone, milestone + 9)
        for _ in range(chance.randrange(4)):
            one.created.append(Output("basic", 10 ** chance.randrange(1, 9), 46, chance.choice(holders)))
        for _ in range(min(chance.randrange(4), len(unspent))):
            one.consumed.append(unspent.pop(chance.randrange(len(unspent))))
        unspent += one.created
        one.active = {output.owner for output in (*one.created, *one.consumed)}
        days.append(one)
        milestone += 10
    return days


def own_tables(spark, days):
    """What carrying reads of days: date_cache, ledger_changes (none) and balance_changes."""
    moves = [
        (day.date, day.first, one.owner, sent * one.amount, (1 - sent) * one.amount)
        for day in days
        for sent, outputs in ((0, day.created), (1, day.consumed))
        for one in outputs
    ]
    bounds = [(day.date, day.first, day.last) for day in days]
    schema = "date date, milestone_index int, address string, sent_tokens long, recv_tokens long"
    cache = spark.createDataFrame(bounds, "date date, start_ms int, end_ms int").coalesce(1)
    moved = spark.createDataFrame(moves, schema).coalesce(1)

    def nothing(sums):
        return spark.createDataFrame([], from_arrow_schema(sums))

    return {
        "date_cache": cache,
        "ledger_changes": queried(
            spark,
            cast(ledger_changes_query(100), IOTA_TABLES["ledger_changes"]),
            date_cache=cache,
            ledger_sums=nothing(LEDGER_SUMS),
        ),
        "balance_changes": queried(
            spark,
            cast(BALANCE_CHANGES, IOTA_TABLES["balance_changes"]),
            address_analytics=moved,
            balance_corrections=nothing(BALANCE_CORRECTIONS),
        ),
    }


def test_days_in_parts_of_any_length_are_the_days_at_once(spark) -> None:
    days = history_of_days()
    assert sum(a.last + 1 != b.first for a, b in pairwise(days)) >= 2
    known = {name: [] for name in RUNNING}

    def history(name):
        rows = [tuple(row[column] for column in IOTA_TABLES[name].names) for row in known[name]]
        dated = [
            [_value(c.type, v) for c, v in zip(IOTA_TABLES[name].columns, row, strict=True)] for row in rows
        ]
        return spark.createDataFrame(dated, IOTA_TABLES[name].spark).coalesce(1)

    for start, end in ((0, 9), (9, 10), (10, len(days))):
        here = own_tables(spark, days[start:end])
        for name, rows in collected(here.__getitem__, history).items():
            known[name] += rows
    walked = measured(days, RICHEST)
    for name in OF_ADDRESSES:
        assert keyed(known[name], name) == keyed(walked[name], name)
    at_once = collected(own_tables(spark, days).__getitem__, empty(spark))
    for name in RUNNING:
        assert keyed(known[name], name) == keyed(at_once[name], name)


def tables_at_once(spark, days):
    """The carried tables of days that are built together, as frames of the contracts' types."""
    own = own_tables(spark, days)
    return carried_frames(spark, own.__getitem__, empty(spark))


def carried_frames(spark, own, history):
    made = carried_rows(own, history, StateRules(RICHEST, 100))
    return {name: spark.createDataFrame(rows) for name, rows in made.items()}


def empty(spark):
    return lambda name: spark.createDataFrame([], IOTA_TABLES[name].spark)


def rows_of(tables, since):
    """Rows per table from a date on."""
    return {
        name: keyed([plain(row.asDict()) for row in frame.where(F.col("date") >= since).collect()], name)
        for name, frame in tables.items()
    }


def days_in_a_row(*movements):
    """Days of one milestone each: (date, owner of what is created, owner of what is consumed)."""
    found = []
    for milestone, (day, receiver, sender) in enumerate(movements, start=1):
        one = Day(date.fromisoformat(day), milestone, milestone)
        one.created = [Output("basic", 100, 46, f"smr1q{receiver}")]
        one.consumed = [Output("basic", 100, 46, f"smr1q{sender}")] if sender else []
        one.active = {output.owner for output in (*one.created, *one.consumed)}
        found.append(one)
    return found


def test_carried_rows_do_not_depend_on_where_a_run_began(spark) -> None:
    """An address that was emptied in another year comes back: a checkpoint between has forgotten it."""
    days = days_in_a_row(
        ("2021-03-01", "aaaaaa", None),
        ("2021-03-02", "cccccc", "aaaaaa"),
        ("2022-02-01", "dddddd", "cccccc"),
        ("2022-02-02", "aaaaaa", "dddddd"),
    )
    last = days[-1].date
    together = tables_at_once(spark, days)
    alone = carried_frames(spark, own_tables(spark, days[-1:]).__getitem__, together.__getitem__)
    assert rows_of(alone, last) == rows_of(together, last)


def _value(kind, value):
    return date.fromisoformat(value) if kind == "date" and value else value


def test_chapters_and_checkpoints() -> None:
    days = [
        (date(2022, 9, 29), 11, 20),
        (date(2022, 9, 30), 21, 30),
        (date(2022, 10, 1), 31, 40),
        (date(2022, 10, 4), 41, 50),
        (date(2022, 10, 5), 52, 60),
    ]
    before = Ending(date(2022, 9, 28), 10, 3, date(2022, 9, 2))
    found = chained(days, before)
    assert [day.chapter for day in found] == [CONTINUED] * 4 + [1]
    assert [day.since_milestone for day in found] == [3, 3, 3, 3, 52]
    assert [day.checkpoint.isoformat()[5:] for day in found] == ["09-02", "09-02", "10-01", "10-01", "10-05"]
    assert [day.since_milestone for day in chained(days[:2], None)] == [11, 11]
    assert chained(days[4:], Ending(date(2022, 10, 4), 50, None, date(2022, 10, 1)))[0].since_milestone == 52
    assert chained(days[:1], Ending(date(2022, 9, 28), 10, None, date(2022, 9, 1)))[0].since_milestone is None


# -- Real milestones ---------------------------------------------------------------------------------


def test_the_sample_changes_the_ledger_as_the_indexer_measured(spark, tmp_path) -> None:
    """Totals before 17339 are not known; what 17340 changed is the difference of the two."""
    measurements = json.loads((DATA / "iota" / "expected_measurements.json").read_text())
    day = "2022-09-28"
    rows = decoded_rows(spark, SAMPLE / "shimmer", day, day)
    later = DecodedRange(rows.filter(pc.equal(rows["milestone_index"], 17340)), 1)
    days = chained([(date(2022, 9, 28), 17340, 17340)], None)
    flows = ledger_sums(later.included, later.receipts, 100).to_pylist()
    outputs = ledger_daily.ledger_outputs(flows, days, [])
    deposits = ledger_daily.storage_deposits(flows, days, None)
    size = ledger_daily.ledger_size(outputs, days[0].day, deposits[days[0].day], rented=True)
    ours = {
        "ledger_size.total_key_bytes": size["key_bytes"],
        "ledger_size.total_data_bytes": size["data_bytes"],
        "ledger_size.total_storage_deposit_amount.0": size["storage_deposit"],
    }
    for row in outputs:
        if row["kind"] not in {"legacy", "treasury"}:
            ours[f"ledger_outputs.{row['kind']}.count"] = row["unspent_count"]
            ours[f"ledger_outputs.{row['kind']}.amount.0"] = row["unspent_amount"]
    for row in ledger_daily.unlock_conditions(flows, days, []):
        ours[f"unlock_conditions.{row['condition']}.count"] = row["unspent_count"]
        ours[f"unlock_conditions.{row['condition']}.amount.0"] = row["unspent_amount"]
        if row["condition"] == "storage_deposit_return":
            inner = "unlock_conditions.storage_deposit_return_inner_amount"
            ours[inner] = row["unspent_return_amount"]
    change = {name: measurements["17340"][name] - value for name, value in measurements["17339"].items()}
    stateful = ("ledger_outputs.", "ledger_size.", "unlock_conditions.")
    assert ours == {name: value for name, value in change.items() if name.startswith(stateful)}
    assert change["ledger_size.total_data_bytes"] == 26


# -- In a lake ---------------------------------------------------------------------------------------


def test_a_day_built_late_is_carried_into_the_days_after_it(spark, tmp_path, monkeypatch) -> None:
    """The later day first: it counts from its own beginning until the earlier one is there. No day is stale,
    or built again."""
    network = Network(spark, tmp_path, SYNTHETIC / "stardust" / "archive", monkeypatch)
    early, late = SPANS["stardust"]
    for day in (late, early):
        network.run("iota_ingest", day, run_id=day)
        network.run("iota_analytics", day, run_id=day)
        pass_audit(network.lake.resume("shimmer", day))
        assert network.lake.publish("shimmer", day).withheld == {}
        network.run("carry", day, run_id=day)
        assert not any(one.stale for one in network.lake.reader.status("shimmer"))
    walked = measured(days_of("stardust"), RICHEST)
    for name in (*OF_ADDRESSES[:3], *OF_OUTPUTS):
        rows = [plain(row) for row in network.lake.query(f"from shimmer.{name}").to_pylist()]
        assert keyed(rows, name) == keyed(walked[name], name)
