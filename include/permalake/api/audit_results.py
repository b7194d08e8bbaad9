"""Audits on the Quality page: results by day and table, Data Docs, and the lineage of a day."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from permalake.audit import docs
from permalake.domains import domain_of, stores_of
from permalake.lake import DayStatus
from permalake.pages.days import state_of
from permalake.pipeline.domain import Domain
from permalake.web.lineage import Stage, lineage
from permalake.web.numbers import amount
from permalake.web.state import RequestLake

Json = dict[str, Any]
_PARTS = 3
_OTHERS = "laws across tables"


def day_results(lake: RequestLake, day: DayStatus) -> Json:
    """Return a day's audit: its result, failures by table, and where its Data Docs are."""
    summary = _summary(day)
    warned = [_failure(line) for line in summary.get("warned", {}).get(day.date.isoformat(), ())]
    return {
        "date": day.date.isoformat(),
        "state": state_of(day, [store.name for store in stores_of(lake.settings, lake.network)]).name,
        "audited": day.audited,
        "published": day.published,
        "run": day.run_id,
        "rows": sum(day.rows.values()),
        "quarantined": day.quarantined,
        "expectations": summary.get("expectations"),
        "warnings": len(warned) if "warned" in summary else summary.get("warnings"),
        "warned": warned,
        "failures": [_failure(line) for line in day.failures],
        "codes": list(day.reasons),
        "error": day.error,
        "docs": f"/audit/{day.network}/{day.attempt}/index.html" if summary else None,
    }


def _summary(day: DayStatus) -> Json:
    """Return the summary of the audit's Data Docs; nothing where they are gone or elsewhere."""
    if not day.attempt:
        return {}
    file = docs.folder(day.network, day.attempt) / "summary.json"
    try:
        summary: Json = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return summary


def _failure(line: str) -> Json:
    """Return ``table: expectation: text`` in its parts; a line of another shape has no table."""
    parts = line.split(": ", _PARTS - 1)
    if len(parts) < _PARTS:
        return {"table": None, "expectation": None, "text": line}
    return dict(zip(("table", "expectation", "text"), parts, strict=True))


def by_table(results: Sequence[Json], tables: Iterable[str]) -> list[Json]:
    """Return a row per table, and one for laws across tables, with the result of each day.

    A result is ``passed``, ``failed``, or None where the day was not audited.
    """
    names = list(tables)

    def row(table: str, holds: Callable[[Json], bool]) -> Json:
        return {"table": table, "results": [_result(day, holds) for day in results]}

    table_rows = [row(table, lambda failure, table=table: failure["table"] == table) for table in names]  # type: ignore[misc]
    return [*table_rows, row(_OTHERS, lambda failure: failure["table"] not in names)]


def _result(day: Json, holds: Callable[[Json], bool]) -> Json:
    failures = [failure for failure in day["failures"] if holds(failure)]
    return {
        "date": day["date"],
        "state": "failed" if failures else "passed" if day["audited"] else None,
        "failures": [": ".join(part for part in failure.values() if part) for failure in failures],
    }


def staged_tables(domain: Domain) -> list[str]:
    """Return the tables of a domain's days, in the order in which its steps stage them."""
    return [table for step in domain.steps for table in step.writes]


def day_lineage(lake: RequestLake, day: DayStatus) -> Json:
    """Return where a day came from and went: its source, the tables of each step, audit and stores."""
    domain = domain_of(lake.network)
    stages = [Stage("Source", _source(lake, domain))]
    stages += [
        Stage("Tables", _tables(day, step.writes), step.name)
        for step in domain.steps
        if any(day.rows.get(table) for table in step.writes)
    ]
    stages.append(Stage(*_verdict(day), "audit"))
    if day.published:
        stages.append(Stage("Published", _moment(day.published), "publish"))
        names = sorted({*day.stores, *(store.name for store in stores_of(lake.settings, lake.network))})
        served = "; ".join(f"{name} {_moment(day.stores.get(name))}" for name in names)
        stages.append(Stage("Readers", f"queries, REST API, pages{'; ' if served else ''}{served}", "serve"))
    title = f"Lineage of {lake.network} {day.date}: " + ", then ".join(stage.title for stage in stages)
    return {
        "stages": [
            {"title": stage.title, "text": stage.text, "work": stage.work or None} for stage in stages
        ],
        "svg": lineage(stages, title=title),
    }


def _source(lake: RequestLake, domain: Domain) -> str:
    if lake.network not in domain.networks(lake.settings):
        return "not configured here any more"
    dataset = domain.inputs(lake.settings, lake.network).dataset
    return f"{dataset[0]} {dataset[1]}" if dataset else "not configured"


def _tables(day: DayStatus, names: Iterable[str]) -> str:
    return ", ".join(f"{name} {amount(day.rows[name])}" for name in names if day.rows.get(name))


def _verdict(day: DayStatus) -> tuple[str, str]:
    if day.error:
        return "Failed", day.error
    return ("Passed", "") if day.audited == "passed" else ("Not audited", "")


def _moment(text: str | None) -> str:
    return f"{text[:10]} {text[11:19]} UTC" if text else "not yet"
