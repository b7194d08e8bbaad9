"""The Operations page: runs and their steps with timings, and what days still wait for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, TypedDict

from fastapi import Query, Request
from markupsafe import Markup
from starlette.responses import Response

from permalake.contracts.figures import OpenRequests
from permalake.contracts.rows import Row
from permalake.domains import domain_of
from permalake.lake.serving import EVERYTHING
from permalake.lake.state import moment
from permalake.lake.status import networks_with_days, status
from permalake.lake.step_ledger import StepLedger, StepRow
from permalake.pages import SITE
from permalake.web.html import page
from permalake.web.page_router import page_router
from permalake.web.paging import PageOptions
from permalake.web.parameter_types import FormDate, FormNetwork, PrintableText
from permalake.web.problems import documented, not_found
from permalake.web.published import published_state
from permalake.web.state import RequestLake, lake_of
from permalake.web.table_pages import json_value
from permalake.web.timeline import TimelineBar, duration, waterfall

router = page_router()
_TRIES = 400
_RUNS = 25
_REMARKS = 30
_LOG_LINES = 10
_STEPS = 40
_KINDS = {"running": "s0", "done": "s2", "skipped": "s7", "invalid": "s4", "failed": "s4"}
_ORDER = ("running", "failed", "invalid", "done", "skipped")
"""States of a step, the one that says most of its run first."""


class OperationsOptions(PageOptions):
    """Parameters of the page."""

    network: FormNetwork = None
    run: PrintableText | None = None
    day: FormDate = None


@router.get("/operations", responses=documented())
def operations(request: Request, query: Annotated[OperationsOptions, Query()]) -> Response:
    """Show the newest runs, all or those of a day, one of them step by step, and open requests."""
    steps = StepLedger(request.app.state.database)
    now, network = datetime.now(UTC), query.network
    newest = _runs(steps.recent(network, _TRIES, (query.day, query.day) if query.day else None), now)
    chosen = query.run or (newest[0]["run"] if newest else None)
    rows = steps.of_run(chosen, network) if chosen else []
    if query.run and not rows:
        raise not_found(f"run {query.run}")
    shown = {
        "network": network,
        "known": sorted(networks_with_days(request.app.state.database)),
        "day": query.day.isoformat() if query.day else "",
        "runs": newest[:_RUNS],
        "run": _shown(chosen, rows, now) if chosen and rows else None,
        "open": _open_requests(request, network) if request.app.state.reader else None,
        "remarks": _remarks(request, network),
    }
    return page(request, None, "operations.html", shown, SITE)


ShownStep = TypedDict(
    "ShownStep",
    {
        "network": str,
        "step": str,
        "try": int,
        "start": str,
        "end": str,
        "state": str,
        "began": str,
        "seconds": float,
        "submit": str | None,
        "rows": int,
        "quarantined": int | None,
        "reason": str | None,
        "days": int | None,
        "served": dict[str, int],
        "log": list[str],
    },
)
ShownStep.__doc__ = """A try of a step; ``days`` is their number."""


class ShownRun(TypedDict):
    """A run with its newest tries of steps; ``earlier`` is the number of those before."""

    id: str
    earlier: int
    steps: list[ShownStep]
    svg: Markup


class ListedRun(TypedDict):
    """A run in the list of runs."""

    network: str
    run: str
    start: str
    end: str
    state: str
    began: str
    seconds: float
    last_step: str


def _shown(run: str, rows: Sequence[StepRow], now: datetime) -> ShownRun:
    """Return a run with its newest tries of steps, in the order in which they began."""
    newest = rows[-_STEPS:]
    return {
        "id": run,
        "earlier": len(rows) - len(newest),
        "steps": _steps(newest, now),
        "svg": _drawn(newest, now),
    }


def _runs(tries: Sequence[StepRow], now: datetime) -> list[ListedRun]:
    """Return runs, newest first, from their tries, newest first."""
    grouped: dict[tuple[str, str], list[StepRow]] = {}
    for row in tries:
        grouped.setdefault((row.key.network, row.key.run_id), []).append(row)
    return [_run(rows, now) for rows in grouped.values()]


def _run(rows: Sequence[StepRow], now: datetime) -> ListedRun:
    last_tries = {row.key.step: row for row in reversed(rows)}
    states = {row.result.state for row in last_tries.values()}
    began = min(moment(row.began) for row in rows)
    return {
        "network": rows[0].key.network,
        "run": rows[0].key.run_id,
        "start": rows[0].start.isoformat(),
        "end": rows[0].end.isoformat(),
        "state": next(state for state in _ORDER if state in states),
        "began": rows[-1].began,
        "seconds": (max(_ended(row, now) for row in rows) - began).total_seconds(),
        "last_step": rows[0].key.step,
    }


def _ended(row: StepRow, now: datetime) -> datetime:
    return moment(row.ended) if row.ended else now


def _steps(rows: Sequence[StepRow], now: datetime) -> list[ShownStep]:
    return [
        {
            "network": row.key.network,
            "step": row.key.step,
            "try": row.key.number,
            "start": row.start.isoformat(),
            "end": row.end.isoformat(),
            "state": row.result.state,
            "began": row.began,
            "seconds": (_ended(row, now) - moment(row.began)).total_seconds(),
            "submit": row.submit,
            "rows": sum(row.result.rows.values()),
            "quarantined": row.result.quarantined,
            "reason": row.result.reason,
            "days": None if row.result.days is None else len(row.result.days),
            "served": dict(row.result.served or {}),
            "log": list(row.result.log[:_LOG_LINES]),
        }
        for row in rows
    ]


def _drawn(rows: Sequence[StepRow], now: datetime) -> Any:
    first = min(moment(row.began) for row in rows)
    spans = [
        TimelineBar(
            row.key.step if row.key.number == 1 else f"{row.key.step} {row.key.number}",
            (moment(row.began) - first).total_seconds(),
            (_ended(row, now) - moment(row.began)).total_seconds(),
            _KINDS[row.result.state],
        )
        for row in rows
    ]
    durations = ", ".join(f"{span.label} {duration(span.seconds)}" for span in spans)
    return waterfall(spans, title=f"Steps of the run: {durations}")


def _open_requests(request: Request, network: str | None) -> list[dict[str, Any]]:
    """Return what published days still lack, of one network or of all."""
    lists = []
    for name in sorted(published_state(request).networks()):
        lake = lake_of(request, name)
        for request_kind in domain_of(name).open_requests if network in (None, name) else ():
            rows = lake.once(f"open requests: {request_kind.title}", partial(_rows, lake, request_kind))
            if rows:
                lists.append(
                    {"network": name, "title": request_kind.title, "doc": request_kind.doc, "rows": rows}
                )
    return lists


def _rows(lake: RequestLake, request_kind: OpenRequests) -> list[Row]:
    if not lake.snapshot.table(lake.network, request_kind.table):
        return []
    rows = lake.rows(request_kind.sql, {}, **{request_kind.table: EVERYTHING})
    return [{name: json_value(value) for name, value in row.items()} for row in rows]


def _remarks(request: Request, network: str | None) -> list[dict[str, str]]:
    """Return what builds noted of their days, the newest days first."""
    notes = [
        {"network": day.network, "date": day.date.isoformat(), "note": note}
        for day in status(request.app.state.database, network)
        for note in day.notes
    ]
    return sorted(notes, key=lambda note: note["date"], reverse=True)[:_REMARKS]
