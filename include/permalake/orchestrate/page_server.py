"""Permalake's pages inside Airflow: for whoever is logged in and may read its DAGs."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.middleware.base import RequestResponseEndpoint

from permalake.audit import docs
from permalake.config import Settings, load_settings
from permalake.domains import open_reader, stores_of
from permalake.errors import PermalakeError
from permalake.lake import DayStatus, Reader
from permalake.lake.identity import open_database
from permalake.lake.step_ledger import StepLedger
from permalake.pages.calendar import MONTHS_SHOWN, calendar_page, day_page
from permalake.pages.days import freshness
from permalake.pages.metrics import LakeMetrics, LakeRegistry
from permalake.pages.metrics import router as metrics
from permalake.pages.runs import run_page, runs_page
from permalake.web.html import styled_headers
from permalake.web.static_files import HostlessFiles

_MOST_TRIES = 500


def application() -> FastAPI:
    """Return the application that serves the pages.

    Airflow leaves it to a plugin's application who may read it: whoever may read DAGs.
    """
    from airflow.api_fastapi.core_api.security import requires_access_dag

    reader = Depends(requires_access_dag("GET"))
    app = FastAPI(title="Permalake", dependencies=[reader], docs_url=None, redoc_url=None, openapi_url=None)

    @app.middleware("http")
    async def _policy(request: Request, answer: RequestResponseEndpoint) -> Response:
        response = await answer(request)
        response.headers.update(styled_headers("'self'"))  # Airflow frames the calendar
        return response

    @app.exception_handler(PermalakeError)
    def _told(request: Request, error: PermalakeError) -> PlainTextResponse:  # noqa: ARG001
        return PlainTextResponse(f"{error}\n", status_code=503)

    @app.get("/", response_class=HTMLResponse)
    def calendar(
        network: str | None = None, months: Annotated[int, Query(ge=1, le=1200)] = MONTHS_SHOWN
    ) -> str:
        settings = load_settings()
        days = _days(settings, network)
        stores = {name: _stores(settings, name) for name in days}
        every = [day for days_of_network in days.values() for day in days_of_network]
        return calendar_page(days, stores, freshness(every), only=network, shown=months)

    @app.get("/day", response_class=HTMLResponse)
    def one_day(network: str, date: date) -> str:
        settings = load_settings()
        days = [day for day in _reader(settings).status(network) if day.date == date]
        if not days:
            raise HTTPException(404, f"the lake knows nothing of {network} {date}")
        page = docs.folder(network, days[0].attempt or "none") / "index.html"
        address = f"audit/{page.relative_to(docs.root()).as_posix()}" if page.is_file() else None
        return day_page(days[0], _stores(settings, network), address)

    @app.get("/freshness", response_class=JSONResponse)
    def fresh() -> list[dict[str, Any]]:
        return [
            {"network": one.network, "latest": one.latest.isoformat(), "age_seconds": one.seconds}
            for one in freshness(_every_day())
        ]

    @app.get("/audit/{path:path}", response_class=Response)
    async def audit(path: str, request: Request) -> Response:
        files = HostlessFiles(directory=docs.root(), html=True, check_dir=False)
        return await files.get_response(path, request.scope)

    _add_run_pages(app)
    app.state.metrics = LakeRegistry(LakeMetrics(_every_day, lambda name: _stores(load_settings(), name)))
    app.include_router(metrics)
    return app


def _reader(settings: Settings) -> Reader:
    return open_reader(settings, settings.serve.catalog_wait)


def _ledger() -> StepLedger:
    settings = load_settings()
    return StepLedger(open_database(settings, settings.serve.catalog_wait))


def _every_day() -> list[DayStatus]:
    return _reader(load_settings()).status()


def _add_run_pages(app: FastAPI) -> None:
    @app.get("/runs", response_class=HTMLResponse)
    def runs(network: str | None = None) -> str:
        return runs_page(_ledger().recent(network, _MOST_TRIES))

    @app.get("/run", response_class=HTMLResponse)
    def one_run(id: Annotated[str, Query(max_length=250)]) -> str:
        rows = _ledger().of_run(id)
        if not rows:
            raise HTTPException(404, "the lake knows no such run")
        return run_page(id, rows)


def _stores(settings: Settings, network: str) -> list[str]:
    return [store.name for store in stores_of(settings, network)]


def _days(settings: Settings, network: str | None) -> dict[str, list[DayStatus]]:
    found: dict[str, list[DayStatus]] = {name: [] for name in settings.namespaces}
    for day in _reader(settings).status(network):
        found.setdefault(day.network, []).append(day)
    return found
