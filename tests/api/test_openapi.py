"""The OpenAPI document against the server: schemathesis with all checks, and what the document must hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from support import places

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
SOME = (
    "^/(health|metrics|iceberg|api/(analytics|indexer|poi|wormhole)|api/permanode/v1/shimmer|iota/api/v1/addresses"
    "|wormhole/(api/)?v1|wormhole/edb/(recent|readrow|totals))"
)
RULES = places.DATA.parent / "support" / "schemathesis.toml"


@pytest.fixture(scope="module")
def document(whole):
    return httpx.get(f"{whole.address}/openapi.json").json()


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def test_every_operation_has_a_name_of_its_own_and_an_example(document):
    found = dict(operations(document))
    assert len({one["operationId"] for one in found.values()}) == len(found) > 250
    for name, operation in found.items():
        assert operation["summary"], name
        assert operation["description"], name
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path":
                assert parameter["schema"].get("examples"), (name, parameter["name"])


def test_errors_are_documented_as_they_are_answered(document):
    for name, operation in operations(document):
        assert "422" not in operation["responses"], name
        assert {"413", "414", "429", "503"} <= operation["responses"].keys(), name
        for status, response in operation["responses"].items():
            if status >= "400":
                form = (
                    "application/json"
                    if "/iceberg/" in name and status in ("400", "404", "503")
                    else "application/problem+json"
                )
                assert list(response["content"]) == [form], (name, status)


def test_the_document_describes_the_route_that_answers(document):
    """Of two routes of one path the first one answers; both protocols have such."""
    operation = document["paths"]["/api/permanode/v1/iota/milestones/{index}"]["get"]
    assert "white-flag order" in operation["description"]


def test_no_request_finds_a_server_error_or_an_undocumented_answer(whole, tmp_path):
    """All checks, on one prefix of each router; ``PERMALAKE_SCHEMATHESIS=all`` takes every route.

    One worker: in Python 3.11 two threads that parse code at once fail ("AST constructor recursion
    depth mismatch").
    """
    chosen = () if os.environ.get("PERMALAKE_SCHEMATHESIS") == "all" else ("--include-path-regex", SOME)
    done = subprocess.run(
        [
            *(SCHEMATHESIS, "--config-file", RULES, "run", f"{whole.address}/openapi.json", *chosen),
            *("--phases", "examples,coverage", "--generation-deterministic"),
            *("--continue-on-failure", "--no-color", "--workers", "1", "--suppress-health-check", "all"),
            *("--warnings", "off"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr + whole.log.read_text()[-5_000:]
    assert "Traceback" not in whole.log.read_text()


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/wormhole/edb/totals", "GET, HEAD, POST"),
        ("/api/poi/v1/shimmer/validate", "POST"),
        ("/health", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_told_which_are_right(whole, path, methods):
    answer = httpx.delete(f"{whole.address}{path}")
    assert (answer.status_code, answer.headers["allow"]) == (405, methods)


@pytest.mark.parametrize(
    "path",
    [
        "/api/analytics/v1/shimmer/ms_analytics?start=0",
        "/api/wormhole/v1/tvl?end=1700000000",
        "/wormhole/api/v1/operations?from=1700000000",
    ],
)
def test_a_number_is_no_date(whole, path):
    answer = httpx.get(f"{whole.address}{path}")
    assert answer.status_code == 400
    assert "ISO 8601" in answer.json()["detail"]
