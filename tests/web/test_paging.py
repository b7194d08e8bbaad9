"""Cursors: opaque, bound to their route and filters, with the page size inside."""

from __future__ import annotations

import base64
import json

import pytest

from permalake.web.paging import Integer, Text, page_of
from permalake.web.problems import ProblemError


def page(cursor=None, *, route="messages", filters=None, size=2, maximum=1000):
    return page_of(
        route, filters or {"index": "aa"}, size, cursor, positions=(Integer, Text), maximum=maximum
    )


def test_a_cursor_continues_behind_the_last_item_with_the_size_of_its_page() -> None:
    rows, cursor = page().cut([(3, "c"), (2, "b"), (1, "a")], lambda row: row)
    assert rows == [(3, "c"), (2, "b")]
    following = page(cursor, size=77)
    assert (following.size, following.after) == (2, (2, "b"))


def test_a_last_page_has_no_cursor() -> None:
    assert page().cut([(1, "a"), (2, "b")], lambda row: row) == ([(1, "a"), (2, "b")], None)


def test_a_size_above_the_maximum_is_clamped() -> None:
    assert page(size=5000).size == 1000


def forged(*values):
    return base64.urlsafe_b64encode(json.dumps(values).encode()).rstrip(b"=").decode()


def binding():
    text = page().cursor((1, "a"))
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))[0]


@pytest.mark.parametrize(
    "cursor",
    [
        "!!!",
        "é",
        forged(1),
        forged("wrong", 2, [1, "a"]),
        forged(binding(), 5000, [1, "a"]),
        forged(binding(), 2, [1]),
        forged(binding(), 2, [1, None]),
        forged(binding(), True, [1, "a"]),
        forged(binding(), 2, ["1", "a"]),
        forged(binding(), 2, [2**63, "a"]),
        forged(binding(), 2, [1, "\ud800"]),
    ],
)
def test_a_malformed_cursor_is_a_bad_request(cursor) -> None:
    with pytest.raises(ProblemError, match="cursor") as refused:
        page(cursor)
    assert refused.value.status == 400


def test_a_cursor_of_other_filters_or_another_route_is_a_bad_request() -> None:
    cursor = page().cursor((1, "a"))
    for other in ({"filters": {"index": "bb"}}, {"route": "children"}):
        with pytest.raises(ProblemError, match="cursor"):
            page(cursor, **other)
