"""Spark and DuckDB judge alike: the same rows, the same laws, the same findings."""

import datetime as dt
import random
import tempfile
from dataclasses import replace

import pyarrow as pa
import pytest

from permalake.audit.outcomes import failing_rows, law_outcomes, rule_outcomes
from permalake.audit.suspects import suspects
from permalake.audit.validation import rules_of
from permalake.domains import domain_of
from permalake.engine.duckdb_engine import DuckDBEngine
from support.audit_days import DAYS, scope, small_network, spark_scope
from support.law_cases import CASES, DamagedDay
from support.violating_rows import DAY, EVERY, violating


def test_rows_fail_the_same_rules(spark):
    """Every rule of every table, and for one table the rows that are named."""
    rows = violating(EVERY.values())
    in_memory, in_spark = scope(rows, EVERY), spark_scope(spark, rows, EVERY)
    for name, table in EVERY.items():
        rules = rules_of(table, [DAY])
        ours, theirs = (failing_rows(one.engine(name), table, rules) for one in (in_memory, in_spark))
        assert dict(zip([rule.name for rule in rules], theirs, strict=True)) == dict(
            zip([rule.name for rule in rules], ours, strict=True)
        ), name
        assert all(ours), name
        assert in_memory.engine(name).types(name) == in_spark.engine(name).types(name)
    table = EVERY["milestones"]
    named = [
        rule_outcomes(one.engine(table.name), table, rules_of(table, [DAY])) for one in (in_memory, in_spark)
    ]
    in_spark.release()
    assert named[0] == named[1]


@pytest.fixture(scope="module")
def damaged():
    """A day for each law of an IOTA network, damaged for it."""
    days = [DAYS[0] + dt.timedelta(n) for n in range(len(CASES))]
    rows = small_network(days)
    for day, damage in zip(days, CASES.values(), strict=True):
        damage(DamagedDay(rows, day))
    return rows


def test_laws_are_violated_alike(spark, damaged):
    """Hashes tell which sums differ, and no other; each form of law names the same places."""
    laws = domain_of("shimmer").laws()
    ours = law_outcomes(laws, scope(damaged))
    in_spark = spark_scope(spark, damaged)
    counted = [law for law in laws if law.kind != "violations"]
    assert suspects(counted, in_spark) == {law.name for law in counted}
    stated = [law for law in laws if law.kind == "violations"]
    some = [*stated, *(law for law in laws if law.name in ("tags_have_messages", "outputs_moved"))]
    theirs = law_outcomes(some, in_spark)
    in_spark.release()
    assert theirs == {law.name: ours[law.name] for law in some}
    assert all(outcome.count and not outcome.error for outcome in ours.values())


def test_sound_days_raise_no_suspicion(spark):
    counted = [law for law in domain_of("shimmer").laws() if law.kind != "violations"]
    for one in (scope(small_network()), spark_scope(spark, small_network())):
        assert suspects(counted, one) == set()
        one.release()


def test_laws_of_large_tables_are_violated_alike_in_memory(damaged):
    """DuckDB asks hashes first, and finds what it finds in small tables."""
    laws = domain_of("shimmer").laws()
    counted = [law for law in laws if law.kind != "violations"]
    large = replace(scope(damaged), is_small=lambda _: False)
    assert all(large.reads_large(*law.sides) for law in laws)
    assert suspects(counted, large) == {law.name for law in counted}
    assert law_outcomes(laws, large) == law_outcomes(laws, scope(damaged))


def test_bytes_are_found_in_bytes():
    """Also those that are there twice, the first time from the middle of a byte on."""
    choose, alphabet = random.Random(1), bytes.fromhex("000110111771")
    made = [
        [bytes(choose.choices(alphabet, k=choose.randint(0, most))) for most in (8, 3)] for _ in range(2_000)
    ]
    rows = [*made, [bytes.fromhex("011010"), bytes.fromhex("10")], [None, b"a"], [b"a", None]]
    stored = pa.table(
        {name: pa.array([row[at] for row in rows], pa.binary()) for at, name in enumerate(("x", "p"))}
    )
    engine = DuckDBEngine(lambda _: stored)
    engine.open("texts")
    found = [row["found"] for row in engine.rows("SELECT contains(x, p) AS found FROM texts")]
    assert found == [None if None in row else row[1] in row[0] for row in rows]
    engine.release()


def test_what_exceeds_the_memory_goes_to_disk_and_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = DuckDBEngine({}.__getitem__, memory="100m")
    engine.keep("many", "SELECT range AS n, hash(range)::text || repeat('x', 60) AS t FROM range(3000000)")
    assert engine.rows("SELECT count(DISTINCT n) AS n, max(length(t)) > 60 AS is_long FROM many") == [
        {"n": 3_000_000, "is_long": True}
    ]
    assert list(tmp_path.rglob("*.tmp"))
    engine.release()
    assert not list(tmp_path.iterdir())


def test_duckdb_counts_bytes_of_text_and_of_binary_values():
    stored = pa.table({"name": ["é\\x41", None], "data": [b"\0\xff", b""]})
    engine = DuckDBEngine(lambda _: stored)
    engine.open("stored")
    query = "SELECT octet_length(name) AS name, octet_length(data) AS data FROM stored"
    assert engine.rows(query) == [{"name": 6, "data": 2}, {"name": None, "data": 0}]
