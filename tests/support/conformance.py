"""Answers against the OpenAPI document of the application that gave them; it must name every member."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from urllib.parse import unquote

import httpx
import jsonschema
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

CHECKED: Counter[tuple[str, int]] = Counter()
"""How many answers there were, by operation (method and path) and status."""
ENOUGH = 20
"""Answers of one operation and status that are compared: validation takes as long as the answer itself."""
MOST = 500
"""Answers of one test that are kept for it."""
_DOCUMENTS: dict[tuple[str, ...], Described] = {}
_NOT_CLOSED = ("additionalProperties", "anyOf", "allOf", "oneOf")


class Described:
    """An OpenAPI document that finds operations and validates answers."""

    def __init__(self, document: dict) -> None:
        self.operations = [
            (method.upper(), template, re.compile(_pattern(template)), operation)
            for template, methods in document["paths"].items()
            for method, operation in methods.items()
        ]
        schemas = {name: _closed(schema) for name, schema in _schemas(document).items()}
        self.components = {"components": {"schemas": schemas}}

    def operation(self, method: str, path: str) -> tuple[str, dict] | None:
        """Return the template and the operation of a request; None where there is none."""
        wanted = "GET" if method == "HEAD" else method
        for own, template, pattern, operation in self.operations:
            if own == wanted and pattern.fullmatch(path):
                return f"{own} {template}", operation
        return None

    @cache  # noqa: B019 - one for each document of a run
    def validator(self, name: str, status: str, media_type: str) -> jsonschema.Draft202012Validator | None:
        """Return what validates an answer; None where the document has no such answer."""
        method, template = name.split(" ", 1)
        operation = next(one for own, path, _, one in self.operations if (own, path) == (method, template))
        content = operation["responses"].get(status, {}).get("content", {}).get(media_type)
        if content is None:
            return None
        schema = _closed(content["schema"]) | self.components
        checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
        return jsonschema.Draft202012Validator(schema, format_checker=checker)

    def check(self, response: httpx.Response) -> None:
        """Fail where an answer of an operation is not as the document has it."""
        request = response.request
        found = self.operation(request.method, unquote(request.url.path).rstrip("/"))
        if found is None or response.status_code in (304, 405) or not response.content:
            return
        name, _ = found
        CHECKED[name, response.status_code] += 1
        if CHECKED[name, response.status_code] > ENOUGH:
            return
        media_type = response.headers["content-type"].split(";")[0]
        validator = self.validator(name, str(response.status_code), media_type)
        told = f"{request.method} {request.url}: {response.status_code} {media_type}"
        assert validator is not None, f"{told} is not documented for {name}"
        if media_type.endswith("json"):
            faults = [_told(error) for error in validator.iter_errors(response.json())]
            assert not faults, f"{told} is not what {name} documents: {faults[:5]}"


@pytest.fixture(autouse=True)
def conforming_answers():
    """Compare what test clients got with the document, once a test is over; for conftests of routes."""
    request, answers = TestClient.request, []

    def kept(self, *given, **further):
        response = request(self, *given, **further)
        if len(answers) < MOST:
            answers.append((self.app, response))
        return response

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TestClient, "request", kept)
        yield
    for app, response in answers:
        if isinstance(app, FastAPI):
            described(app).check(response)


def described(app: FastAPI) -> Described:
    """Return the document of an application, made once for all that have the same routes."""
    routes = tuple(
        str(getattr(route, "path", "")) for route in app.routes if getattr(route, "include_in_schema", False)
    )
    if routes not in _DOCUMENTS:
        _DOCUMENTS[routes] = Described(app.openapi())
    return _DOCUMENTS[routes]


def _schemas(document: dict) -> dict:
    return document.get("components", {}).get("schemas", {})


def _pattern(template: str) -> str:
    parts = re.split(r"({\w+})", template)
    return "".join(
        (".+" if part == "{rest}" else "[^/]+") if part.startswith("{") else re.escape(part) for part in parts
    )


def _closed(schema):
    """Return a schema that takes no member that it does not name."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and not any(name in schema for name in _NOT_CLOSED):
        closed["additionalProperties"] = False
    return closed


def _told(error: jsonschema.ValidationError) -> str:
    deepest = jsonschema.exceptions.best_match([error])
    return f"{deepest.json_path}: {deepest.message[:300]}"
