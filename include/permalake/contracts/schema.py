"""Table contracts, and the schemas that follow from them.

A contract is the only place where a table's columns, types, meanings, keys and ranges are written down. The
lake schema, the Spark and Arrow schemas, the basics of the expectation suite and ``docs/tables`` are derived
from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

if TYPE_CHECKING:
    from pyiceberg.schema import Schema as IcebergSchema
    from pyspark.sql.types import StructType

HEX = r"^([0-9a-f]{2})+$"
HEX32 = r"^[0-9a-f]{64}$"
OUTPUT_ID = r"^[0-9a-f]{68}$"
BECH32 = r"^[a-z0-9]+1[02-9ac-hj-np-z]{6,}$"
ROW_KEY = r"^[0-9]{1,5}:[0-9a-f]{64}:[0-9]{16,20}$"
UINT = r"^(0|[1-9][0-9]*)$"
AMOUNT = r"^(0|[1-9][0-9]*)([.][0-9]*[1-9])?$"

Commit = Literal["day", "carried", "side", "head"]

_SCANNED, _LOOKED_UP = 128 << 20, 8 << 20


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        type: Iceberg type name (``int``, ``long``, ``string``, ``binary``, ``date``, ``timestamptz``,
            ``double``, ``decimal(P,S)``, ``list<int>``; of views also ``boolean``).
    """

    name: str
    type: str
    doc: str
    required: bool = True
    pattern: str | None = None
    values: tuple[int | str, ...] | None = None
    minimum: int | None = None
    maximum: int | None = None

    @property
    def rule(self) -> str:
        """The rule for the column's values in words; empty without a rule."""
        rules = []
        if self.values is not None:
            rules.append("one of " + ", ".join(str(value) for value in self.values))
        if self.pattern is not None:
            rules.append(f"matches {self.pattern}")
        if self.minimum is not None:
            rules.append(f"at least {self.minimum}")
        if self.maximum is not None:
            rules.append(f"at most {self.maximum}")
        return "; ".join(rules)

    def allows(self, value: int | str) -> bool:
        """Return whether the rule lets a value through."""
        if self.values is not None and value not in self.values:
            return False
        if isinstance(value, str):
            return self.pattern is None or re.search(self.pattern, value) is not None
        low, high = self.minimum, self.maximum
        return (low is None or low <= value) and (high is None or value <= high)


DATE = Column("date", "date", "UTC date.")


def duckdb_type(type_name: str) -> str:
    """Return DuckDB's name of a column's type; it knows Iceberg's names beside its own, but not of lists."""
    return type_name.replace("list<int>", "int[]")


@dataclass(frozen=True)
class Table:
    """A table of the lake. Every table has a ``date`` column (UTC) and is partitioned by it.

    Attributes:
        key: Columns that identify a row within the table.
        sort: What rows are sorted by first; see :attr:`order`.
        time_column: Column with the time of the row's milestone (``timestamptz``, or ``long`` in unix
            seconds); ``date`` is its UTC date.
        first_value: Columns that hold a clock and keep their first value when a day is rebuilt.
        group: Owner of the table; its suite is in ``expectations/{group}``.
        commit: ``day``: published with the day's other tables. ``carried``: the state at the day's end, built
            from published days in order and published by the step ``carry``. ``side``: a side table,
            committed on its own, visible to readers at once. ``head``: a table of the live head alone, which
            the publication of a row's day, or of a later one, empties of it. Only rows of ``day`` make a day.
        lookups: Columns by which the REST API finds single rows; see :mod:`permalake.lake.serving.ids`.
        lookup_keys: For a lookup that is not by the column's own value, the function (``module:function``)
            that returns the key of a value.
        copied: Columns that the REST API keeps uncompressed to read single rows from; see
            :mod:`permalake.lake.serving.copies`.
    """

    name: str
    group: str
    doc: str
    body: tuple[Column, ...]
    key: tuple[str, ...]
    sort: tuple[str, ...] = ()
    time_column: str | None = None
    first_value: tuple[str, ...] = ()
    commit: Commit = "day"
    lookups: tuple[str, ...] = ()
    lookup_keys: Mapping[str, str] = field(default_factory=dict)
    copied: tuple[str, ...] = ()
    date_doc: str = "UTC date of the milestone's timestamp."

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """All columns in order, ``date`` last."""
        if any(column.name == "date" for column in self.body):
            return self.body
        return (*self.body, Column("date", "date", self.date_doc))

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The columns that sort a day's rows, in its files and for its digest: ``sort``, then the key's rest.

        No two rows agree in them.
        """
        return (*self.sort, *(name for name in self.key if name not in self.sort))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)

    @property
    def row_group_bytes(self) -> int:
        """Size of a row group in the table's files.

        A lookup knows the milestone or day and thereby, rows being sorted, the row group, of which a reader
        without page index decompresses whole columns: groups are small in tables with ``lookups``.
        """
        return _LOOKED_UP if self.lookups else _SCANNED

    def column(self, name: str) -> Column:
        """Return the column of that name; ``KeyError`` if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.name} has no column {name}")

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema."""
        return pa.schema(
            [pa.field(c.name, _arrow_type(c.type), nullable=not c.required) for c in self.columns]
        )

    @cached_property
    def nullable(self) -> pa.Schema:
        """The Arrow schema with every column nullable: files may lack one, and damaged data lacks values."""
        return pa.schema([field.with_nullable(True) for field in self.arrow])

    @cached_property
    def spark(self) -> StructType:
        """The Spark schema; a list may hold nulls as far as Spark knows, as lists in the lake."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self.arrow)

    @cached_property
    def iceberg(self) -> IcebergSchema:
        """The Iceberg schema; field ids follow the column order."""
        from pyiceberg.schema import Schema
        from pyiceberg.types import IntegerType, ListType, NestedField

        fields = []
        for position, c in enumerate(self.columns, start=1):
            numbers = ListType(1000 + position, IntegerType(), element_required=True)
            kind = numbers if c.type == "list<int>" else c.type
            fields.append(NestedField(position, c.name, kind, required=c.required, doc=c.doc))
        return Schema(*fields)


def _arrow_type(type_name: str) -> pa.DataType:
    plain = {
        "int": pa.int32(),
        "long": pa.int64(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamptz": pa.timestamp("us", tz="UTC"),
        "list<int>": pa.list_(pa.int32()),
        "boolean": pa.bool_(),  # of views
    }
    if decimal := re.fullmatch(r"decimal\((\d+),(\d+)\)", type_name):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return plain[type_name]
