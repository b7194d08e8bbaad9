"""The documented nginx in front of the API: what it keeps, and what it asks the server for each time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support import places, synthetic_lake
from support.nginx import nginx
from support.whole_server import WholeServer

SITE = places.DATA.parents[1] / "docs" / "examples" / "nginx.conf"
RAW = "application/vnd.iota.serializer-v1"
LIST = "/shimmer/api/indexer/v1/outputs/basic?pageSize=3"


@pytest.fixture(scope="module")
def proxy(whole: WholeServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("nginx")
    site = SITE.read_text().replace("/var/cache/nginx/permalake", f"{folder}/kept")
    server = whole.address.removeprefix("http://")
    with (
        nginx(site.replace("127.0.0.1:8042", server), folder) as address,
        httpx.Client(base_url=address) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def blocks() -> Iterator[str]:
    rows = synthetic_lake.tables("stardust")["messages"]
    return (f"/shimmer/api/core/v2/blocks/0x{row['message_id']}" for row in rows)


def test_what_never_changes_is_asked_for_once(
    proxy: httpx.Client, whole: WholeServer, blocks: Iterator[str]
) -> None:
    path = next(blocks)
    first, second, direct = proxy.get(path), proxy.get(path), httpx.get(f"{whole.address}{path}")
    assert [answer.headers["x-cache"] for answer in (first, second)] == ["MISS", "HIT"]
    assert first.content == second.content == direct.content
    assert first.headers["etag"] == second.headers["etag"] == direct.headers["etag"]


def test_forms_are_kept_apart(proxy: httpx.Client, blocks: Iterator[str]) -> None:
    path = next(blocks)
    for cache in ("MISS", "HIT"):
        as_json, as_bytes = proxy.get(path), proxy.get(path, headers={"Accept": RAW})
        assert as_json.headers["content-type"] == "application/json"
        assert as_bytes.headers["content-type"] == RAW
        assert as_json.headers["x-cache"] == as_bytes.headers["x-cache"] == cache


@pytest.mark.parametrize("path", [LIST, "/health", "/shimmer/api/core/v2/info"])
def test_what_may_change_is_not_kept(proxy: httpx.Client, path: str) -> None:
    assert {proxy.get(path).headers["x-cache"] for _ in range(3)} == {"MISS"}


def test_errors_are_not_kept(proxy: httpx.Client) -> None:
    path = f"/shimmer/api/core/v2/blocks/0x{'00' * 32}"
    answers = [proxy.get(path) for _ in range(2)]
    assert [(answer.status_code, answer.headers["x-cache"]) for answer in answers] == [(404, "MISS")] * 2


def test_a_client_that_holds_an_answer_gets_304_and_others_the_whole(
    proxy: httpx.Client, whole: WholeServer, blocks: Iterator[str]
) -> None:
    for path in (next(blocks), LIST):
        tag = httpx.get(f"{whole.address}{path}").headers["etag"]
        again = proxy.get(path, headers={"If-None-Match": tag})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert proxy.get(path).status_code == 200


def test_a_304_is_never_kept_for_others(
    proxy: httpx.Client, whole: WholeServer, blocks: Iterator[str]
) -> None:
    path = next(blocks)
    tag = httpx.get(f"{whole.address}{path}").headers["etag"]
    assert proxy.get(path, headers={"If-None-Match": tag}).status_code == 304
    whole_answer = proxy.get(path)
    assert (whole_answer.status_code, whole_answer.headers["x-cache"]) == (200, "MISS")


def test_an_export_comes_through(proxy: httpx.Client, whole: WholeServer) -> None:
    path = "/api/analytics/v1/shimmer/ms_analytics?format=csv"
    assert proxy.get(path).content == httpx.get(f"{whole.address}{path}").content


def test_the_documentation_names_the_configuration() -> None:
    text = Path(SITE.parents[1] / "api.md").read_text()
    assert "examples/nginx.conf" in text
