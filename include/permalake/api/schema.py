"""The OpenAPI document: what FastAPI derives from the handlers, corrected where the server answers otherwise.

FastAPI documents the last of several routes of one path, but the first one answers; it announces 422, which
is 400 here; it makes headings of names; and it shows problems as plain JSON, which only errors of the Iceberg
catalog are. The limits of the server hold for every route.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import BaseRoute

from permalake.api.analytics import table_routes
from permalake.api.iceberg import CatalogErrorDocument
from permalake.web.answers import resolve_answers
from permalake.web.problems import PROBLEM_JSON, ProblemDocument
from permalake.web.responses import JSON

_LIMITS = {
    "401": "The server wants a bearer token.",
    "413": "The body is too large.",
    "414": "The address is too long.",
    "431": "The headers are too large.",
    "429": "Too many requests from this address; see Retry-After.",
    "500": "An internal error; the server's log says more.",
    "503": "The server is busy, or a store is away; see Retry-After.",
}
_PROBLEM = f"#/components/schemas/{ProblemDocument.__name__}"
_VALIDATION = ("HTTPValidationError", "ValidationError")


def add_schema(app: FastAPI) -> None:
    """Let ``/openapi.json`` be the corrected document, which is made once."""

    @cache
    def document() -> dict[str, Any]:
        made = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            tags=app.openapi_tags,
            routes=[*_answering(app.routes), *table_routes()],
            servers=app.servers,
        )
        return _corrected(made)

    @cache
    def encoded() -> bytes:
        return json.dumps(document(), ensure_ascii=False, separators=(",", ":")).encode()

    # It runs in a thread, as to make the document takes a second.
    def answer() -> Response:
        return Response(encoded(), media_type=JSON)

    app.openapi = document  # type: ignore[method-assign]
    app.add_api_route("/openapi.json", answer, include_in_schema=False)


def _answering(routes: list[BaseRoute]) -> Iterator[BaseRoute]:
    """Yield the routes without those that an earlier one of the same path and method hides."""
    seen: set[tuple[str, str]] = set()
    for route in routes:
        operations = (
            {(route.path, method) for method in route.methods} if isinstance(route, APIRoute) else set()
        )
        if not operations or operations - seen:
            yield route
        seen |= operations


def _corrected(document: dict[str, Any]) -> dict[str, Any]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            operation["summary"] = _summary(operation["description"])
            operation["operationId"] = re.sub(r"\W+", "_", f"{method}{path}").strip("_")
            _correct_responses(operation["responses"])
    resolve_answers(document)
    for name in _VALIDATION:
        document["components"]["schemas"].pop(name, None)
    return document


def _summary(description: str) -> str:
    """Return the first sentence of a description as a heading: "Return a block." is "A block"."""
    first = re.split(r"\.(?: (?=[A-Z])|$)", " ".join(description.split("\n\n", maxsplit=1)[0].split()))[0]
    first = first.removeprefix("Return ").replace("Answer 501: it asks for ", "not served: ", 1)
    return first if "_" in first.split()[0] else first[0].upper() + first[1:]


def _correct_responses(responses: dict[str, Any]) -> None:
    responses.pop("422", None)
    for status, description in _LIMITS.items():
        responses.setdefault(status, {"description": description})
    for status, response in responses.items():
        if status >= "400" and CatalogErrorDocument.__name__ not in str(response.get("content")):
            response["content"] = {PROBLEM_JSON: {"schema": {"$ref": _PROBLEM}}}
