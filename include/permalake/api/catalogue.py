"""The Data pages: every table and view of a namespace, what it means, its first rows, and SQL."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request
from pydantic import Field
from starlette.responses import Response

from permalake.api.analytics import router as analytics
from permalake.api.pages import SITE
from permalake.api.sql import LONGEST, PATH, PUBLICATION, SqlAnswer, run_sql, takes_sql
from permalake.contracts import Table
from permalake.contracts.rows import Row
from permalake.contracts.views import LakeView
from permalake.domains import domain_of
from permalake.lake.serving import EVERYTHING, QueryTimeoutError, Scan
from permalake.web.html import page
from permalake.web.page_router import page_router
from permalake.web.paging import PageOptions
from permalake.web.problems import ProblemError, documented, not_found
from permalake.web.published import published_state
from permalake.web.ranges import newest_real
from permalake.web.state import RequestLake, lake_of
from permalake.web.synthetic import built_days, spans_of
from permalake.web.table_pages import json_value

router = page_router(prefix="/data")
_FIRST_ROWS = 10
_SHOWN_ROWS = 200
_LONGEST_VALUE = 2_000
"""Characters of a value among the first rows; a file has all of it."""
_FORMS = ("csv", "parquet", "arrow")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


class _TableSearch(PageOptions):
    q: str = Field("", max_length=100)


class _SqlBox(PageOptions):
    sql: str = Field("", max_length=LONGEST)
    publication: int | None = PUBLICATION


@router.get("", responses=documented())
def namespaces(request: Request, query: Annotated[PageOptions, Query()]) -> Response:  # noqa: ARG001
    """Show the namespaces of the lake, and the box for SQL."""
    snapshot = published_state(request)
    spaces = []
    for network in sorted(snapshot.networks()):
        listed = _listed(lake_of(request, network))
        spaces.append(
            {
                "network": network,
                "tables": sum(entry["kind"] == "table" for entry in listed),
                "views": sum(entry["kind"] == "view" for entry in listed),
                "rows": sum(entry["rows"] or 0 for entry in listed),
                "bytes": sum(entry["bytes"] or 0 for entry in listed),
                **spans_of(built_days(snapshot, network)),
            }
        )
    content = {
        "network": None,
        "namespaces": spaces,
        **_box(request, _examples(request)[-1]),
    }
    return page(request, None, "data.html", content, SITE)


# Before the page of a namespace: none is named so.
@router.get("/sql", responses=documented(403))
def sql(request: Request, query: Annotated[_SqlBox, Query()]) -> Response:
    """Show the rows of a statement, with links to all of them."""
    text = query.sql.strip()
    answer, problem = SqlAnswer(), None
    if text or not takes_sql(request.app.state.settings.serve):
        try:
            answer = run_sql(request, text, "json", query.publication)
        except ProblemError as error:
            if error.status != 400:
                raise
            problem = error.detail
    pinned = {} if query.publication is None else {"publication": query.publication}
    content = {
        "network": None,
        **_box(request, text),
        "problem": problem,
        "columns": answer.columns,
        "rows": answer.items,
        "is_cut": answer.is_cut,
        "shown_rows": _SHOWN_ROWS,
        "examples": _examples(request),
        "read": query.publication,
        "last": published_state(request).publication,
        "files": {
            form: f"{PATH}?{urlencode({'sql': text, **pinned, 'format': form})}"
            for form in ("csv", "parquet", "json")
        },
    }
    return page(request, None, "sql.html", content, SITE)


@router.get("/{network}", responses=documented())
def tables(request: Request, network: str, query: Annotated[_TableSearch, Query()]) -> Response:
    """Show the tables and views of a namespace; ``q`` is a word of their names or meanings."""
    lake = _lake(request, network)
    word = query.q.strip().casefold()
    listed = _listed(lake)
    matching = [entry for entry in listed if word in entry["table"] or word in entry["meaning"].casefold()]
    content = {"network": network, "q": query.q, "of": len(listed), "tables": matching}
    return page(request, lake.snapshot.publication, "tables.html", content, SITE)


@router.get("/{network}/{table}", responses=documented())
def table(request: Request, network: str, table: str, query: Annotated[PageOptions, Query()]) -> Response:  # noqa: ARG001
    """Show a table or view: its columns, first rows, days, size, downloads, and SQL to copy."""
    lake = _lake(request, network)
    contract = next((contract for contract in _contracts(lake) if contract.name == table), None)
    if contract is None:
        raise not_found(f"table {network}.{table}")
    days = _days(lake, contract)
    day = newest_real(days)
    statement = _select(network, table, day)
    content = {
        "network": network,
        **_facts(lake, contract),
        "key": list(contract.key) if isinstance(contract, Table) else None,
        "note": contract.note if isinstance(contract, LakeView) else "",
        "columns": [
            {
                "name": column.name,
                "type": column.type,
                "nullable": "" if column.required else "yes",
                "meaning": column.doc,
                "rule": column.rule,
            }
            for column in contract.columns
        ],
        "sample_day": day.isoformat() if day else None,
        "sample": _sample(lake, contract, day),
        "files": _files(network, contract, day),
        **_box(request, statement),
    }
    return page(request, lake.snapshot.publication, "table.html", content, SITE)


def _lake(request: Request, network: str) -> RequestLake:
    if network not in published_state(request).networks():
        raise not_found(f"namespace {network}")
    return lake_of(request, network)


def _contracts(lake: RequestLake) -> list[Table | LakeView]:
    """Return the published tables by name, then the views over them."""
    domain, snapshot = domain_of(lake.network), lake.snapshot
    published = {name for network, name in snapshot.tables if network == lake.network}
    stored = [table for name, table in sorted(domain.tables.items()) if name in published]
    views = [view for view in domain.views if published.issuperset(view.tables)]
    return [*stored, *sorted(views, key=lambda view: view.name)]


def _listed(lake: RequestLake) -> list[dict[str, Any]]:
    return [_facts(lake, contract) for contract in _contracts(lake)]


def _facts(lake: RequestLake, contract: Table | LakeView) -> dict[str, Any]:
    """Return what is known of a table without reading it; of a view nobody has counted rows."""
    days = _days(lake, contract)
    stored = lake.snapshot.table(lake.network, contract.name)
    return {
        "table": contract.name,
        "kind": "table" if isinstance(contract, Table) else "view",
        "meaning": contract.doc,
        "rows": sum(file.rows for file in stored.files) if stored else None,
        "bytes": sum(file.size for file in stored.files) if stored else None,
        "days": len(days),
        **spans_of(days),
    }


def _days(lake: RequestLake, contract: Table | LakeView) -> list[date]:
    """Return the days with rows of a table, or of any table below a view."""
    names = (contract.name,) if isinstance(contract, Table) else contract.tables
    return sorted({day for name in names for day in lake.snapshot.days(lake.network, name)})


def _sample(lake: RequestLake, contract: Table | LakeView, day: date | None) -> list[Row] | None:
    """Return some rows of a day as JSON values, long ones cut; None where reading them takes too long."""
    is_dated = any(column.name == "date" for column in contract.columns)
    scan = Scan(day, day) if is_dated and day else EVERYTHING
    scans = {contract.name: scan}
    if isinstance(contract, LakeView):
        scans |= dict.fromkeys(contract.tables, EVERYTHING if contract.runs_on else scan)
    where = " WHERE date = $day" if is_dated and day else ""
    try:
        rows = lake.kept_rows(
            f"SELECT * FROM {contract.name}{where} LIMIT {_FIRST_ROWS}",  # noqa: S608
            {"day": day} if where else {},
            **scans,
        )
    except QueryTimeoutError:
        return None
    return [{name: _cut(json_value(value)) for name, value in row.items()} for row in rows]


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST_VALUE:
        return f"{value[:_LONGEST_VALUE]}… ({len(value)} characters)"
    return value


def _files(network: str, contract: Table | LakeView, day: date | None) -> dict[str, dict[str, str]]:
    """Return the links of whole files: of the newest day, and of all days; none of a view without days."""
    if day is None or all(column.name != "date" for column in contract.columns):
        return {}
    path = f"{analytics.prefix}/{network}/{contract.name}?"
    return {
        str(day): {form: f"{path}{urlencode({'start': day, 'end': day, 'format': form})}" for form in _FORMS},
        "all days": {form: f"{path}{urlencode({'format': form})}" for form in _FORMS},
    }


def _select(network: str, table: str, day: date | None) -> str:
    """Return a statement that reads rows of a day, the first ones where there is none."""
    schema = network if _PLAIN.fullmatch(network) else f'"{network}"'
    where = f" WHERE date = DATE '{day}'" if day else ""
    return f"SELECT * FROM {schema}.{table}{where} LIMIT 100"  # noqa: S608


def _examples(request: Request) -> list[str]:
    """Return statements to begin with: what there is, and the first figures of each namespace."""
    networks = sorted(published_state(request).networks())
    first = [(network, next(iter(domain_of(network).analytics))) for network in networks]
    return ["SHOW TABLES", *(_select(network, table, None) for network, table in first)]


def _box(request: Request, statement: str) -> dict[str, Any]:
    """Return what the box for SQL needs."""
    serve = request.app.state.settings.serve
    return {
        "sql": statement,
        "takes_sql": takes_sql(serve),
        "sql_limits": {"seconds": serve.sql_seconds, "memory": serve.sql_memory, "rows": serve.sql_rows},
    }
