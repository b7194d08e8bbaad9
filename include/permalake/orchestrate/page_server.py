"""The pages of days and runs inside Airflow: for whoever is logged in and may read its DAGs."""

from __future__ import annotations

from fastapi import Depends, FastAPI, Request
from starlette.datastructures import State
from starlette.middleware.base import RequestResponseEndpoint
from starlette.responses import Response

from permalake.config import Settings, load_settings
from permalake.errors import PermalakeError
from permalake.lake.database import Database
from permalake.lake.identity import open_database
from permalake.pages.metrics import LakeRegistry
from permalake.pages.routers import ROUTERS
from permalake.web.html import HEADERS
from permalake.web.problems import add_handlers, problem_in_form

_POLICY = "Content-Security-Policy"


class _OpenedAnew(State):
    """The state for pages, opened for each request: the settings and the catalog may change under Airflow.

    There is no reader of published rows: Airflow's server runs no queries over them.
    """

    reader = None
    sections = ("operations", "reasons")

    @property
    def settings(self) -> Settings:
        return load_settings()

    @property
    def database(self) -> Database:
        settings = self.settings
        return open_database(settings, settings.serve.catalog_wait)


def application() -> FastAPI:
    """Return the application that serves the pages.

    Airflow leaves it to a plugin's application who may read it: whoever may read DAGs.
    """
    from airflow.api_fastapi.core_api.security import requires_access_dag

    reader = Depends(requires_access_dag("GET"))
    app = FastAPI(title="Permalake", dependencies=[reader], docs_url=None, redoc_url=None, openapi_url=None)
    app.state = _OpenedAnew()
    app.state.metrics = LakeRegistry(app.state)

    @app.middleware("http")
    async def _framed(request: Request, answer: RequestResponseEndpoint) -> Response:
        response = await answer(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        policy = response.headers[_POLICY].replace("frame-ancestors 'none'", "frame-ancestors 'self'")
        response.headers[_POLICY] = policy  # Airflow frames the overview
        return response

    add_handlers(app)
    app.add_exception_handler(PermalakeError, _problem)
    for router in ROUTERS:
        app.include_router(router)
    return app


def _problem(request: Request, error: Exception) -> Response:
    return problem_in_form(request, 503, str(error))
