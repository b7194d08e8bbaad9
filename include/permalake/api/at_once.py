"""Answers that need no routing, no validation and no thread: what did not change, and single rows by id.

FastAPI takes several times as long for a request as reading its row. The application answers all else: other
routes, other methods, queries, rows that are not copied, and every error.
"""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from permalake.config import Settings
from permalake.lake.serving import LakeReader
from permalake.web.batches import BatchedAnswer, Batches
from permalake.web.mount import Mount
from permalake.web.problems import ProblemError
from permalake.web.published import published_state
from permalake.web.responses import not_modified
from permalake.web.state import AnswerAtOnce, RequestLake, answer_of, try_at_once

_Place = tuple[str, int]
"""A path up to its ids, and how many they are."""


class AtOnce:
    """Answers single rows; ``mounts`` are searched for handlers with an answer of :func:`at_once`."""

    def __init__(self, app: FastAPI, settings: Settings, reader: LakeReader, mounts: Iterable[Mount]) -> None:
        self._app = app
        self._settings = settings
        self._reader = reader
        self._batches = Batches()
        self._routes = {
            place: (mount, route, answer)
            for mount in mounts
            for route in mount.router.routes
            if isinstance(route, APIRoute)
            and (answer := answer_of(route.endpoint))
            and (place := _place(mount.prefix + route.path))
        }

    async def answer(self, scope: Scope) -> Response | None:
        """Return the answer to a request; None leaves it to the application."""
        if scope["method"] != "GET":
            return None
        scope["app"] = self._app
        request = Request(scope)
        if unchanged := not_modified(request, published_state(request).publication):
            return unchanged
        if scope["query_string"]:
            return None
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        for count in (1, 3):
            prefix, *ids = path.rsplit("/", count)
            if route := self._routes.get((prefix, count)):
                row = self._row(request, *route, ids)
                return await self._batches.answer(row) if isinstance(row, BatchedAnswer) else row
        return None

    def _row(
        self, request: Request, mount: Mount, route: APIRoute, answer: AnswerAtOnce, ids: list[str]
    ) -> Response | BatchedAnswer | None:
        lake = RequestLake(request, self._reader, self._settings, mount.network)
        try:
            response = try_at_once(lake, lambda: answer(lake, *ids))
        except ProblemError:
            return None
        request.state.network = mount.network
        request.scope["route"] = _Template(mount.prefix + route.path)
        return response


class _Template:
    """The part of a route that metrics name."""

    def __init__(self, path: str) -> None:
        self.path = path


def _place(path: str) -> _Place:
    prefix, _, ids = path.partition("/{")
    return prefix, ids.count("{") + 1
