"""HEAD on every GET route, and addresses with slashes too many."""

from __future__ import annotations

import http.client
import re
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit

import pytest


def examples(document: dict[str, Any]) -> list[str]:
    """The documented GET routes with their examples in place of parameters."""
    return [
        re.sub("{(.+?)}", partial(example, methods["get"]["parameters"]), path) if "{" in path else path
        for path, methods in document["paths"].items()
        if "get" in methods
    ]


def example(parameters: list[dict[str, Any]], name: re.Match[str]) -> str:
    parameter = next(one for one in parameters if (one["in"], one["name"]) == ("path", name[1]))
    return quote(str(parameter["schema"]["examples"][0]), safe="")


def test_head_is_answered_like_get_on_every_route(troubled) -> None:
    paths = examples(troubled.api.get("/openapi.json").json())
    assert len(paths) > 60
    paths += ["/", "/shimmer", "/shimmer/explore?q=1", "/quality", "/operations", "/docs", "/static/docs.js"]
    for path in paths:
        get, head = (troubled.api.request(method, path, follow_redirects=False) for method in ("GET", "HEAD"))
        assert head.content == b"", path
        if re.match("/iceberg/v1/publication/1/namespaces/[^/]+(/tables/.+)?$", path):  # an existence check
            assert (get.status_code, head.status_code) == (200, 204), path
            assert head.headers["etag"] == get.headers["etag"], path
            continue
        assert head.status_code == get.status_code, path
        for answer in (get, head):
            if path == "/metrics":  # it counts these requests
                del answer.headers["content-length"]
        assert head.headers == get.headers, path


def test_head_of_an_export_writes_no_file_and_frees_its_slot(troubled) -> None:
    path = "/api/analytics/v1/shimmer/ms_analytics?format=csv"
    for _ in range(5):
        answer = troubled.api.head(path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    assert troubled.api.get(path).text.startswith("ms_range_id,")


@pytest.mark.parametrize(
    ("path", "allow"), [("/wormhole/edb/totals", "GET, HEAD, POST"), ("/api/poi/v1/shimmer/validate", "POST")]
)
def test_head_is_allowed_where_get_is(whole, path, allow) -> None:
    connection = http.client.HTTPConnection(urlsplit(whole.address).netloc, timeout=30)
    connection.request("DELETE", path)
    refused = connection.getresponse()
    assert (refused.status, refused.headers["allow"]) == (405, allow)
    refused.read()
    connection.request("HEAD", path)
    head = connection.getresponse()
    assert head.status == (200 if "HEAD" in allow else 405)
    assert head.read() == b""
    connection.request("HEAD", "/health")  # on the same connection: nothing of a body was sent
    assert connection.getresponse().status == 200
    connection.close()


@pytest.mark.parametrize(
    "path",
    [
        "/shimmer//api/core/v2/milestones/by-index/1",
        "/shimmer/api/core/v2/milestones/by-index/1/",
        "//shimmer/api//core/v2/milestones/by-index/1//",
        "/shimmer/",
        "/health/",
        "/api/analytics/v1/",
        "//",
    ],
)
def test_slashes_too_many_do_no_harm(troubled, path) -> None:
    plain = re.sub("/+", "/", path).rstrip("/") or "/"
    expected, answer = (
        troubled.api.get(f"http://testserver{one}", follow_redirects=False) for one in (plain, path)
    )
    assert (answer.status_code, answer.content) == (expected.status_code, expected.content)
    assert answer.status_code == (404 if "by-index" in path else 200)
    assert answer.text.count("no such route") == 0


def test_a_folder_of_files_keeps_its_slash(troubled) -> None:
    folder = f"/audit/shimmer/{troubled.attempt}"
    assert troubled.api.get(f"{folder}/", follow_redirects=False).status_code == 200
    without = troubled.api.get(folder, follow_redirects=False)
    assert without.headers["location"] == f"{folder}/"
