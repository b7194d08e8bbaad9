"""Which day a document belongs to, and which copies decide a day."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permalake.wormhole.tables.documents import whole_messages
from support.deciding_vaas import candidates

EMITTER = bytes([7]) * 32
SCHEMA = (
    "source string, origin string, claimed_id string, raw binary, fault string, "
    "document_time timestamp, indexed_at timestamp, tx_id string"
)
MARCH_10 = dt.datetime(2024, 3, 10, 12)
DAY = dt.date(2024, 3, 10)


def vaa(timestamp, sequence=1, signatures=1, chain=2, payload=b""):
    body = timestamp.to_bytes(4) + bytes(4) + chain.to_bytes(2) + EMITTER + sequence.to_bytes(8) + b"\x01"
    return b"\x01" + bytes(4) + bytes([signatures]) + bytes(66 * signatures) + body + payload


def seconds(moment):
    return int(moment.replace(tzinfo=dt.UTC).timestamp())


def identity(sequence=1) -> str:
    return f"2/{EMITTER.hex()}/{sequence}"


@pytest.fixture
def run(spark):
    def of(rows, start, end=None):
        blank = dict.fromkeys(("claimed_id", "fault", "document_time", "indexed_at", "tx_id"))
        full = [{"source": "files", "origin": f"o{n}", **blank, **row} for n, row in enumerate(rows)]
        frame = spark.createDataFrame(full, SCHEMA)
        return candidates(frame, start, end or start).sort_by("origin").to_pylist()

    return of


OLD = seconds(dt.datetime(2020, 7, 31, 23, 59, 59))


DATED = [
    (vaa(seconds(MARCH_10)), None, None, DAY),
    (vaa(seconds(MARCH_10), signatures=0), dt.datetime(2024, 4, 1), None, DAY),
    (vaa(OLD + 1, sequence=3), MARCH_10, None, dt.date(2020, 8, 1)),
    (vaa(OLD, sequence=4), MARCH_10, dt.datetime(2024, 4, 1), DAY),
    (vaa(0, sequence=5), dt.datetime(1970, 1, 1), MARCH_10, DAY),
    (vaa(1, sequence=6), None, None, dt.date(1970, 1, 1)),
    (b"", MARCH_10, None, DAY),
    (vaa(seconds(MARCH_10), signatures=13)[:400], None, dt.datetime(2024, 3, 10, 23), DAY),
    (b"\x02" + vaa(seconds(dt.datetime(2023, 1, 1)))[1:], MARCH_10, None, DAY),
    (b"\x01\x00", None, None, dt.date(1970, 1, 1)),
]


def test_the_date_of_a_document(run) -> None:
    rows = [{"raw": raw, "document_time": told, "indexed_at": seen} for raw, told, seen, _ in DATED]
    found = run(rows, dt.date(1970, 1, 1), dt.date(2100, 1, 1))
    assert {row["origin"]: row["date"] for row in found} == {
        f"o{n}": date for n, (*_, date) in enumerate(DATED)
    }
    assert [row["origin"] for row in run(rows, dt.date(2020, 8, 1))] == ["o2"]


def test_copies_without_times_do_not_move_a_governance_message(run) -> None:
    rows = [
        {"raw": vaa(0)},
        {"raw": vaa(0), "document_time": dt.datetime(2024, 3, 11)},
        {"raw": vaa(0, signatures=2), "document_time": MARCH_10, "origin": "other"},
    ]
    assert run(rows, dt.date(1970, 1, 1)) == []
    assert [(row["raw"], row["origin"], row["date"]) for row in run(rows, DAY)] == [
        (vaa(0), "o0", DAY),
        (vaa(0, signatures=2), "other", DAY),
    ]


def test_copies_of_an_identity_on_other_days_are_seen(run) -> None:
    late = dt.datetime(2024, 3, 12)
    rows = [
        {"raw": vaa(seconds(MARCH_10))},
        {"raw": vaa(seconds(late))},
        {"raw": vaa(seconds(late), sequence=2)},
        {"raw": vaa(0, payload=b"old"), "document_time": late},
    ]
    assert [(row["origin"], row["in_range"]) for row in run(rows, DAY)] == [
        ("o0", True),
        ("o1", False),
        ("o3", False),
    ]


def test_a_document_that_claims_another_identity_keeps_its_transaction_to_itself(run) -> None:
    rows = [
        {"raw": vaa(seconds(MARCH_10)), "claimed_id": identity(9), "tx_id": "0xother"},
        {"raw": vaa(seconds(MARCH_10), sequence=2), "claimed_id": identity(2), "tx_id": "0xown"},
        {"raw": vaa(seconds(MARCH_10), sequence=2), "claimed_id": identity(2)},
    ]
    assert [(row["origin"], row["tx_id"]) for row in run(rows, DAY)] == [("o0", None), ("o1", "0xown")]


@given(st.lists(st.integers(1, 15_000), max_size=8), st.integers(500, 12_000))
def test_groups_of_rows_hold_whole_messages_in_order(copies, batch_rows) -> None:
    message = np.repeat(np.arange(len(copies)), copies)
    rows = pa.table({"message": pa.array(message).cast(pa.string()), "n": np.arange(len(message))})
    groups = list(whole_messages(rows.to_batches(max_chunksize=batch_rows)))
    assert pa.concat_tables([rows.slice(0, 0), *groups]).equals(rows)
    seen = [set(group["message"].unique().to_pylist()) for group in groups]
    assert sum(map(len, seen)) == len(copies)
    assert all(group.num_rows <= 10_000 + batch_rows + max(copies, default=0) for group in groups)
