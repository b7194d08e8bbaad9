"""Types of rows in JSON, from the contracts of tables and views; see :mod:`~permalake.web.answers`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from permalake.contracts.schema import Column
from permalake.web.answers import RowPage

# Types that are made of values, which a checker of types cannot follow.
_ANNOTATED: Any = Annotated
_NOT_REQUIRED: Any = NotRequired
_TYPED_DICT: Any = TypedDict
_DECIMAL = {"pattern": r"^-?[0-9]+(\.[0-9]+)?$"}
_PLAIN: dict[str, tuple[Any, dict[str, Any]]] = {
    "int": (int, {"format": "int32"}),
    "long": (int, {"format": "int64"}),
    "double": (float, {}),
    "boolean": (bool, {}),
    "string": (str, {}),
    "binary": (str, {"pattern": "^([0-9a-f]{2})*$"}),
    "date": (str, {"format": "date"}),
    "timestamptz": (str, {"format": "date-time"}),
    "list<int>": (list[int], {}),
}
"""Type, and what else its schema says, by type of column; decimals are text."""


def row_type(name: str, doc: str, columns: Sequence[Column]) -> Any:
    """Return the type of a row of a table or view, as :mod:`~permalake.web.table_pages` writes it."""
    return _row_type(name, doc, tuple(columns))


@cache
def _row_type(name: str, doc: str, columns: tuple[Column, ...]) -> Any:
    return members_type(f"{class_name(name)}Row", doc, {c.name: column_type(c) for c in columns})


def page_of(row: Any) -> Any:
    """Return the type of a page of rows."""
    return RowPage[row]


def members_type(
    name: str, doc: str, members: Mapping[str, Any], optional: Mapping[str, Any] | None = None
) -> Any:
    """Return the type of an object whose members follow from something else; ``doc`` describes it.

    ``optional``: members that may be absent.
    """
    every_member = {**members, **{member: _NOT_REQUIRED[kind] for member, kind in (optional or {}).items()}}
    made = _TYPED_DICT(name, every_member)
    made.__doc__ = doc
    return made


def column_type(column: Column) -> Any:
    """Return the type of a column's values in JSON; null where the column may be."""
    kind, schema = _PLAIN.get(column.type, (str, _DECIMAL))
    if column.pattern:
        schema = {"pattern": column.pattern}
    if column.values:
        kind = Literal[column.values]
    if kind is int:
        kind = _ANNOTATED[int, Field(ge=column.minimum, le=column.maximum)]
    value = _ANNOTATED[kind, Field(json_schema_extra=dict(schema))]
    return _ANNOTATED[value if column.required else value | None, Field(description=column.doc)]


def class_name(name: str) -> str:
    """Return the name of a class for a table: ``ms_analytics`` is ``MsAnalytics``."""
    return "".join(part.capitalize() for part in name.split("_"))
