"""One rule for every number of items: one above the limit counts as the limit."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app

LIMIT = 2
NUMBERS = ("pageSize", "page_size", "limit", "numRows", "top")
PATHS = {
    # path with the parameters that it needs; where the list stands
    "/api/publications": ("publications",),
    "/api/analytics/v1/shimmer/calendar_hours": ("items",),
}


@pytest.fixture(scope="module")
def limited(troubled):
    serve = troubled.settings.serve.model_copy(update={"max_page_size": LIMIT})
    with TestClient(create_app(troubled.settings.model_copy(update={"serve": serve}))) as api:
        yield api


def counted(api):
    """The documented GET routes that take a number of items, with that parameter."""
    for path, methods in api.get("/openapi.json").json()["paths"].items():
        for parameter in methods.get("get", {}).get("parameters", ()):
            if parameter["name"] in NUMBERS:
                yield path, parameter


def test_every_number_of_items_has_a_lower_bound_alone(limited) -> None:
    found = list(counted(limited))
    assert {parameter["name"] for _, parameter in found} >= {"pageSize", "page_size", "limit", "top"}
    for path, parameter in found:
        schema = parameter["schema"]
        [number] = [one for one in schema.get("anyOf", [schema]) if one["type"] == "integer"]
        assert number["minimum"] == 1, path
        assert "maximum" not in number, path
        assert "count" in schema["description"], path


@pytest.mark.parametrize("path", PATHS)
def test_more_than_the_limit_counts_as_the_limit(limited, path) -> None:
    name = "limit" if path == "/api/publications" else "pageSize"
    answers = [limited.get(path, params={name: number}).json() for number in (LIMIT, LIMIT + 1, 10**30)]
    [listed] = PATHS[path]
    assert answers[0] == answers[1] == answers[2]
    assert 0 < len(answers[0][listed]) <= LIMIT
    for wrong in (0, -1, "many"):
        assert limited.get(path, params={name: wrong}).status_code == 400
