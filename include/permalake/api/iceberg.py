"""``/iceberg``: a read-only Iceberg REST catalog.

A client is pinned to one publication when it connects, so that all tables it reads are of one state. Source
of paths, answers and errors: the Iceberg REST catalog specification (``rest-catalog-open-api.yaml``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, NotRequired
from urllib.parse import urlsplit

from fastapi import APIRouter, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict

from permalake.api.lenient_requests import HEAD
from permalake.domains import domain_of
from permalake.errors import CatalogUnavailableError
from permalake.lake.catalog import UnreadableTableError, open_table
from permalake.lake.database import Database
from permalake.lake.published import is_kept, last_publication, state_at, state_in
from permalake.net import object_storage
from permalake.web.answers import answer
from permalake.web.problems import validation_detail
from permalake.web.responses import current_json

_PREFIX = "publication/"
_ROOT = "/v1/{prefix}/namespaces"
_ENDPOINTS = (
    f"GET {_ROOT}",
    f"GET {_ROOT}/{{namespace}}",
    f"HEAD {_ROOT}/{{namespace}}",
    f"GET {_ROOT}/{{namespace}}/tables",
    f"GET {_ROOT}/{{namespace}}/tables/{{table}}",
    f"HEAD {_ROOT}/{{namespace}}/tables/{{table}}",
)
_NAMES = 64
"""Longest name of a network or a table, and longest ``warehouse``."""


class CatalogErrorModel(BaseModel):
    """The specification's ErrorModel."""

    message: str
    type: str
    code: int


class CatalogErrorDocument(BaseModel):
    """The specification's IcebergErrorResponse."""

    error: CatalogErrorModel


class _CatalogError(Exception):
    """Raised to answer with the specification's error body; ``kind`` is the type that clients know."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class _CatalogRoute(APIRoute):
    """A route whose errors have the specification's body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with its errors turned into answers."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except _CatalogError as error:
                return _refusal(error.status, error.kind, str(error))
            except RequestValidationError as error:
                return _refusal(400, "BadRequestException", validation_detail(request, error))
            except CatalogUnavailableError:
                return _refusal(
                    503,
                    "ServiceUnavailableException",
                    "the lake's catalog is locked or does not answer; try again",
                )
            except UnreadableTableError:
                return _refusal(
                    503, "ServiceUnavailableException", "the table's metadata cannot be read; try again"
                )

        return answer


def _refusal(status: int, kind: str, message: str) -> Response:
    headers = {"Cache-Control": "no-store"} | ({"Retry-After": "2"} if status == 503 else {})
    return JSONResponse(
        {"error": {"message": message, "type": kind, "code": status}}, status, headers=headers
    )


router = APIRouter(
    prefix="/iceberg",
    tags=["iceberg"],
    route_class=_CatalogRoute,
    responses={status: {"model": CatalogErrorDocument} for status in (400, 404, 503)},
)

_Number = Annotated[
    int, Path(ge=0, le=2**62, description="Number of the publication that is read.", examples=[1])
]
_Network = Annotated[
    str, Path(max_length=_NAMES, description="Name of a network, or wormhole.", examples=["shimmer"])
]
_Name = Annotated[str, Path(max_length=_NAMES, description="Name of a table.", examples=["messages"])]


@dataclass(frozen=True)
class _PinnedTable:
    """A table after a publication: a metadata file, and whether the table had no rows yet."""

    location: str
    is_empty: bool


class CatalogConfig(TypedDict):
    """The specification's CatalogConfig."""

    defaults: dict[str, str]
    overrides: dict[str, str]
    endpoints: list[str]


class CatalogNamespaces(TypedDict):
    """The specification's ListNamespacesResponse."""

    namespaces: list[list[str]]


class CatalogNamespace(TypedDict):
    """The specification's GetNamespaceResponse."""

    namespace: list[str]
    properties: dict[str, str]


class CatalogTableName(TypedDict):
    """The specification's TableIdentifier."""

    namespace: list[str]
    name: str


class CatalogTables(TypedDict):
    """The specification's ListTablesResponse."""

    identifiers: list[CatalogTableName]


CatalogTable = TypedDict(
    "CatalogTable",
    {
        "metadata-location": NotRequired[str],
        "metadata": Annotated[dict[str, Any], Field(description="The specification's TableMetadata.")],
        "config": dict[str, str],
    },
)
CatalogTable.__doc__ = """The specification's LoadTableResult."""


@router.get("/v1/config", responses=answer(CatalogConfig))
def config(
    request: Request,
    warehouse: Annotated[
        str,
        Query(
            max_length=_NAMES,
            description="`latest`, the number of a publication, or a time (ISO 8601; UTC without an offset).",
        ),
    ] = "latest",
) -> Response:
    """Pin a client to a publication: the current one, one by number, or the last one at a time."""
    database: Database = request.app.state.database
    number = _number_of(database, warehouse)
    overrides = {"prefix": f"{_PREFIX}{number}"}
    return current_json(request, None, {"defaults": {}, "overrides": overrides, "endpoints": _ENDPOINTS})


def _number_of(database: Database, warehouse: str) -> int:
    if warehouse.isascii() and warehouse.isdigit():
        number = int(warehouse)
        with database.read() as connection:
            last = last_publication(connection)
        if number > last:
            raise _CatalogError(
                400,
                "BadRequestException",
                f"warehouse: the last publication is {last}; ask for that or an earlier one",
            )
        return number
    as_of = None if warehouse == "latest" else _moment(warehouse)
    with database.read() as connection:
        number = last_publication(connection, as_of)
    if as_of is not None and not number:
        raise _CatalogError(
            400,
            "BadRequestException",
            f"warehouse: nothing was published by {warehouse}; ask for a later time",
        )
    return number


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _CatalogError(
            400,
            "BadRequestException",
            "warehouse: give latest, the number of a publication, or a time such as 2026-01-31T12:00:00Z",
        ) from None


@router.get("/v1/publication/{number}/namespaces", responses=answer(CatalogNamespaces))
def namespaces(
    request: Request,
    number: _Number,
    parent: Annotated[
        str | None, Query(max_length=_NAMES, description="A namespace; none has others below it.")
    ] = None,
) -> Response:
    """List the namespaces: networks and wormhole."""
    tables = _tables(request, number)
    if parent is not None:
        _in_namespace(tables, parent)
    names = sorted({network for network, _ in tables}) if parent is None else []
    return current_json(request, None, {"namespaces": [[name] for name in names]})


@router.get("/v1/publication/{number}/namespaces/{namespace}", responses=answer(CatalogNamespace))
def load_namespace(request: Request, number: _Number, namespace: _Network) -> Response:
    """Return a namespace, which has no properties; HEAD says whether it exists."""
    _in_namespace(_tables(request, number), namespace)
    return _checked(request, {"namespace": [namespace], "properties": {}})


@router.get("/v1/publication/{number}/namespaces/{namespace}/tables", responses=answer(CatalogTables))
def tables(request: Request, number: _Number, namespace: _Network) -> Response:
    """List the tables of a namespace."""
    names = sorted(_in_namespace(_tables(request, number), namespace))
    return current_json(
        request, None, {"identifiers": [{"namespace": [namespace], "name": name} for name in names]}
    )


@router.get("/v1/publication/{number}/namespaces/{namespace}/tables/{table}", responses=answer(CatalogTable))
def load_table(request: Request, number: _Number, namespace: _Network, table: _Name) -> Response:
    """Return a table's metadata with the snapshot of the publication alone; HEAD says whether it exists.

    The answer holds no secret: readers of object storage bring their own key.
    """
    pinned = _in_namespace(_tables(request, number), namespace).get(table)
    if pinned is None:
        raise _CatalogError(404, "NoSuchTableException", f"{namespace}.{table}: no such table")
    database: Database = request.app.state.database
    with database.read() as connection:
        kept = is_kept(connection, namespace, number)
    if not kept:
        raise _CatalogError(
            404,
            "NoSuchTableException",
            f"{namespace}: publication {number} is forgotten ([lake] retention_days says how much is kept); "
            "connect again for a later one",
        )
    metadata = json.loads(open_table(pinned.location).metadata.model_dump_json())
    answer: dict[str, Any] = {
        "metadata": _with_one_snapshot(metadata, pinned.is_empty),
        "config": _access(pinned.location),
    }
    if not pinned.is_empty:
        answer["metadata-location"] = pinned.location
    return _checked(request, answer)


def _checked(request: Request, content: dict[str, Any]) -> Response:
    """Return what exists; the specification's existence check, HEAD, gets 204 and the tag."""
    response = current_json(request, None, content)
    if HEAD in request.scope and response.status_code == 200:
        return Response(status_code=204, headers={"ETag": response.headers["etag"]})
    return response


def _tables(request: Request, number: int) -> dict[tuple[str, str], _PinnedTable]:
    """Return the tables after a publication; one that was published later exists, and is empty."""
    database: Database = request.app.state.database
    with database.read() as connection:
        last = last_publication(connection)
        then = state_at(connection, domain_of, number)
        present = state_in(connection)
    if number > last:
        raise _CatalogError(404, "NoSuchNamespaceException", f"publication {number}: the last one is {last}")
    listed = {}
    for name, location in {**dict.fromkeys(present), **then}.items():
        if metadata := location or present.get(name):
            listed[name] = _PinnedTable(metadata, location is None)
    return listed


def _in_namespace(tables: dict[tuple[str, str], _PinnedTable], namespace: str) -> dict[str, _PinnedTable]:
    named = {name: table for (network, name), table in tables.items() if network == namespace}
    if not named:
        raise _CatalogError(404, "NoSuchNamespaceException", f"{namespace}: no such namespace")
    return named


def _with_one_snapshot(metadata: dict[str, Any], is_empty: bool) -> dict[str, Any]:
    """Return metadata without the past: snapshots on the way to a publication were never published."""
    current = None if is_empty else metadata.get("current-snapshot-id")
    kept = {key: value for key, value in metadata.items() if key != "current-snapshot-id"}
    for history in ("snapshots", "snapshot-log", "statistics", "partition-statistics"):
        kept[history] = [entry for entry in metadata.get(history, ()) if entry["snapshot-id"] == current]
    kept["metadata-log"] = []
    kept["refs"] = {}
    if current is not None and current != -1:
        kept["current-snapshot-id"] = current
        kept["refs"] = {"main": {"snapshot-id": current, "type": "branch"}}
    return kept


def _access(location: str) -> dict[str, str]:
    """Return what a client needs to reach a table's files, except a key."""
    if not object_storage.is_s3(location):
        return {}
    region = object_storage.region()
    access = {"s3.region": region, "client.region": region}
    if address := object_storage.endpoint():
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        access |= {"s3.endpoint": f"{parts.scheme}://{host}{parts.path}", "s3.path-style-access": "true"}
    return access


@router.get("", include_in_schema=False)
@router.get("/{path:path}", include_in_schema=False)
def unknown() -> Response:
    """Refuse a route that the catalog does not have."""
    raise _CatalogError(404, "NotFoundException", "no such route; GET /iceberg/v1/config lists them")


@router.options("/{path:path}", include_in_schema=False)
def methods() -> Response:
    """Say that the catalog is read: writes have a route that refuses them."""
    return Response(status_code=204, headers={"Allow": "GET, HEAD"})


@router.api_route("/{path:path}", methods=["POST", "PUT", "PATCH", "DELETE"], include_in_schema=False)
def write() -> Response:
    """Refuse every write."""
    raise _CatalogError(406, "UnsupportedOperationException", "this catalog is read-only")
