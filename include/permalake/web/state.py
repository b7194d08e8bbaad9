"""The published state of a request: what a handler reads, and the only thing it reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, TypeVar

import pyarrow as pa
from fastapi import Depends
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from permalake.config import Settings
from permalake.contracts.rows import Row
from permalake.lake.serving import LakeQuery, LakeReader, QueryTimeoutError, Scan, key_function
from permalake.web import responses
from permalake.web.batches import BatchedAnswer
from permalake.web.kept_rows import kept_rows
from permalake.web.paging import ListPage, PageQuery, page_of
from permalake.web.published import published_state

T = TypeVar("T")
_KEPT = 50_000
"""Rows that a published state keeps, some 50 MB in each process."""
_KEPT_BY = ("", "kept rows")


class RequestLake:
    """One published state of one network, for one request.

    Two queries of a request see the same state, whatever is published meanwhile. Statements name tables
    alone and take parameters as ``$name``::

        lake.rows("SELECT message FROM messages WHERE message_id = $id", {"id": message_id},
                  messages=Scan(milestones=[index]))
    """

    def __init__(self, request: Request, reader: LakeReader, settings: Settings, network: str) -> None:
        self.request = request
        self.settings = settings
        self.network = network
        self.snapshot = published_state(request)
        self.reader = reader
        self.may_wait = True
        self._deadline: float = getattr(request.state, "deadline", time.monotonic() + settings.serve.timeout)

    @cached_property
    def _expired(self) -> threading.Event:
        """Set when the client has left."""
        return threading.Event()

    @property
    def deadline(self) -> float:
        """The end of the request's time, as of :func:`time.monotonic`."""
        return self._deadline

    def arrow(self, sql: str, parameters: Mapping[str, Any] | None = None, **scans: Scan) -> pa.Table:
        """Return the rows of :meth:`rows` as Arrow, for many of them."""
        return self.reader.arrow(self._query(sql, parameters, scans))

    def rows(self, sql: str, parameters: Mapping[str, Any] | None = None, **scans: Scan) -> list[Row]:
        """Return the rows of a statement; ``scans``: each table or view that it reads, and what of it.

        Raises:
            QueryTimeoutError: if the request's time is up (504).
        """
        return self.reader.rows(self._query(sql, parameters, scans))

    def kept_rows(self, sql: str, parameters: Mapping[str, Any] | None = None, **scans: Scan) -> list[Row]:
        """Return :meth:`rows`, read once per published state: for few rows of many files.

        ``scans`` follow from ``sql`` and ``parameters``. Callers leave the rows as they are.
        """
        query = self._query(sql, parameters, scans)
        kept = self.snapshot.memory.setdefault(_KEPT_BY, kept_rows(_KEPT))
        key = (self.network, sql, tuple(sorted(query.parameters.items())))
        rows: list[Row] = kept(key, lambda: self.reader.rows(query))
        return rows

    def batches(
        self, sql: str, parameters: Mapping[str, Any] | None = None, **scans: Scan
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of :meth:`arrow` batch by batch, for a streamed answer."""
        return self.reader.batches(self._query(sql, parameters, scans))

    def _query(self, sql: str, parameters: Mapping[str, Any] | None, scans: Mapping[str, Scan]) -> LakeQuery:
        not_at_once(self)
        return LakeQuery(
            self.snapshot, self.network, sql, parameters or {}, scans, self._deadline, self._expired
        )

    def find(self, table: str, column: str, value: str) -> Scan:
        """Return the scan of a table that holds every row where ``column`` is ``value``, by the id index.

        ``column`` is one of the contract's ``lookups``. The scan also holds other rows: the statement still
        compares. Where it ``is_empty`` there is no such row.
        """
        scan = self.reader.find(self.snapshot, self.network, table, column, value)
        return self._also_in_head(scan, table, column, value) if self.snapshot.has_head else scan

    def _also_in_head(self, published: Scan, table: str, column: str, value: str) -> Scan:
        served = self.snapshot.table(self.network, table)
        if served is None:
            return published
        place = "milestone_index" if "milestone_index" in served.contract.names else "date"
        days = self.snapshot.head_days
        key = key_function(served.contract, column)
        condition = f"{column} = $value" if key is None else "$value <> ''"
        rows = self.rows(
            f"SELECT DISTINCT {column} AS key, {place} AS place FROM {table} "  # noqa: S608
            f"WHERE date IN (SELECT unnest($days)) AND {condition}",
            {"days": sorted(days), "value": value},
            **{table: Scan(min(days), max(days))},
        )
        places = {row["place"] for row in rows if key is None or key(row["key"]) == value}
        if place == "date":
            return Scan(days=places.union(published.days or ()))
        return Scan(milestones=sorted(places.union(published.milestones or ())))

    def once(self, name: str, derive: Callable[[], T]) -> T:
        """Return what ``derive`` gives, which is derived once per published state and network."""
        key = (self.network, name)
        if key not in self.snapshot.memory:
            self.snapshot.memory[key] = derive()
        value: T = self.snapshot.memory[key]
        return value

    def extend(self, seconds: float) -> None:
        """Let queries from now on take so long: for an answer that is streamed."""
        self._deadline = time.monotonic() + seconds

    def abandon(self) -> None:
        """Cancel the request's queries, those to come too: its client has left."""
        self.reader.abandon(self._expired)

    def page(self, query: PageQuery, filters: Mapping[str, Any], *, positions: tuple[Any, ...]) -> ListPage:
        """Return the page that a request asks for.

        ``filters``: parameters on which the list depends, ids of the path among them. ``positions``: types
        of the values of the list's sort key.
        """
        limits = self.settings.serve
        return page_of(
            f"{self.network} {_template(self.request)}",
            {**filters, "sort": query.sort},
            query.page_size or limits.page_size,
            query.cursor,
            positions=positions,
            maximum=limits.max_page_size,
        )

    def current(self, content: Any) -> Response:
        """Return JSON that holds for this published state; see :mod:`~permalake.web.responses`."""
        return responses.current_json(self.request, self.snapshot.publication, content)


class _WaitError(Exception):
    """Raised where an answer that is to be given at once would wait."""


AnswerAtOnce = Callable[..., Response | BatchedAnswer]
"""Answers from the lake and the ids of a path, in order."""
_Handler = TypeVar("_Handler", bound=Callable[..., Any])
_ANSWERS: dict[Callable[..., Any], AnswerAtOnce] = {}


def at_once(answer: AnswerAtOnce) -> Callable[[_Handler], _Handler]:
    """Say that ``answer`` gives what a handler gives to a request without a query.

    It takes ids as they stand in the path, and raises ProblemError for those it refuses.
    """

    def mark(handler: _Handler) -> _Handler:
        _ANSWERS[handler] = answer
        return handler

    return mark


def answer_of(handler: Callable[..., Any]) -> AnswerAtOnce | None:
    """Return a handler's answer of :func:`at_once`."""
    return _ANSWERS.get(handler)


def try_at_once(lake: RequestLake, answer: Callable[[], T]) -> T | None:
    """Return what ``answer`` gives; None where it needs a query."""
    lake.may_wait = False
    try:
        return answer()
    except _WaitError:
        return None
    finally:
        lake.may_wait = True


async def promptly(lake: RequestLake, answer: Callable[[], T]) -> T:
    """Return what ``answer`` gives: at once if it needs no query, else from a thread.

    It is called again where it turns out to need one, so it must only read.
    """
    prompt = try_at_once(lake, answer)
    return await run_in_threadpool(answer) if prompt is None else prompt


def not_at_once(lake: RequestLake) -> None:
    """Say that what follows waits for a query or a store: :func:`promptly` moves it to a thread."""
    if not lake.may_wait:
        raise _WaitError


def check_time(lake: RequestLake) -> None:
    """Raise QueryTimeoutError if the request's time is up: for work of many steps that are no queries."""
    if time.monotonic() >= lake.deadline:
        raise QueryTimeoutError("the request has taken too long")


def lacks(lake: RequestLake) -> None:
    """Say that an answer, unless a 404 says so, has nothing of what was asked for: the head may have it."""
    lake.request.state.lacks = True


def copied_rows(lake: RequestLake, table: str, scan: Scan, column: str, value: object) -> list[Row]:
    """Return the contract's ``copied`` columns of the rows of a table with a value in a column.

    ``scan`` names the milestones (or days) where they may be. They come from the server's copies, which
    answer at once, or by a query where there are none yet.
    """
    if not lake.snapshot.has_head:
        rows = lake.reader.copied(lake.snapshot, lake.network, table, scan, column=column, value=value)
        if rows is not None:
            return rows
    served = lake.snapshot.table(lake.network, table)
    columns = ", ".join(served.contract.copied) if served else column
    sql = f"SELECT {columns} FROM {table} WHERE {column} = $value"  # noqa: S608
    return lake.rows(sql, {"value": value}, **{table: scan})


def _template(request: Request) -> str:
    route = request.scope.get("route")
    return str(getattr(route, "path", request.url.path))


def of_network(network: str) -> Callable[[Request], Awaitable[None]]:
    """Return the dependency with which a router is mounted for a network."""

    async def of_this(request: Request) -> None:
        set_network(request, network)

    return of_this


def set_network(request: Request, network: str) -> None:
    """Say which network a request is about."""
    request.state.network = network


def lake_of(request: Request, network: str) -> RequestLake:
    """Return the published state of a network for a request."""
    set_network(request, network)
    return RequestLake(request, request.app.state.reader, request.app.state.settings, network)


# FastAPI gives a dependency that is no coroutine a thread of its own, which costs more than this does.
async def _request_lake(request: Request) -> RequestLake:
    return lake_of(request, request.state.network)


PublishedLake = Annotated[RequestLake, Depends(_request_lake)]
"""A handler's argument: the published state of its request."""
