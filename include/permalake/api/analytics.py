"""``/api/analytics/v1``: the analytics tables of every network, in pages of JSON or whole as a stream."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from starlette.responses import Response

from permalake.api.export import FORMATS, encoded
from permalake.api.export_response import ExportResponse
from permalake.domains import domain_of
from permalake.web.paging import PageQuery
from permalake.web.params import IsoDate
from permalake.web.problems import ProblemError, bad_request, documented
from permalake.web.responses import wants
from permalake.web.state import RequestLake, set_network
from permalake.web.table_pages import ListedTable, day_batches, published_days, table_page

router = APIRouter(prefix="/api/analytics/v1", tags=["analytics"])
_KINDS: dict[str, TypeAdapter[Any]] = {
    "int": TypeAdapter(int),
    "long": TypeAdapter(int),
    "date": TypeAdapter(IsoDate),
}
_TEXT = TypeAdapter(str)
_EXPORT_SECONDS = 3600.0
_MEDIA = {media: name for name, (media, _) in FORMATS.items()}


class _AnalyticsQuery(PageQuery):
    # Key columns of the table are further parameters; they are checked against its contract.
    model_config = ConfigDict(extra="allow", populate_by_name=True)

    start: IsoDate | None = Field(None, description="First date, inclusive.")
    end: IsoDate | None = Field(None, description="Last date, inclusive.")
    format: Literal["json", "csv", "parquet", "arrow"] | None = Field(
        None, description="json in pages; the others whole. Without it the Accept header decides."
    )


def listed_tables(network: str) -> dict[str, ListedTable]:
    """Return the analytics tables and views of a network by name, as its domain declares them."""
    domain = domain_of(network)
    views = {view.name: view for view in domain.views}
    return {
        name: ListedTable.of_view(views[name]) if name in views else ListedTable.of_table(domain.tables[name])
        for name in domain.analytics
    }


@router.get("", responses=documented())
def tables(request: Request) -> Response:
    """List the tables of every published network: columns, key and dates."""
    lakes = [_lake(request, network) for network in sorted(request.app.state.reader.snapshot().networks())]
    found = [
        {
            "network": lake.network,
            "table": table.name,
            "doc": table.doc,
            "columns": [{"name": c.name, "type": c.type, "doc": c.doc} for c in table.columns],
            "key": ["date", *table.key],
            "required": list(domain_of(lake.network).analytics[table.name]),
            "start": days[0].isoformat(),
            "end": days[-1].isoformat(),
            "path": f"{router.prefix}/{lake.network}/{table.name}",
        }
        for lake in lakes
        for table in listed_tables(lake.network).values()
        if (days := list(published_days(lake, table, None, None)))
    ]
    return (
        lakes[0].current({"tables": found})
        if lakes
        else Response('{"tables":[]}', media_type="application/json")
    )


_FILES: dict[int | str, dict[str, Any]] = {200: {"content": {media: {} for media, _ in FORMATS.values()}}}


@router.get("/{network}/{table}", responses={**documented(), **_FILES})
def rows(
    request: Request,
    network: Annotated[str, Path(description="Network, or wormhole.", examples=["shimmer"])],
    table: Annotated[str, Path(description="Table.", examples=["ms_analytics"])],
    query: Annotated[_AnalyticsQuery, Query()],
) -> Response:
    """Return rows by date and by equality on key columns, ordered by date and key."""
    lake = _lake(request, network)
    found = listed_tables(network).get(table)
    if found is None:
        raise ProblemError(404, f"{table}: no analytics table of {network}; {router.prefix}/ lists them")
    filters = _filters(found, query.model_extra or {})
    for name in domain_of(network).analytics[table]:
        if name not in filters:
            raise bad_request(f"{name}: this table is read by {name}; add {name}=…")
    form = query.format or _MEDIA.get(wants(request, tuple(_MEDIA)) or "", "json")
    if form == "json":
        return lake.current(table_page(lake, found, query, filters, query.start, query.end))
    return _stream(lake, found, filters, query, form)


def _lake(request: Request, network: str) -> RequestLake:
    app = request.app
    if network not in app.state.reader.snapshot().networks():
        raise ProblemError(404, f"{network}: nothing of this network is published")
    set_network(request, network)
    return RequestLake(request, app.state.reader, app.state.settings, network)


def _filters(table: ListedTable, given: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, text in given.items():
        if name not in table.key:
            known = ", ".join(("start", "end", "format", "pageSize", "cursor", "sort", *table.key))
            raise bad_request(f"{name}: unknown parameter; choose from {known}")
        try:
            found[name] = _KINDS.get(table.column(name).type, _TEXT).validate_python(text)
        except ValidationError:
            raise bad_request(f"{name}: not a value of type {table.column(name).type}") from None
    return found


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
