"""The plugin with the pages: all processes of Airflow load it, only the server loads what pages need."""

from __future__ import annotations

from typing import Any

from permalake.orchestrate.alerts import PAGES_PATH


class Pages:
    """The application of :mod:`permalake.orchestrate.page_server`, made when first asked for."""

    def __init__(self) -> None:
        self._application: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI."""
        if self._application is None:
            from permalake.orchestrate.page_server import application

            self._application = application()
        await self._application(scope, receive, send)


def pages() -> dict[str, Any]:
    """Return the application, as a plugin hands it to Airflow."""
    return {"app": Pages(), "url_prefix": PAGES_PATH, "name": "Permalake"}


def calendar_view() -> dict[str, str]:
    """Return the calendar's place in Airflow's menu."""
    return {
        "name": "Days",
        "href": f"{PAGES_PATH}/",
        "url_route": "permalake-days",
        "category": "browse",
        "destination": "nav",
    }
