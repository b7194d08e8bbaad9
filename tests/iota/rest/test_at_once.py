"""Single rows that are answered without routing: as the routes answer them; and 304 without the lake."""

from __future__ import annotations

import pytest

from permalake.lake.serving import LakeReader
from permalake.lake.serving.copies import RowCopies
from support import synthetic_lake

RAW = {"Accept": "application/vnd.iota.serializer-v1"}


@pytest.fixture(scope="module")
def paths(synthetic_api):
    """Paths of every route that is answered at once."""
    synthetic_api.app.state.reader.copy_rows()
    stardust, chrysalis = synthetic_lake.tables("stardust"), synthetic_lake.tables("chrysalis")
    found = []
    for row in stardust["messages"][::40]:
        found += [f"/shimmer/api/core/v2/blocks/0x{row['message_id']}"]
        found += [f"/api/permanode/v1/shimmer/messages/{row['message_id'].upper()}"]
    for row in stardust["milestones"][::3]:
        found += [f"/shimmer/api/core/v2/milestones/by-index/{row['milestone_index']}"]
        found += [f"/shimmer/api/core/v2/milestones/0x{row['milestone_id']}"]
    for row in chrysalis["messages"][::40]:
        found += [f"/iota/api/v1/messages/{row['message_id']}"]
    return found


def answers(api, paths):
    return [(path, api.get(path, headers=headers)) for path in paths for headers in ({}, RAW)]


def test_the_answer_is_that_of_the_route(synthetic_api, paths, monkeypatch) -> None:
    at_once = answers(synthetic_api, paths)
    with monkeypatch.context() as patch:
        patch.setattr(RowCopies, "find", lambda *_: None)
        routed = answers(synthetic_api, paths)
    assert len(at_once) > 20
    for (path, quick), (_, slow) in zip(at_once, routed, strict=True):
        assert quick.status_code == slow.status_code == 200, (path, quick.text)
        assert quick.content == slow.content, path
        assert quick.headers == slow.headers, path


def test_no_query_is_run(synthetic_api, paths, monkeypatch) -> None:
    def refuse(*_):
        raise AssertionError("a query")

    monkeypatch.setattr(LakeReader, "rows", refuse)
    assert {answer.status_code for _, answer in answers(synthetic_api, paths)} == {200}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/shimmer/api/core/v2/blocks/0x12", 400),
        (f"/shimmer/api/core/v2/blocks/{'00' * 32}", 404),
        ("/shimmer/api/core/v2/milestones/by-index/4294967296", 400),
        ("/shimmer/api/core/v2/milestones/by-index/9999999999999999999", 400),
        ("/shimmer/api/core/v2/milestones/by-index/-1", 400),
        ("/shimmer/api/core/v2/milestones/by-index/\u0661", 404),
        (f"/shimmer/api/core/v2/blocks/{'00' * 32}?x=1", 400),
    ],
)
def test_the_route_answers_what_is_malformed_or_missing(synthetic_api, paths, path, status) -> None:
    answer = synthetic_api.get(path)
    assert answer.status_code in (status, 400)
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_metrics_name_the_route(synthetic_api, paths) -> None:
    name = 'permalake_http_requests_total{method="GET",network="shimmer",'
    name += 'route="/{network}/api/core/v2/blocks/{blockId}",status="200"}'

    def counted():
        lines = synthetic_api.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    before = counted()
    synthetic_api.get(next(path for path in paths if "/blocks/" in path))
    assert counted() == before + 1


def test_what_did_not_change_is_told_without_the_lake(synthetic_api, paths, monkeypatch) -> None:
    # /info tells how far the live head is, with a 304 too.
    lists = ["/shimmer/api/indexer/v1/outputs/basic?pageSize=3"]
    held = [(path, dict(headers), answer) for path, headers, answer in _held(synthetic_api, [*paths, *lists])]

    def refuse(*_, **__):
        raise AssertionError("the lake was read")

    for name in ("rows", "arrow", "find", "copied"):
        monkeypatch.setattr(LakeReader, name, refuse)
    for path, headers, answer in held:
        tag = answer.headers["etag"]
        again = synthetic_api.get(path, headers={**headers, "If-None-Match": f'"other", W/{tag}'})
        assert (again.status_code, again.content) == (304, b""), path
        for name in ("etag", "cache-control"):
            assert again.headers[name] == answer.headers[name]
        assert again.headers["vary"].startswith("Accept, ")


def _held(api, paths):
    return [(path, headers, api.get(path, headers=headers)) for path in paths for headers in ({}, RAW)]


def test_a_tag_is_of_its_path_and_form(synthetic_api, paths) -> None:
    first, other, *_ = (path for path in paths if "/blocks/" in path)
    tag = synthetic_api.get(first).headers["etag"]
    assert synthetic_api.get(other, headers={"If-None-Match": tag}).status_code == 200
    assert synthetic_api.get(first, headers={**RAW, "If-None-Match": tag}).status_code == 200
