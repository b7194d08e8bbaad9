"""The OpenAPI document against the server: schemathesis with all checks, and what the document must hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from permalake.domains import DOMAINS
from permalake.iota.contracts import IOTA_TABLES
from support import places
from support.length import LONG

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
SOME = (
    "^/(health|metrics|iceberg/v1/(config|publication/{number}/namespaces$)|iota/api/v1/addresses"
    "|api/(sql|proofs|wormhole|poi/v1/shimmer/validate|indexer/v1/shimmer/outputs/basic)"
    "|api/permanode/v1/shimmer/m|api/analytics/v1($|/{network}/[r-s])"
    "|wormhole/(edb/|v1/s|api/v1/(vaas|o)))"
)
RULES = places.DATA.parent / "support" / "schemathesis.toml"


@pytest.fixture(scope="module")
def document(whole):
    # It is made when it is first asked for.
    return httpx.get(f"{whole.address}/openapi.json", timeout=60).json()


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def test_every_operation_has_a_name_of_its_own_and_an_example(document) -> None:
    found = dict(operations(document))
    assert len({one["operationId"] for one in found.values()}) == len(found) > 250
    for name, operation in found.items():
        assert operation["summary"], name
        assert operation["description"], name
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path":
                assert parameter["schema"].get("examples"), (name, parameter["name"])


def test_every_answer_has_a_schema(document) -> None:
    """Health has no body, and what is not served has no answer but 501."""
    without = set()
    for name, operation in operations(document):
        answers = {status: one for status, one in operation["responses"].items() if status < "300"}
        if not answers:
            assert operation["responses"].keys() & {"501"}, name
            assert operation["summary"].startswith("Not served: "), name
            continue
        assert answers.keys() == {"200"}, name
        content = answers["200"].get("content")
        if content is None:
            without.add(name)
            continue
        for media_type, one in content.items():
            assert one["schema"], (name, media_type)
    assert without == {
        "get /health",
        *(f"get /{network}/health" for network in ("shimmer", "iota", "wormhole")),
    }


def test_types_have_names_of_their_own(document) -> None:
    """A name with a module's path in it is one of two types that share it."""
    names = document["components"]["schemas"]
    assert len(names) > 200
    assert not [name for name in names if "permalake" in name.lower()]
    # Generators of clients name classes by titles.
    assert [name for name, schema in names.items() if schema["title"] != name] == []


def test_groups_and_operations_are_told_in_words(document) -> None:
    told = {group["name"] for group in document["tags"] if group["description"]}
    used = {tag for _, operation in operations(document) for tag in operation["tags"]}
    assert told == used
    for name, operation in operations(document):
        assert operation["summary"] == operation["summary"].strip(" ."), name
        assert "{" not in operation["summary"], name


def test_a_table_of_analytics_has_its_columns_and_key(document) -> None:
    operation = document["paths"]["/api/analytics/v1/{network}/native_tokens"]["get"]
    parameters = {one["name"]: one["required"] for one in operation["parameters"] if one["in"] == "query"}
    assert parameters["token_id"]
    assert not parameters["output_id"]
    page = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    row = document["components"]["schemas"][page]["properties"]["items"]["items"]["$ref"].rpartition("/")[2]
    columns = document["components"]["schemas"][row]["properties"]
    contract = IOTA_TABLES["native_tokens"]
    assert {name: one["description"] for name, one in columns.items()} == {
        column.name: column.doc for column in contract.columns
    }
    analytics = {path for path in document["paths"] if path.startswith("/api/analytics/v1/{network}/")}
    assert {path.rpartition("/")[2] for path in analytics} == {
        name for domain in DOMAINS for name in domain.analytics
    }


def test_errors_are_documented_as_they_are_answered(document) -> None:
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


def test_the_document_describes_the_route_that_answers(document) -> None:
    """Of two routes of one path the first one answers; both protocols have such."""
    operation = document["paths"]["/api/permanode/v1/iota/milestones/{index}"]["get"]
    assert "white-flag order" in operation["description"]


@pytest.mark.scaled
def test_no_request_finds_a_server_error_or_an_undocumented_answer(whole, tmp_path) -> None:
    """All checks, on a few routes of each router; ``make long`` takes every route.

    One worker: in Python 3.11 two threads that parse code at once fail ("AST constructor recursion
    depth mismatch").
    """
    chosen = () if LONG else ("--include-path-regex", SOME)
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
def test_a_wrong_method_is_told_which_are_right(whole, path, methods) -> None:
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
def test_a_number_is_no_date(whole, path) -> None:
    answer = httpx.get(f"{whole.address}{path}")
    assert answer.status_code == 400
    assert "ISO 8601" in answer.json()["detail"]
