"""DuckDB reads Parquet files on a disk itself, and sees what Arrow sees in them."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.engine.local_files import local_files

_TYPES = {
    "date": pa.date32(),
    "n": pa.int64(),
    "text": pa.large_string(),
    "data": pa.large_binary(),
    "moment": pa.timestamp("us", tz="UTC"),
    "price": pa.decimal128(38, 8),
    "sizes": pa.large_list(pa.int32()),
    "later": pa.string(),
}
_ROWS = [
    {
        "date": dt.date(2023, 1, 1),
        "n": n,
        "text": f"it's {n}",
        "data": bytes([n]),
        "moment": dt.datetime(2023, 1, 1, n, tzinfo=dt.UTC),
        "price": Decimal(n) / 8,
        "sizes": [n, None],
        "later": None,
    }
    for n in range(4)
]


def _schema(*names, **types):
    ids = {name: {"PARQUET:field_id": str(at)} for at, name in enumerate(_TYPES, 1)}
    return pa.schema(
        [pa.field(name, types.get(name, _TYPES[name]), metadata=ids[name]) for name in names or _TYPES]
    )


def _dataset(folder, schema):
    """Two files: one as the table is, one from before it had a column and wide numbers."""
    folder.mkdir()
    earlier = _schema("text", "date", "n", "data", "moment", "price", "sizes", n=pa.int32())
    for name, rows, own in (("a", _ROWS[:2], _schema()), ("b", _ROWS[2:], earlier)):
        pq.write_table(pa.Table.from_pylist(rows, own), folder / f"{name}.parquet")
    files = [str(folder / f"{name}.parquet") for name in "ab"]
    return ds.dataset(files, schema=schema, format="parquet", filesystem=LocalFileSystem())


def _seen(rows):
    engine = DuckDBEngine(lambda _: rows)
    engine.open("stored")
    found = engine.rows("SELECT * FROM stored ORDER BY n"), engine.types("stored")
    engine.release()
    return found


@pytest.mark.parametrize("folder", ["plain", "it's one", "date=2023-01-01"])
def test_both_readers_see_the_same(tmp_path, folder) -> None:
    rows = _dataset(tmp_path / folder, _schema())
    assert len(local_files(rows)) == 2
    found = _seen(rows)
    assert found == _seen(rows.to_table())
    expected = [row | {"moment": row["moment"].replace(tzinfo=None)} for row in _ROWS]
    assert found[0] == expected


def test_a_narrowed_engine_sees_its_days_alone(tmp_path) -> None:
    folder = tmp_path / "files"
    rows = _dataset(folder, _schema())
    for row, path in zip((_ROWS[0], _ROWS[1]), ("c", "d"), strict=True):
        later = row | {"date": dt.date(2023, 1, 1 + row["n"])}
        pq.write_table(pa.Table.from_pylist([later], _schema()), folder / f"{path}.parquet")
    files = [*rows.files, str(folder / "c.parquet"), str(folder / "d.parquet")]
    rows = ds.dataset(files, schema=_schema(), format="parquet", filesystem=LocalFileSystem())
    for stored in (rows, rows.to_table()):
        engine = DuckDBEngine(lambda _, stored=stored: stored)
        for start, end, count in ((1, 1, 5), (2, 2, 1), (1, 2, 6)):
            narrowed = engine.narrowed(dt.date(2023, 1, start), dt.date(2023, 1, end))
            narrowed.open("stored")
            narrowed.open("previous_stored")
            assert len(narrowed.rows("SELECT * FROM stored")) == count
            assert narrowed.rows("SELECT * FROM previous_stored") == []
            narrowed.release()
        engine.release()


@pytest.mark.parametrize("folder", ["a*", "a[b]", "a?"])
def test_names_like_patterns_are_left_to_arrow(tmp_path, folder) -> None:
    rows = _dataset(tmp_path / folder, _schema())
    assert local_files(rows) == []
    assert len(_seen(rows)[0]) == len(_ROWS)


def test_what_duckdb_cannot_read_is_left_to_arrow(tmp_path) -> None:
    unnumbered = pa.schema([pa.field(name, kind) for name, kind in _TYPES.items()])
    rows = _dataset(tmp_path / "files", unnumbered)
    elsewhere = ds.dataset(
        ["a.parquet"],
        schema=_schema(),
        format="parquet",
        filesystem=SubTreeFileSystem(str(tmp_path / "files"), LocalFileSystem()),
    )
    for one in (rows, elsewhere, rows.to_table(), ds.dataset(_schema().empty_table())):
        assert local_files(one) == []
    assert _seen(rows) == _seen(rows.to_table())
    assert len(_seen(elsewhere)[0]) == 2
