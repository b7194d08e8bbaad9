"""``/api/analytics/v1``: analytics tables of every network in pages of JSON, any table as a file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from dataclasses import replace
from datetime import date
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, create_model
from starlette.responses import Response
from starlette.routing import BaseRoute
from typing_extensions import TypedDict

from permalake.api.export import FORMATS, encoded
from permalake.api.export_response import ExportResponse
from permalake.domains import DOMAINS, domain_of
from permalake.pipeline.domain import Domain
from permalake.web.answers import DayText, answer
from permalake.web.paging import PageQuery
from permalake.web.parameter_types import FormDate, HexBytes, IsoDate, IsoTime
from permalake.web.problems import ProblemError, bad_request, documented
from permalake.web.published import published_state
from permalake.web.responses import wants
from permalake.web.row_types import class_name, column_type
from permalake.web.state import RequestLake, lake_of
from permalake.web.synthetic import spans_of
from permalake.web.table_pages import ListedTable, day_batches, published_days, table_page
from permalake.web.unknown_parameters import unknown_parameter

router = APIRouter(prefix="/api/analytics/v1", tags=["analytics"])
_KINDS: dict[str, TypeAdapter[Any]] = {
    "int": TypeAdapter(Annotated[int, Field(ge=-(1 << 31), lt=1 << 31)]),
    "long": TypeAdapter(Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]),
    "date": TypeAdapter(IsoDate),
    "timestamptz": TypeAdapter(IsoTime),
    "binary": TypeAdapter(HexBytes),
    "string": TypeAdapter(str),
}
_EXPORT_SECONDS = 3600.0
_MEDIA = {media: name for name, (media, _) in FORMATS.items()}


_Network = Annotated[str, Path(description="Network, or wormhole.", examples=["shimmer"])]


class _TableQuery(PageQuery):
    start: FormDate = Field(None, description="First date, inclusive.")
    end: FormDate = Field(None, description="Last date, inclusive.")
    format: Literal["json", "csv", "parquet", "arrow"] | None = Field(
        None, description="json in pages; the others whole. Without it the Accept header decides."
    )


def listed_tables(network: str) -> dict[str, ListedTable]:
    """Return the analytics tables and views of a network by name, as its domain declares them."""
    return _tables_of(domain_of(network))


def _tables_of(domain: Domain) -> dict[str, ListedTable]:
    views = {view.name: view for view in domain.views}
    return {
        name: ListedTable.of_view(views[name]) if name in views else ListedTable.of_table(domain.tables[name])
        for name in domain.analytics
    }


class ListedColumn(TypedDict):
    """A column: its type as in ``docs/tables``, and what it means."""

    name: str
    type: str
    doc: str


class DaySpan(TypedDict):
    """A range of days, both ends inclusive."""

    start: DayText
    end: DayText


class AnalyticsTable(TypedDict):
    """A table or view of a network: ``required`` are the parameters that it needs.

    ``start`` and ``end`` are of all its days, ``real`` and ``synthetic`` of those up to today and of those
    after it; null where there are none. 1970-01-01, the day of messages without a time, is no real one.
    """

    network: str
    table: str
    doc: str
    columns: list[ListedColumn]
    key: list[str]
    required: list[str]
    start: DayText
    end: DayText
    real: DaySpan | None
    synthetic: DaySpan | None
    path: str


class AnalyticsTables(TypedDict):
    """The tables of every published network."""

    tables: list[AnalyticsTable]


class _AnalyticsQuery(_TableQuery):
    # Key columns of the table are further parameters; they are checked against its contract.
    model_config = ConfigDict(extra="allow", populate_by_name=True)


@router.get("", responses={**documented(), **answer(AnalyticsTables)})
def tables(request: Request) -> Response:
    """List the tables of every published network: columns, key and dates."""
    lakes = [_lake(request, network) for network in sorted(published_state(request).networks())]
    listed = [
        {
            "network": lake.network,
            "table": table.name,
            "doc": table.doc,
            "columns": [{"name": c.name, "type": c.type, "doc": c.doc} for c in table.columns],
            "key": ["date", *table.key],
            "required": list(domain_of(lake.network).analytics[table.name]),
            "start": days[0].isoformat(),
            "end": days[-1].isoformat(),
            **_spans(days),
            "path": f"{router.prefix}/{lake.network}/{table.name}",
        }
        for lake in lakes
        for table in listed_tables(lake.network).values()
        if (days := list(published_days(lake, table, None, None)))
    ]
    return (
        lakes[0].current({"tables": listed})
        if lakes
        else Response('{"tables":[]}', media_type="application/json")
    )


def _spans(days: Iterable[date]) -> dict[str, DaySpan | None]:
    spans = spans_of(days)
    ends = {
        "real": (spans["real_first"], spans["real_last"]),
        "synthetic": (spans["synthetic_first"], spans["synthetic_last"]),
    }
    return {
        name: {"start": first, "end": last} if first and last else None
        for name, (first, last) in ends.items()
    }


# OpenAPI has a path for each table instead: see table_routes.
@router.get("/{network}/{table}", include_in_schema=False)
def rows(
    request: Request,
    network: str,
    table: str,
    query: Annotated[_AnalyticsQuery, Query()],
) -> Response:
    """Return rows by date and by equality on key columns, ordered by date and key.

    JSON has the analytics tables, which `/api/analytics/v1` lists; a file has any table or view with a date.
    """
    lake = _lake(request, network)
    form = query.format or _MEDIA.get(wants(request, tuple(_MEDIA)) or "", "json")
    if form != "json":
        exported = _exported(network, table)
        if exported is None:
            raise ProblemError(404, f"{table}: no table of {network}; the page /data/{network} lists them")
        return _stream(lake, exported, _filters(exported, query.model_extra or {}), query, form)
    listed = listed_tables(network).get(table)
    if listed is None:
        raise ProblemError(404, f"{table}: no analytics table of {network}; {router.prefix}/ lists them")
    filters = _filters(listed, query.model_extra or {})
    for name in domain_of(network).analytics[table]:
        if name not in filters:
            raise bad_request(f"{name}: this table is read by {name}; add {name}=…")
    return lake.current(table_page(lake, listed, query, filters, query.start, query.end))


def _exported(network: str, name: str) -> ListedTable | None:
    """Return a table or view of a network; None where there is none of that name with a date."""
    domain = domain_of(network)
    if table := domain.tables.get(name):
        return ListedTable.of_table(table)
    views = (view for view in domain.views if view.name == name)
    return next(
        (ListedTable.of_view(view) for view in views if any(c.name == "date" for c in view.columns)), None
    )


def table_routes() -> list[BaseRoute]:
    """Return what OpenAPI says instead of :func:`rows`: a route for each table, with its columns and key."""
    described = APIRouter(prefix=router.prefix, tags=router.tags)
    tables = {
        name: (table, domain.analytics[name])
        for domain in DOMAINS
        for name, table in _tables_of(domain).items()
    }
    for name, (table, needed) in sorted(tables.items()):
        described.add_api_route(
            f"/{{network}}/{name}",
            _described(table, needed),
            name=name,
            responses={**documented(), **answer(table.page, *_MEDIA)},
        )
    return described.routes


def _described(table: ListedTable, needed: Collection[str]) -> Callable[..., Response]:
    """Return a function with the signature that a handler of one table would have."""
    keys: dict[str, Any] = {}
    for name in table.key:
        kind = column_type(replace(table.column(name), required=name in needed))
        keys[name] = (kind, ... if name in needed else None)
    query = create_model(f"{class_name(table.name)}Query", __base__=_TableQuery, **keys)

    def rows_of_table(network: Any, query: Any) -> Response:
        raise NotImplementedError(f"OpenAPI alone knows it: {network} {query}")

    rows_of_table.__annotations__ = {"network": _Network, "query": Annotated[query, Query()]}
    rows_of_table.__doc__ = (
        f"{table.doc}\n\nRows by date, and by equality on columns of the key, in that order."
    )
    return rows_of_table


def _lake(request: Request, network: str) -> RequestLake:
    if network not in published_state(request).networks():
        raise ProblemError(404, f"{network}: nothing of this network is published")
    return lake_of(request, network)


def _filters(table: ListedTable, given: Mapping[str, Any]) -> dict[str, Any]:
    filters = {}
    for name, text in given.items():
        if name not in table.key:
            parameters = ("start", "end", "format", "pageSize", "cursor", "sort", *table.key)
            raise bad_request(unknown_parameter(name, parameters))
        try:
            filters[name] = _KINDS[table.column(name).type].validate_python(text)
        except ValidationError:
            raise bad_request(f"{name}: not a value of type {table.column(name).type}") from None
        if not table.column(name).allows(filters[name]):
            rule = table.column(name).rule
            raise bad_request(f"{name}: {text:.80} is no value of this column: {rule}")
    return filters


def _stream(
    lake: RequestLake, table: ListedTable, filters: Mapping[str, Any], query: _AnalyticsQuery, form: str
) -> Response:
    lake.extend(_EXPORT_SECONDS)
    media, suffix = FORMATS[form]
    name = f"{lake.network}-{table.name}.{suffix}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Vary": "Accept"}

    def chunks() -> Generator[bytes]:
        return encoded(form, table.schema, day_batches(lake, table, filters, query.start, query.end))

    return ExportResponse(chunks, lake.abandon, media, headers)
