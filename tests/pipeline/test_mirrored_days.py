"""Days that are copied from a publisher: what is published is what it signed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from permalake.contracts.steps import Publishers
from permalake.iota.contracts import IOTA_TABLES
from permalake.pipeline.mirrored_days import judge, landed_days
from permalake.transparency import keys
from permalake.transparency.landed import copied_manifest
from support.lakes import DAY1, NETWORK, OpenLake, build, messages, put, settings_of
from support.signed_lakes import NAME, at_home, export, public_key, sign


@pytest.fixture
def retracted(tmp_path, monkeypatch):
    """A step over a mirror without days; its publisher has signed a day, and then that it has no rows."""
    at_home(monkeypatch, tmp_path / "home")
    keys.create_key(NAME)
    settings = settings_of(tmp_path / "publisher")
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 3, "first")
    sign(settings, lake)
    attempt = lake.begin(NETWORK, DAY1, DAY1, "retracted")
    attempt.stage_files([], [IOTA_TABLES[name] for name in ("messages", "ms_analytics", "date_cache")])
    lake.builds.publish(attempt.pin())
    sign(settings, lake)
    export(settings, lake, tmp_path / "export")
    work = SimpleNamespace(
        settings=settings_of(tmp_path / "mirror"),
        inputs=SimpleNamespace(publishers=Publishers((str(tmp_path / "export"),), (str(public_key()),))),
        domain=SimpleNamespace(tables=IOTA_TABLES),
    )
    said = []
    return SimpleNamespace(
        work=work, arguments=SimpleNamespace(network=NETWORK), report=said.append, lines=said
    )


def copied(context, rows):
    """Copy the day as a run does; return what the mirror then says of its days."""
    settings = context.work.settings
    lake = OpenLake(settings)
    [landed] = landed_days(context).land(DAY1, DAY1, []).values()
    attempt = lake.begin(NETWORK, DAY1, DAY1, "copy")
    attempt.record.note(landed.note, DAY1)
    if rows:
        put(settings, attempt, "messages", rows)
    pinned = attempt.pin()
    for day in pinned.days_with_rows():
        pinned.verdict(day, True)
    judge(context, pinned)
    done = lake.builds.publish(pinned)
    return landed, done, lake.reader.status(NETWORK)


def test_a_signed_day_without_rows_is_published_as_such_and_not_built_again(retracted) -> None:
    landed, done, [day] = copied(retracted, [])
    assert landed.tables == {}
    assert (done.days, done.withheld, day.rows, day.audited) == ((DAY1,), {}, {}, "passed")
    assert copied_manifest(day.notes) == (landed.origin, landed.manifest)


def test_rows_of_a_day_that_was_signed_without_any_are_withheld(retracted) -> None:
    _, done, [day] = copied(retracted, messages(DAY1, 1, 3))
    assert done.days == ()
    assert "there are 3 rows here, and" in done.withheld[DAY1]
    assert not day.published
