"""Queries of this process: DuckDB over Arrow tables, or over files that are read as needed.

Predicates of rules, queries of laws and those that make tables are written in DuckDB's SQL. Beside its own
functions they may call ``bytes_contain(bytes, part)`` and ``spark_xxhash64(text, number, date)``, and those
that a query brings (:mod:`permalake.contracts.sql_functions`). Moments are in UTC, nulls come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from inspect import Parameter, Signature

import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType
from pyspark.sql.pandas.types import from_arrow_type

from permalake.arrays.spark_hash import spark_xxhash64
from permalake.contracts.rows import Row
from permalake.contracts.schema import duckdb_type
from permalake.contracts.sql_functions import SqlFunction
from permalake.engine.connection import connect
from permalake.engine.local_files import local_files, read_by_duckdb
from permalake.engine.rows import PREVIOUS, VIOLATIONS, Check, Relation

Rows = Callable[[str], Relation]
_MACROS = (
    r"parted_hex(x) AS regexp_replace(hex(x), '(..)', '\1 ', 'g')",
    # DuckDB does not search bytes: their digits are searched. Where a match begins within a byte there may be
    # another, so the digits are parted then.
    "bytes_contain(x, part) AS CASE WHEN instr(hex(x), hex(part)) % 2 = 1 THEN true"
    " WHEN instr(hex(x), hex(part)) = 0 THEN false ELSE instr(parted_hex(x), parted_hex(part)) > 0 END",
)
_BATCH = 10_000
_LARGE_BATCH = 100_000


class DuckDBEngine:
    """A DuckDB connection that knows tables as Arrow, and reads Parquet files on a disk itself.

    ``table`` returns the audited rows of a table, ``previous`` those of the latest day before. What does not
    fit ``memory`` (as ``8g``; DuckDB's own limit when left out) goes to the folder for temporary files.
    ``days``: the first and last day of which there are rows; all when left out. ``reach``: days more at
    either end, by table. ``threads``: how many work; one per core when left out.
    """

    def __init__(
        self,
        table: Rows,
        previous: Rows | None = None,
        memory: str | None = None,
        days: tuple[date, date] | None = None,
        threads: int | None = None,
        *,
        reach: Mapping[str, int] | None = None,
    ) -> None:
        self._table = table
        self._days = days
        self._reach = reach or {}
        self._previous = previous
        self._memory = memory
        self._types: dict[str, dict[str, str]] = {}
        self._put: set[str] = set()
        self._kept: set[str] = set()
        self._connection = connect()
        self._connection.execute("SET default_null_order = 'nulls_first'")
        if memory is not None:
            self._connection.execute(f"SET memory_limit = '{memory}b'")  # Java's 8g is DuckDB's 8gb
        if threads is not None:
            self._connection.execute(f"SET threads = {threads:d}")
        self.define(_HASH_OF_THREE)
        for macro in _MACROS:
            self._connection.execute(f"CREATE MACRO {macro}")

    def define(self, function: SqlFunction) -> None:
        """Make a function known to queries."""
        self._connection.create_function(
            function.name,
            _of_arrays(function),
            [duckdb_type(kind) for kind in function.takes],
            duckdb_type(function.gives),
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
        )

    def open(self, name: str) -> None:
        """Read a table."""
        if not name.startswith(PREVIOUS):
            rows = self._table(name)
        elif self._previous is not None:
            rows = self._previous(name.removeprefix(PREVIOUS))
        else:
            rows = self._table(name.removeprefix(PREVIOUS)).schema.empty_table()
        self._types[name] = {field.name: from_arrow_type(field.type).simpleString() for field in rows.schema}
        stored = f"{name}_as_stored"
        if files := local_files(rows):
            stored = read_by_duckdb(files, rows.schema, self._own_types(rows.schema))
        else:
            self.put(stored, rows)
        columns = _plain(rows.schema)
        self._connection.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM {stored}{self._of_days(name)}")

    def _of_days(self, name: str) -> str:
        """Return the condition of the rows of a table that are there."""
        if self._days is None:
            return ""
        more = timedelta(days=self._reach.get(name, 0))
        return f" WHERE date BETWEEN DATE '{self._days[0] - more}' AND DATE '{self._days[1] + more}'"

    def _own_types(self, schema: pa.Schema) -> dict[str, str]:
        """Return DuckDB's names of the types of columns."""
        self._connection.register("no_rows", schema.empty_table())
        described: list[tuple[str, ...]] = self._connection.execute("DESCRIBE no_rows").fetchall()
        self._connection.unregister("no_rows")
        return {name: kind for name, kind, *_ in described}

    def put(self, name: str, rows: Relation | pa.RecordBatchReader) -> None:
        """Make rows known by name; those of a reader are kept, and what it raises stays as it is."""
        if isinstance(rows, pa.RecordBatchReader):
            self._copy(name, rows)
            return
        self._connection.register(name, rows)
        self._put.add(name)

    def _copy(self, name: str, batches: pa.RecordBatchReader) -> None:
        batch = f"{name}_batch"
        self.put(batch, batches.schema.empty_table())
        self.keep(name, f"SELECT * FROM {batch}")
        for rows in batches:
            self.put(batch, pa.Table.from_batches([rows]))
            self._connection.execute(f"INSERT INTO {name} SELECT * FROM {batch}")

    def keep(self, name: str, query: str, check: Check | None = None, schema: pa.Schema = VIOLATIONS) -> None:
        """Make the rows of a query known by name, or the few that ``check`` makes of them."""
        if check is None:
            self._connection.execute(f"CREATE TEMP TABLE {name} AS {query}")
            self._kept.add(name)
            return
        batches = self._connection.sql(query).to_arrow_reader(_BATCH)
        tables = [pa.table(dict(zip(schema.names, batch.columns, strict=True))) for batch in check(batches)]
        self.put(name, pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables)]))

    def types(self, name: str) -> dict[str, str]:
        """Return the columns of an open table with Spark's names of their types."""
        return self._types[name]

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query in batches."""
        yield from self._connection.sql(query).to_arrow_reader(_LARGE_BATCH)

    def table(self, query: str) -> pa.Table:
        """Return the rows of a query as Arrow."""
        return self._connection.sql(query).to_arrow_table()

    def rows(self, query: str) -> list[Row]:
        """Return the rows of a query."""
        rows: list[Row] = self.table(query).to_pylist()
        return rows

    def narrowed(self, start: date, end: date) -> DuckDBEngine:
        """Return an engine for ``start`` to ``end`` only, with as many days more of each table."""
        return DuckDBEngine(self._table, memory=self._memory, days=(start, end), reach=self._reach)

    def forget(self) -> None:
        """Let go of what was opened, put and kept by name."""
        for name in self._types:
            self._connection.execute(f"DROP VIEW IF EXISTS {name}")
        for name in self._put:
            self._connection.unregister(name)
        for name in self._kept:
            self._connection.execute(f"DROP TABLE IF EXISTS {name}")
        self._types.clear()
        self._put.clear()
        self._kept.clear()

    def release(self) -> None:
        """Close the connection."""
        self._connection.close()


_HASH_OF_THREE = SqlFunction("spark_xxhash64", spark_xxhash64, ("string", "long", "date"), "long")


def _of_arrays(function: SqlFunction) -> Callable[..., pa.Array]:
    """Return what DuckDB calls with chunked arrays, and whose parameters it counts."""

    def work(*columns: pa.ChunkedArray) -> pa.Array:
        return function.work(*(column.combine_chunks() for column in columns))

    places = range(len(function.takes))
    named = [Parameter(f"column_{place}", Parameter.POSITIONAL_ONLY) for place in places]
    work.__signature__ = Signature(named)  # type: ignore[attr-defined]
    return work


def _plain(schema: pa.Schema) -> str:
    """Return the columns, moments as UTC without a zone: Spark writes and compares them so."""
    return ", ".join(
        f'timezone(\'UTC\', "{field.name}") AS "{field.name}"'
        if pa.types.is_timestamp(field.type) and field.type.tz
        else f'"{field.name}"'
        for field in schema
    )
