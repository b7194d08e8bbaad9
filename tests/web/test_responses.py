"""Validators and caching of answers: who may keep one, and for how long."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from starlette.requests import Request

from permalake.config.serving import ServeSettings
from permalake.web.responses import current, current_json, immutable_bytes, immutable_json, not_modified


def asked(tokens=(), method="GET", **headers) -> Request:
    settings = SimpleNamespace(serve=ServeSettings(tokens=tokens))
    scope = {
        "type": "http",
        "method": method,
        "path": "/shimmer/api/core/v2/blocks/0x00",
        "headers": [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()],
        "query_string": b"",
        "app": SimpleNamespace(state=SimpleNamespace(edition="an edition", settings=settings)),
    }
    return Request(scope)


@pytest.mark.parametrize(("tokens", "keeper"), [((), "public"), (("one",), "private")])
def test_a_shared_cache_keeps_nothing_that_a_token_opens(tokens, keeper) -> None:
    kept = f"{keeper}, max-age=31536000, immutable"
    for answer in (immutable_json(asked(tokens), {}), immutable_bytes(asked(tokens), b"")):
        assert answer.headers["cache-control"] == kept
        again = not_modified(asked(tokens, if_none_match=answer.headers["etag"]), 7)
        assert (again.status_code, again.headers["cache-control"]) == (304, kept)


@pytest.mark.parametrize("publication", [7, None])
def test_an_answer_to_a_body_has_no_tag_and_is_always_sent(publication) -> None:
    tag = current_json(asked(), publication, 1).headers["etag"]
    assert current_json(asked(if_none_match=tag), publication, 1).status_code == 304
    for held in (tag, "*"):
        answer = current(asked(method="POST", if_none_match=held), publication, b"2", "text/plain")
        assert (answer.status_code, answer.body) == (200, b"2")
        assert (answer.headers["cache-control"], answer.headers.get("etag")) == ("no-store", None)
