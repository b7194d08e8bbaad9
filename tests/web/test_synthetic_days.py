"""Days after today are called synthetic on every page and in its JSON."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from starlette.requests import Request

from permalake.domains import domain_of
from permalake.lake.serving.snapshot import LakeSnapshot, ServedFile, ServedTable
from permalake.web.html import _environment, page
from permalake.web.synthetic import built_days, spans_of, synthetic_days

TODAY = datetime.now(UTC).date()
LATER = [TODAY + timedelta(days=days) for days in (2, 3)]


def table(network, name, *days):
    files = tuple(ServedFile(f"{day}.parquet", day, 1, {}, 100) for day in days)
    return (network, name), ServedTable(domain_of(network).tables[name], "", {}, files, is_uniform=True)


@pytest.fixture
def snapshot():
    return LakeSnapshot(
        1,
        dict(
            [
                table("shimmer", "milestones", TODAY),
                table("wormhole", "messages_daily", TODAY, LATER[0]),
                table("wormhole", "quorum_state", *LATER),
                table("wormhole", "token_prices", LATER[1] + timedelta(days=1)),
                table("made_up", "milestones", *LATER),
            ]
        ),
    )


def test_only_days_after_today_count(snapshot) -> None:
    expected = {"network": "wormhole", "first": str(LATER[0]), "last": str(LATER[1]), "days": 2}
    expected["is_everything"] = False
    assert synthetic_days(snapshot) == [expected | {"network": "made_up", "is_everything": True}, expected]
    assert synthetic_days(snapshot, "wormhole") == [expected]
    assert synthetic_days(snapshot, "shimmer") == []


def test_ranges_of_real_and_synthetic_days_are_told_apart(snapshot) -> None:
    """A quote of the day behind the last transfer does not lengthen what a network holds."""
    untimed = datetime(1970, 1, 1, tzinfo=UTC).date()
    day_before = TODAY - timedelta(days=1)
    spans = spans_of({*built_days(snapshot, "wormhole"), day_before, untimed})
    assert spans == {
        "real_first": str(day_before),
        "real_last": str(TODAY),
        "synthetic_first": str(LATER[0]),
        "synthetic_last": str(LATER[1]),
        "untimed": True,
    }
    spans_in_words = vars(_environment(()).get_template("macros.html").module)["spans"]
    told = [
        spans_in_words(spans_of(days)).striptags()
        for days in ((day_before, TODAY), (TODAY,), (), (untimed,), (LATER[0],), (TODAY, untimed, *LATER))
    ]
    assert told == [
        f"{day_before} to {TODAY}",
        str(TODAY),
        "no days",
        "messages whose body tells no time",
        f"synthetic {LATER[0]}",
        f"real days {TODAY}; synthetic {LATER[0]} to {LATER[1]}; messages whose body tells no time",
    ]


@pytest.mark.parametrize(
    ("content", "notices"),
    [
        ({}, 2),
        ({"network": "made_up"}, 1),
        ({"network": "wormhole", "end": "2100-01-02"}, 1),
        ({"network": "wormhole", "end": "2025-12-31"}, 0),
        ({"network": "wormhole"}, 0),
        ({"network": "shimmer", "end": "2100-01-02"}, 0),
    ],
)
def test_pages_say_so(snapshot, content, notices) -> None:
    reader = SimpleNamespace(snapshot=lambda: snapshot)
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": [(b"accept", b"text/html")],
        "query_string": b"",
        "app": SimpleNamespace(state=SimpleNamespace(reader=reader, sections=())),
    }
    text = page(Request(scope), 1, "base.html", content).body.decode()
    assert text.count("SYNTHETIC:") == notices
