"""Queries of this process: DuckDB over Arrow tables, or over files that are read as needed.

Predicates of rules, queries of laws and those that make tables are written in the SQL that Spark and DuckDB
share: ``||`` for ``concat`` (which takes null for nothing in DuckDB), ``octet_length`` for bytes, ``IS
DISTINCT FROM``, ``VALUES``, ``CASE``, windows, ``SEMI JOIN`` and ``ANTI JOIN``, aggregates with ``count_if``
and ``array_agg``. Functions of Spark that DuckDB lacks are macros here. Moments are in UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from inspect import Parameter, Signature
from tempfile import gettempdir
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
from duckdb.func import FunctionNullHandling, PythonUDFType
from pyspark.sql.pandas.types import from_arrow_type

from permalake.arrays.spark_hash import spark_xxhash64
from permalake.contracts.schema import DUCKDB_TYPES
from permalake.contracts.sql_functions import SqlFunction
from permalake.engine.local_files import local_files, read_by_duckdb
from permalake.engine.protocol import PREVIOUS, VIOLATIONS, Check

Rows = Callable[[str], pa.Table | ds.Dataset]
_SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET default_null_order = 'nulls_first'",
    "SET python_enable_replacements = false",
)
_MACROS = (
    r"parted_hex(x) AS regexp_replace(hex(x), '(..)', '\1 ', 'g')",
    # DuckDB's own counts the bytes of binary values only. The type is known when a query is planned.
    "octet_length(x) AS CASE WHEN typeof(x) = 'BLOB' THEN system.main.octet_length(CAST(x AS BLOB))"
    " ELSE strlen(CAST(x AS VARCHAR)) END",
    "conv(x, base, into_base) AS CAST(try_cast('0x' || x AS UBIGINT) AS VARCHAR)",
    "datediff(later, earlier) AS date_diff('day', earlier, later)",
    "to_date(x) AS CAST(x AS DATE)",
    "timestamp_seconds(x) AS make_timestamp(CAST(x AS BIGINT) * 1000000)",
    "unix_seconds(x) AS CAST(floor(epoch(x)) AS BIGINT)",
    "unix_micros(x) AS epoch_us(x)",
    "regexp_like(x, pattern) AS regexp_matches(x, pattern)",
    "startswith(x, start) AS starts_with(x, start)",
    "try_element_at(list, place) AS list[place]",
    "array_size(list) AS len(list)",
    # Of one column no value is kept, so any hash will do.
    "xxhash64(x) AS hash(x), (a, b, c) AS spark_xxhash64(a, b, c)",
    # Of the row with the greatest key, be its value null or not.
    "max_by(x, key) AS arg_max_null(x, key)",
    # Of bytes, which DuckDB does not search: in their digits. Where a match begins within a byte there may be
    # another, so the digits are parted then.
    "contains(x, part) AS CASE WHEN instr(hex(x), hex(part)) % 2 = 1 THEN true"
    " WHEN instr(hex(x), hex(part)) = 0 THEN false ELSE instr(parted_hex(x), parted_hex(part)) > 0 END",
)
_BATCH = 10_000
_LARGE_BATCH = 100_000


class DuckDBEngine:
    """A DuckDB connection that knows tables as Arrow, and reads Parquet files on a disk itself.

    ``table`` returns the audited rows of a table, ``previous`` those of the latest day before. What does not
    fit ``memory`` (as ``8g``; DuckDB's own limit when left out) goes to the folder for temporary files.
    ``days``: the first and last day of which there are rows; all when left out. ``threads``: how many work;
    one per core when left out.
    """

    def __init__(
        self,
        table: Rows,
        previous: Rows | None = None,
        memory: str | None = None,
        days: tuple[date, date] | None = None,
        threads: int | None = None,
    ) -> None:
        self._table = table
        self._days = "" if days is None else f" WHERE date BETWEEN DATE '{days[0]}' AND DATE '{days[1]}'"
        self._previous = previous
        self._memory = memory
        self._types: dict[str, dict[str, str]] = {}
        self._connection = duckdb.connect(":memory:")
        for setting in _SETTINGS:
            self._connection.execute(setting)
        self._connection.execute(f"SET temp_directory = '{gettempdir()}/permalake-audit-{uuid4().hex}'")
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
            [DUCKDB_TYPES.get(kind, kind) for kind in function.takes],
            DUCKDB_TYPES.get(function.gives, function.gives),
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
            self._connection.register(stored, rows)
        columns = _plain(rows.schema)
        self._connection.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM {stored}{self._days}")

    def _own_types(self, schema: pa.Schema) -> dict[str, str]:
        """Return DuckDB's names of the types of columns."""
        self._connection.register("no_rows", schema.empty_table())
        described: list[tuple[str, ...]] = self._connection.execute("DESCRIBE no_rows").fetchall()
        self._connection.unregister("no_rows")
        return {name: kind for name, kind, *_ in described}

    def put(self, name: str, rows: pa.Table) -> None:
        """Make rows known by name."""
        self._connection.register(name, rows)

    def take(self, name: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        """Make rows known by name that are too many to be put at once."""
        self.put(f"{name}_batch", schema.empty_table())
        self._connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {name}_batch")
        for batch in batches:
            self.put(f"{name}_batch", pa.Table.from_batches([batch], schema))
            self._connection.execute(f"INSERT INTO {name} SELECT * FROM {name}_batch")

    def keep(self, name: str, query: str, check: Check | None = None, schema: pa.Schema = VIOLATIONS) -> None:
        """Make the rows of a query known by name, or the few that ``check`` makes of them."""
        if check is None:
            self._connection.execute(f"CREATE TEMP TABLE {name} AS {query}")
            return
        batches = self._connection.sql(query).to_arrow_reader(_BATCH)
        found = [pa.table(dict(zip(schema.names, one.columns, strict=True))) for one in check(batches)]
        self.put(name, pa.concat_tables([schema.empty_table(), *(one.cast(schema) for one in found)]))

    def types(self, name: str) -> dict[str, str]:
        """Return the columns of an open table with Spark's names of their types."""
        return self._types[name]

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query in batches."""
        yield from self._connection.sql(query).to_arrow_reader(_LARGE_BATCH)

    def table(self, query: str) -> pa.Table:
        """Return the rows of a query as Arrow."""
        return self._connection.sql(query).to_arrow_table()

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        rows: list[dict[str, Any]] = self.table(query).to_pylist()
        return rows

    def narrowed(self, start: date, end: date) -> DuckDBEngine:
        """Return an engine for ``start`` to ``end`` only."""
        return DuckDBEngine(self._table, memory=self._memory, days=(start, end))

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
