"""``/api/sql/v1``: one reading statement of a client, in a process of its own that holds its limits.

What ``permalake query`` takes is taken here, with less time and memory, and so many rows. A statement reads
what is published when it begins.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from threading import BoundedSemaphore
from typing import Annotated, Any, Literal

import pyarrow as pa
from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from permalake.api.export import FORMATS, encoded
from permalake.api.limits import is_loopback
from permalake.api.sql_process import SqlOrder, send_answer
from permalake.config import Settings
from permalake.config.serving import ServeSettings
from permalake.contracts.rows import Row
from permalake.errors import PermalakeError
from permalake.lake.json_rows import cell
from permalake.query_process import QueryLimits, in_own_process
from permalake.web.answers import answer
from permalake.web.paging import NoQuery
from permalake.web.problems import ProblemError, bad_request, documented
from permalake.web.responses import current_json, wants

PATH = "/api/sql/v1"
LONGEST = 6000
"""Characters of a statement, so that its link is a valid address."""
PUBLICATION = Field(
    None, ge=1, le=2**53, description="Read the state of that publication; without it, of the last one."
)
router = APIRouter(prefix=PATH, tags=["analytics"])
_SLOTS = BoundedSemaphore(1)
"""Statements that run at once in each worker."""
_SPILL = "1GiB"
_NAMES = ("sql_seconds of [serve]", "sql_memory of [serve]")
_OFF = "this server takes no SQL; sql = true in [serve] switches it on"
_MEDIA = {FORMATS[form][0]: form for form in ("csv", "parquet")}


class _SqlQuery(NoQuery):
    sql: str = Field(
        min_length=1,
        max_length=LONGEST,
        description="One SELECT, in DuckDB's SQL; tables are NETWORK.table.",
        examples=["SELECT 1 AS one"],
    )
    publication: int | None = PUBLICATION
    format: Literal["json", "csv", "parquet"] | None = Field(
        None, description="Without it the Accept header decides."
    )


@dataclass
class SqlAnswer:
    """Rows of a statement; ``kinds`` are DuckDB's types, ``is_cut``: there are more rows.

    ``items`` are JSON values by column; ``batches`` hold the same rows where Parquet was asked for.
    """

    names: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    schema: pa.Schema | None = None
    items: list[Row] = field(default_factory=list)
    batches: list[pa.RecordBatch] = field(default_factory=list)
    is_cut: bool = False

    @property
    def columns(self) -> list[dict[str, str]]:
        """Name and type of each column."""
        return [{"name": name, "type": kind} for name, kind in zip(self.names, self.kinds, strict=True)]


def takes_sql(settings: ServeSettings) -> bool:
    """Return whether a server answers statements: as ``sql`` says, else on the loopback without a proxy."""
    if settings.sql is not None:
        return settings.sql
    return is_loopback(settings.host) and not (settings.trusted_proxies or settings.root_path)


class SqlRows(TypedDict):
    """The rows of a statement; ``isCut``: there are more than the limit lets through."""

    columns: Any
    items: list[Row]
    isCut: bool


@router.get("", responses={**documented(403), **answer(SqlRows, *_MEDIA)})
def sql(request: Request, query: Annotated[_SqlQuery, Query()]) -> Response:
    """Return the rows of one statement that only reads.

    `isCut` says whether rows were left out; in other forms the header `X-Rows-Cut` does. 403 where the server
    takes no SQL.
    """
    form = query.format or _MEDIA.get(wants(request, tuple(_MEDIA)) or "", "json")
    result = run_sql(request, query.sql, form, query.publication)
    if form == "json":
        content = {"columns": result.columns, "items": result.items, "isCut": result.is_cut}
        return current_json(request, None, content)
    media, suffix = FORMATS[form]
    headers = {
        "Content-Disposition": f'attachment; filename="query.{suffix}"',
        "Cache-Control": "no-store",
        "Vary": "Accept",
        "X-Rows-Cut": str(result.is_cut).lower(),
    }
    return Response(_csv(result) if form == "csv" else b"".join(_parquet(result)), 200, headers, media)


def run_sql(request: Request, text: str, form: str, publication: int | None = None) -> SqlAnswer:
    """Run a statement for a request, within the limits of ``[serve]`` and of the request's time.

    Raises:
        ProblemError: 403 where the server takes no SQL, 400 if the statement is wrong, 503 while other
            statements run, 504 if it takes too long.
    """
    settings: Settings = request.app.state.settings
    if not takes_sql(settings.serve):
        raise ProblemError(403, _OFF)
    if not _SLOTS.acquire(timeout=settings.serve.queue_seconds):
        raise ProblemError(503, "another statement is running; try again", headers={"Retry-After": "2"})
    try:
        now = time.monotonic()
        left = getattr(request.state, "deadline", now + settings.serve.timeout) - now
        seconds = max(min(settings.serve.sql_seconds, left), 0.1)
        limits = QueryLimits(round(seconds, 1), settings.serve.sql_memory, _SPILL, _NAMES)
        order = SqlOrder(text, limits, settings.serve.sql_rows, form, publication)
        return _gathered(in_own_process(send_answer, (settings, order), limits))
    except PermalakeError as error:
        if str(error) == str(limits.too_slow()):
            raise ProblemError(504, str(error)) from None
        raise bad_request(f"sql: {error}") from None
    finally:
        _SLOTS.release()


def _gathered(sent: Iterator[tuple[str, Any]]) -> SqlAnswer:
    answer = SqlAnswer()
    for kind, value in sent:
        match kind:
            case "columns":
                answer.names, answer.kinds, answer.schema = value
            case "items":
                answer.items += value
            case "batch":
                answer.batches.append(value)
            case "cut":
                answer.is_cut = True
    return answer


def _csv(answer: SqlAnswer) -> str:
    """Return CSV as ``permalake query --format csv`` writes it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(answer.names)
    for row in answer.items:
        writer.writerow([cell(row[name]) for name in answer.names])
    return text.getvalue()


def _parquet(answer: SqlAnswer) -> Generator[bytes]:
    batches: Sequence[pa.RecordBatch] = answer.batches
    return encoded("parquet", answer.schema or pa.schema([]), batches)
