"""Limits of the server: size, rate, tokens, concurrency and time, each with its answer and its counter."""

from __future__ import annotations

import gzip
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from permalake.api.shared_counts import RateLimit
from support.limited_api import application, build
from support.live_api import live_api

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    build(folder)
    return folder


@pytest.fixture
def client(warehouse):
    def open_client(**serve):
        return TestClient(application(warehouse, **serve))

    return open_client


def refusals(client, reason):
    text = client.get("/metrics").text
    line = f'permalake_http_rejected_total{{reason="{reason}"}} '
    return next((float(one.removeprefix(line)) for one in text.splitlines() if one.startswith(line)), 0)


def test_an_address_or_a_body_too_long_is_refused(client) -> None:
    with client(body_bytes=100) as api:
        assert api.get("/shimmer/api/routes?" + "a" * 8192).status_code == 414
        assert api.post("/shimmer/api/routes", content=b"x" * 101).status_code == 413
        assert api.post("/shimmer/api/routes", content=b"x" * 99).status_code == 405
        assert (refusals(api, "url"), refusals(api, "body")) == (1, 1)


def test_a_body_in_chunks_is_refused_once_it_is_too_long(warehouse) -> None:
    """Its length is not told before; what the framework makes of a body cut short does not matter."""

    def chunks(size):
        yield b'{"a": "'
        for _ in range(size):
            yield b"x" * 10
        yield b'"}'

    with live_api(application(warehouse, body_bytes=100)) as url:
        path = f"{url}/shimmer/echo"
        assert httpx.post(path, content=chunks(5), headers=JSON).text == "1"
        answer = httpx.post(path, content=chunks(10), headers=JSON)
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "413")
        assert 'permalake_http_rejected_total{reason="body"} 1.0' in httpx.get(f"{url}/metrics").text


def test_a_client_that_asks_too_often_waits(client) -> None:
    with client(rate_per_minute=3) as api:
        answers = [api.get("/shimmer/api/routes") for _ in range(4)]
        assert [one.status_code for one in answers] == [200, 200, 200, 429]
        assert int(answers[-1].headers["retry-after"]) <= 21
        assert answers[-1].json()["error"]["code"] == "429"


def test_wrong_tokens_count_as_requests(client) -> None:
    with client(rate_per_minute=3, tokens=["one"]) as api:
        wrong = {"Authorization": "Bearer two"}
        answers = [api.get("/shimmer/api/routes", headers=wrong).status_code for _ in range(4)]
    assert answers == [401, 401, 401, 429]


def test_only_a_trusted_proxy_names_the_client(warehouse) -> None:
    def statuses(**serve):
        with live_api(application(warehouse, rate_per_minute=2, **serve)) as url:
            return [
                httpx.get(f"{url}/health", headers={"X-Forwarded-For": f"192.0.2.{number}"}).status_code
                for number in range(4)
            ]

    assert statuses() == [200, 200, 429, 429]
    assert statuses(trusted_proxies=["10.0.0.0/8"]) == [200, 200, 429, 429]
    assert statuses(trusted_proxies=["127.0.0.1"]) == [200, 200, 200, 200]


def test_buckets_fill_again() -> None:
    limit = RateLimit(60)
    assert [limit.wait("a", 0.0) for _ in range(60)] == [0.0] * 60
    assert limit.wait("a", 0.0) == pytest.approx(1.0)
    assert limit.wait("b", 0.0) == 0.0
    assert limit.wait("a", 1.5) == 0.0


def test_a_token_opens_everything_but_health_is_open(client) -> None:
    with client(tokens=["one", "two"]) as api:
        assert api.get("/health").status_code == 200
        assert api.get("/shimmer/health").status_code == 200
        assert api.get("/wormhole/health").status_code != 401
        for path in (
            "/operations/health",
            "/shimmer/api/health",
            "/nosuch/health",
            "/shimmer/explore/health",
        ):
            assert api.get(path).status_code == 401, path
        for header in ({}, {"Authorization": "Bearer three"}, {"Authorization": "Basic two"}):
            refused = api.get("/shimmer/api/routes", headers=header)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert api.get("/shimmer/api/routes", headers={"Authorization": "Bearer two"}).status_code == 200


def test_a_query_that_takes_too_long_is_cancelled(client) -> None:
    with client(timeout=0.3, lake_pool=1) as api:
        answer = api.get("/shimmer/slow")
        assert (answer.status_code, answer.json()["status"]) == (504, 504)
        assert api.get("/shimmer/health").status_code == 200
        assert 'kind="QueryTimeoutError"' in api.get("/metrics").text


def test_an_unexpected_error_shows_nothing_of_the_inside(client) -> None:
    with client() as api:
        answer = api.get("/shimmer/broken")
        assert answer.status_code == 500
        assert answer.json()["detail"] == "internal error; the server's log says more"


def test_metrics_name_templates_not_ids(client) -> None:
    with client() as api:
        api.get(f"/shimmer/api/core/v2/blocks/{'00' * 32}")
        api.get("/nosuch/path")
        text = api.get("/metrics").text
    route = 'route="/{network}/api/core/v2/blocks/{blockId}",status="404"'
    assert f'permalake_http_requests_total{{method="GET",network="shimmer",{route}}} 1.0' in text
    assert 'route="none",status="404"' in text
    assert "nosuch" not in text
    assert 'permalake_days{network="shimmer",state="published"} 1.0' in text


def test_browsers_of_any_origin_may_ask(client) -> None:
    ask = {"Origin": "https://a.example", "Access-Control-Request-Method": "GET"}
    ask["Access-Control-Request-Headers"] = "content-type"
    with client() as api:
        preflight = api.options("/shimmer/api/routes", headers=ask)
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, "*")
        answer = api.get("/shimmer/api/routes", headers={"Origin": "https://a.example"})
        assert "etag" in answer.headers["access-control-expose-headers"].lower()


def test_pages_and_logs_are_for_no_other_origin(client) -> None:
    with client() as api:
        for path in ("/", "/operations", "/quality", "/shimmer", "/metrics", "/docs"):
            answer = api.get(path, headers={"Origin": "https://a.example"})
            assert answer.status_code == 200, path
            assert "access-control-allow-origin" not in answer.headers, path


@pytest.fixture(scope="module")
def long_text(warehouse):
    """A client, and the OpenAPI document as it gets it uncompressed."""
    with TestClient(application(warehouse)) as api:
        yield api, api.get("/openapi.json", headers={"Accept-Encoding": "identity"}).content


@pytest.mark.parametrize(
    ("accepts", "encoding"),
    [
        ("gzip", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("zstd;q=0, gzip", "gzip"),
        ("zstd;q=0", None),
        ("identity", None),
    ],
)
def test_long_text_is_compressed_as_the_client_accepts(long_text, accepts, encoding) -> None:
    api, plain = long_text
    with api.stream("GET", "/openapi.json", headers={"Accept-Encoding": accepts}) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers.get("content-encoding") == encoding
    assert int(answer.headers["content-length"]) == len(raw)
    assert encoding is None or "Accept-Encoding" in answer.headers["vary"]
    decoded = {
        None: lambda: raw,
        "gzip": lambda: gzip.decompress(raw),
        "zstd": lambda: pa.Codec("zstd").decompress(raw, len(plain), asbytes=True),
    }
    assert decoded[encoding]() == plain
    assert encoding is None or len(raw) < len(plain) / 4


def test_short_text_and_bytes_are_sent_as_they_are(warehouse) -> None:
    app = application(warehouse)
    app.state.reader.copy_rows()
    with TestClient(app) as api:
        for path in ("/shimmer/api/routes", "/shimmer/large"):
            answer = api.get(path, headers={"Accept-Encoding": "zstd, identity"})
            assert answer.status_code == 200
            assert "content-encoding" not in answer.headers


def test_the_docs_page_asks_no_other_server(client) -> None:
    with client() as api:
        page = api.get("/docs")
        assert page.status_code == 200
        assert "http" not in page.text.replace("http-equiv", "")
        for file in ("swagger-ui.css", "swagger-ui-bundle.js", "docs.js"):
            assert f"/static/{file}" in page.text
            assert api.get(f"/static/{file}").status_code == 200


@pytest.fixture
def crowded(warehouse):
    """A server with two slots and a queue of two."""
    with live_api(application(warehouse, concurrency=2, queue=2, queue_seconds=30)) as url:
        yield url


def test_a_full_queue_turns_requests_away_and_recovers(crowded) -> None:
    with httpx.Client(timeout=60) as client, ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: client.get(f"{crowded}/shimmer/nap?seconds=2"), range(12)))
    counts = [one.status_code for one in answers]
    assert set(counts) == {200, 503}
    assert counts.count(200) >= 4
    assert all(one.headers["retry-after"] == "1" for one in answers if one.status_code == 503)
    assert httpx.get(f"{crowded}/shimmer/nap").status_code == 200


def test_what_waits_too_long_is_turned_away_while_single_rows_are_answered(warehouse) -> None:
    app = application(warehouse, concurrency=1, queue=8, queue_seconds=0.1)
    app.state.reader.copy_rows()
    raw = {"Accept": "application/octet-stream"}
    with (
        live_api(app) as url,
        httpx.Client(base_url=url, timeout=60) as client,
        ThreadPoolExecutor(4) as pool,
    ):
        answers = [pool.submit(client.get, "/shimmer/nap?seconds=5") for _ in range(4)]
        time.sleep(0.2)
        block = client.get(f"/shimmer/api/core/v2/blocks/{1:060x}{0:04x}", headers=raw)
        assert not all(one.done() for one in answers)
        statuses = sorted(one.result().status_code for one in answers)
    assert block.status_code == 200, block.text
    assert statuses == [200, 503, 503, 503]


def test_one_client_cannot_take_all_slots_but_on_the_loopback(warehouse) -> None:
    serve = {"concurrency": 8, "client_concurrency": 2, "trusted_proxies": ["127.0.0.1"]}
    with (
        live_api(application(warehouse, queue_seconds=30, **serve)) as url,
        httpx.Client(base_url=url, timeout=60) as client,
        ThreadPoolExecutor(8) as pool,
    ):

        def statuses(address):
            headers = {"X-Forwarded-For": address}
            answers = pool.map(lambda _: client.get("/shimmer/nap?seconds=2", headers=headers), range(8))
            return [(one.status_code, one.headers.get("retry-after")) for one in answers]

        for address in ("192.0.2.7", "192.0.2.8"):
            found = statuses(address)
            assert set(found) == {(200, None), (503, "1")}
            assert found.count((200, None)) >= 2
        assert set(statuses("127.0.0.1")) == {(200, None)}
        assert 'permalake_http_rejected_total{reason="client"}' in client.get("/metrics").text
        with httpx.Client(base_url=url, headers={"X-Forwarded-For": "192.0.2.9"}) as busy:
            naps = [pool.submit(busy.get, "/shimmer/nap") for _ in range(6)]
            assert {busy.get("/health").status_code for _ in range(4)} == {200}
            assert 503 in {one.result().status_code for one in naps}


def test_one_client_cannot_take_all_slots_of_the_feed(warehouse) -> None:
    app = application(warehouse, client_concurrency=2, trusted_proxies=["127.0.0.1"])
    with (
        live_api(app) as url,
        httpx.Client(base_url=url, timeout=60) as client,
        ThreadPoolExecutor(4) as pool,
    ):

        def status(address):
            path = "/api/publications?since=1000&wait=4"
            return client.get(path, headers={"X-Forwarded-For": address}).status_code

        assert sorted(pool.map(status, ["192.0.2.7"] * 4)) == [200, 200, 503, 503]
        assert list(pool.map(status, ["192.0.2.7", "192.0.2.8", "192.0.2.9", "192.0.2.7"])) == [200] * 4


def test_whoever_leaves_the_feed_holds_no_slot(warehouse) -> None:
    app = application(warehouse, client_concurrency=1, trusted_proxies=["127.0.0.1"])
    with live_api(app) as url, httpx.Client(base_url=url, headers={"X-Forwarded-For": "192.0.2.7"}) as client:
        with pytest.raises(httpx.ReadTimeout):
            client.get("/api/publications?since=1000&wait=30", timeout=1)
        until, status = time.monotonic() + 10, 503
        while status == 503 and time.monotonic() < until:
            status = client.get("/api/publications").status_code
        assert status == 200
