"""The ledger that published days tell."""

import pyarrow as pa
import pyarrow.dataset as ds

from permalake.iota.cone.ledger_history import EarlierOutputs
from permalake.iota.cone.touched_outputs import TOUCHED


def test_it_tells_what_created_and_consumed_an_output() -> None:
    tables = {
        "legacy_outputs": [
            {"output_id": "aa" * 34, "milestone_index": 1, "data": b"a"},
            {"output_id": "bb" * 34, "milestone_index": 1, "data": b"b"},
        ],
        "consumed_outputs": [
            {"output_id": "aa" * 34, "milestone_index": 2, "transaction_id": "11" * 32},
            {"output_id": "bb" * 34, "milestone_index": 6, "transaction_id": "11" * 32},
            {"output_id": "00" * 32, "milestone_index": 2, "transaction_id": None},
        ],
    }
    published = {name: ds.dataset(pa.Table.from_pylist(rows)) for name, rows in tables.items()}
    earlier = EarlierOutputs.of(published.__getitem__, "chrysalis")
    asked = pa.array([b"\xaa" * 34, b"\xcc" * 34], pa.binary())
    rows = list(earlier.rows(asked))
    assert [table.schema for table in rows] == [TOUCHED, TOUCHED]
    assert [tuple(row.values()) for table in rows for row in table.to_pylist()] == [
        (b"\xaa" * 34, b"a", False, 1, 0),
        (b"\xaa" * 34, None, True, 2, 0),
    ]


def test_a_network_without_rows_tells_nothing() -> None:
    empty = pa.schema({"output_id": pa.string(), "milestone_index": pa.int32(), "data": pa.binary()})
    consumed = pa.schema(
        {"output_id": pa.string(), "milestone_index": pa.int32(), "transaction_id": pa.string()}
    )

    def published(name):
        return ds.dataset((consumed if name == "consumed_outputs" else empty).empty_table())

    rows = EarlierOutputs.of(published, "stardust").rows(pa.array([b"\xaa" * 34], pa.binary()))
    assert [len(table) for table in rows] == [0] * 5
