"""Errors of the REST API: RFC 9457 problem documents that also carry the node's ``error`` member.

``{"type", "title", "status", "detail", "error": {"code", "message"}}``: clients of nodes read the last one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route

from permalake.errors import CatalogUnavailableError, StoreUnavailableError
from permalake.lake.serving import PoolBusyError, QueryTimeoutError
from permalake.web.html import problem_page, wants_page
from permalake.web.unknown_parameters import parameters_of, unknown_parameter

PROBLEM_JSON = "application/problem+json"
_RETRY_AFTER = "2"
"""Seconds after which a store that was away, or a lake that was busy, is worth another request."""
_LOG = logging.getLogger(__name__)


class ProblemError(Exception):
    """Raised by a handler to answer with a problem document; ``detail`` is one line that helps the caller.

    ``extra``: further members of the document.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})


class NodeError(BaseModel):
    """The node's form of an error, as TIP-13 and TIP-25 have it."""

    code: str
    message: str


class ProblemDocument(BaseModel):
    """A problem document (RFC 9457) with the node's ``error`` beside it; some routes add members."""

    model_config = ConfigDict(extra="allow")

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    error: NodeError


def not_found(what: str) -> ProblemError:
    """Return the error for something that the published state does not hold."""
    return ProblemError(404, f"{what} is not in the published days")


def bad_request(detail: str) -> ProblemError:
    """Return the error for a malformed request."""
    return ProblemError(400, detail)


def not_served(reason: str) -> ProblemError:
    """Return the error for a route that a permanode cannot serve."""
    return ProblemError(501, reason)


def problem_response(
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Response:
    """Return a problem document."""
    content = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "error": {"code": str(status), "message": detail},
        **(extra or {}),
    }
    headers = {"Cache-Control": "no-store", **(headers or {})}
    return JSONResponse(content, status, headers=dict(headers), media_type=PROBLEM_JSON)


def add_handlers(app: FastAPI) -> None:
    """Let every exception of ``app`` become a problem document; none shows a trace, a path or SQL."""
    app.add_exception_handler(ProblemError, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(QueryTimeoutError, _timeout)
    app.add_exception_handler(StoreUnavailableError, _unavailable)
    app.add_exception_handler(PoolBusyError, _unavailable)
    app.add_exception_handler(CatalogUnavailableError, _no_catalog)
    app.add_exception_handler(Exception, _unexpected)


def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)  # noqa: S101
    return problem_in_form(request, error.status, error.detail, error.headers, error.extra)


def problem_in_form(
    request: Request,
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Response:
    """Return a problem in the form that was asked for: a page for browsers, else a document."""
    if not wants_page(request):
        return problem_response(status, detail, headers, extra)
    answer = problem_page(request, status, HTTPStatus(status).phrase, detail)
    answer.headers.update(headers or {})
    return answer


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    return problem_in_form(request, 400, validation_detail(request, error))


def validation_detail(request: Request, error: RequestValidationError) -> str:
    """Return the first fault of a request on one line that names the parameter."""
    fault = error.errors()[0]
    where, *path = (str(part) for part in fault["loc"])
    name = ".".join(path) or where
    if fault["type"] == "extra_forbidden" and where == "query":
        return unknown_parameter(name, parameters_of(request.scope["route"]))
    return f"{name}: {fault['msg'].removeprefix('Value error, ')}"


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    detail = "no such route" if error.status_code == 404 else str(error.detail)
    headers = {"Allow": _allowed(request)} if error.status_code == 405 else error.headers
    return problem_in_form(request, error.status_code, detail, headers)


def _allowed(request: Request) -> str:
    """Return the methods of all routes of a path; the framework names those of the first one."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    matching = (route for route in routes if route.matches(request.scope)[0] is not Match.NONE)
    methods = {method for route in matching for method in route.methods or ()}
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))


def _timeout(request: Request, error: Exception) -> Response:
    return problem_in_form(request, 504, str(error))


def _unavailable(request: Request, error: Exception) -> Response:
    return problem_in_form(request, 503, str(error), {"Retry-After": _RETRY_AFTER})


def _no_catalog(request: Request, error: Exception) -> Response:
    _LOG.warning("%s %s: %s", request.method, request.url.path, error)
    detail = "the lake's catalog is locked or does not answer; try again"
    return problem_in_form(request, 503, detail, {"Retry-After": _RETRY_AFTER})


def _unexpected(request: Request, error: Exception) -> Response:
    _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem_in_form(request, 500, "internal error; the server's log says more")


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return OpenAPI's ``responses`` of the problems that every route can answer with, and further ones."""
    problem = {"model": ProblemDocument, "content": {PROBLEM_JSON: {}}}
    always = (400, 404, 429, 500, 503, 504)
    return dict.fromkeys(sorted({*always, *statuses}), problem)
