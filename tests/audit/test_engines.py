"""The engine of audits: small and large tables, bytes, and what exceeds the memory."""

import datetime as dt
import random
import tempfile
from dataclasses import replace

import pyarrow as pa
import pytest

from permalake.audit.hash_prefilter import hash_prefilter
from permalake.audit.outcomes import law_outcomes
from permalake.domains import domain_of
from permalake.engine.duckdb_engine import DuckDBEngine
from support.audit_days import DAYS, scope, small_network
from support.law_cases import CASES, DamagedDay


@pytest.fixture(scope="module")
def damaged():
    """A day for each law of an IOTA network, damaged for it."""
    days = [DAYS[0] + dt.timedelta(n) for n in range(len(CASES))]
    rows = small_network(days)
    for day, damage in zip(days, CASES.values(), strict=True):
        damage(DamagedDay(rows, day))
    return rows


def test_sound_days_raise_no_suspicion() -> None:
    counted = [law for law in domain_of("shimmer").laws() if law.kind != "violations"]
    sound = scope(small_network())
    assert hash_prefilter(counted, sound) == set()
    sound.release()


def test_laws_of_large_tables_are_violated_as_those_of_small_ones(damaged) -> None:
    """Hashes are asked first, and tell which sums differ, and no other."""
    laws = domain_of("shimmer").laws()
    counted = [law for law in laws if law.kind != "violations"]
    large = replace(scope(damaged), is_small=lambda _: False)
    assert all(large.reads_large(*law.sides) for law in laws)
    assert hash_prefilter(counted, large) == {law.name for law in counted}
    assert law_outcomes(laws, large) == law_outcomes(laws, scope(damaged))


def test_bytes_are_found_in_bytes() -> None:
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
    found = [row["found"] for row in engine.rows("SELECT bytes_contain(x, p) AS found FROM texts")]
    assert found == [None if None in row else row[1] in row[0] for row in rows]
    engine.release()


def test_what_exceeds_the_memory_goes_to_disk_and_is_removed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = DuckDBEngine({}.__getitem__, memory="100m")
    engine.keep("many", "SELECT range AS n, hash(range)::text || repeat('x', 60) AS t FROM range(3000000)")
    assert engine.rows("SELECT count(DISTINCT n) AS n, max(length(t)) > 60 AS is_long FROM many") == [
        {"n": 3_000_000, "is_long": True}
    ]
    assert list(tmp_path.rglob("*.tmp"))
    engine.release()
    assert not list(tmp_path.iterdir())


def test_bytes_of_text_and_of_binary_values_are_counted() -> None:
    stored = pa.table({"name": ["é\\x41", None], "data": [b"\0\xff", b""]})
    engine = DuckDBEngine(lambda _: stored)
    engine.open("stored")
    query = "SELECT strlen(name) AS name, octet_length(data) AS data FROM stored"
    assert engine.rows(query) == [{"name": 6, "data": 2}, {"name": None, "data": 0}]
