"""Every answer is of one publication, whatever is published while it is made."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count

import pytest

FIRST = 1000


@pytest.fixture
def published(synthetic_api, monkeypatch):
    """The number of the next publication; there is one each time that somebody looks."""
    reader, numbers = synthetic_api.app.state.reader, count(FIRST)
    snapshot = reader.snapshot()
    monkeypatch.setattr(reader, "snapshot", lambda: replace(snapshot, publication=next(numbers)))
    return numbers


def test_a_page_names_the_publication_that_its_rows_are_of(synthetic_api, published) -> None:
    text = synthetic_api.get("/shimmer", headers={"Accept": "text/html"}).text
    assert set(re.findall(r"[Pp]ublication (\d+)", text)) == {str(FIRST)}
    assert next(published) == FIRST + 1


@pytest.mark.parametrize(
    "path",
    [
        *("/api/analytics/v1", "/api/analytics/v1/shimmer/ms_analytics"),
        *("/data", "/data/shimmer", "/quality", "/"),
    ],
)
def test_a_request_looks_once(synthetic_api, published, path) -> None:
    assert synthetic_api.get(path).status_code == 200
    assert next(published) == FIRST + 1
