"""What a run prints about itself."""

from __future__ import annotations

from datetime import date

import pytest

from permalake.config import load_settings
from permalake.contracts.steps import StepResult
from permalake.lake import DayStatus
from permalake.lake.step_ledger import StepKey, StepRow
from permalake.local import demo
from permalake.local.report import RunReport
from permalake.paths import ROOT

DAY = date(2022, 9, 28)


def row(step: str, result: StepResult, number: int = 1) -> StepRow:
    key = StepKey("shimmer", "run", step, number)
    return StepRow(key, DAY, DAY, "run", "2022-09-29", None, None, None, None, result)


def followed(*rows: StepRow, left_out: dict[str, str] | None = None, unchanged: bool = False) -> RunReport:
    report = RunReport("iota_daily shimmer 2022-09-28")
    for number in range(len(rows) + 1):
        report.follow(rows[:number])
    for step, reason in (left_out or {}).items():
        report.leave_out(step, reason)
    if all(one.result.state == "done" for one in rows):
        report.close(52.0, unchanged=unchanged)
    return report


@pytest.fixture
def printed(capsys):
    def lines() -> list[str]:
        return capsys.readouterr().out.splitlines()

    return lines


PUBLISHED = row("publish", StepResult(seconds=0.1, days=(DAY,), rows={"tags": 3}))
SERVED = row("serve", StepResult(seconds=9.0, served={"cassandra": 2}))


def test_each_step_shows_its_beginning_its_seconds_and_the_rows_it_added(printed) -> None:
    followed(
        row("ingest_decode", StepResult("running")),
        row("ingest_decode", StepResult(seconds=14.24, rows={"messages": 81, "tags": 0})),
        row("analytics", StepResult(seconds=9.0, rows={"messages": 81, "ms_analytics": 2})),
        row("publish", StepResult(seconds=0.1, days=(DAY,), rows={"messages": 81})),
    )
    lines = [line.split() for line in printed()]
    assert lines[:4] == [
        ["ingest_decode", "…"],
        ["ingest_decode", "14.2", "s", "messages", "81"],
        ["analytics", "…"],
        ["analytics", "9.0", "s", "ms_analytics", "2"],
    ]


def test_the_last_line_sums_up(printed) -> None:
    followed(row("publish", StepResult(seconds=0.1, days=(DAY,), rows={"messages": 81})))
    assert printed()[-1] == "iota_daily shimmer 2022-09-28: 1 day, 81 rows published in 52 s"


def test_a_day_without_rows_says_so(printed) -> None:
    followed(row("publish", StepResult(days=())))
    assert "no rows in these days" in printed()[-1]


def test_a_failure_keeps_step_and_reason(printed) -> None:
    result = StepResult("invalid", seconds=3.0, reason="supply is not conserved")
    report = followed(row("audit", result))
    assert printed()[-1].split() == ["audit", "failed", "after", "3.0", "s"]
    assert report.failure("audit", result) == (
        "iota_daily shimmer 2022-09-28: audit: supply is not conserved"
    )


def test_a_range_whose_good_days_were_published_shows_both(printed) -> None:
    result = StepResult("invalid", days=(DAY,), rows={"tags": 3}, reason="not published: 2022-09-29: …")
    report = followed(row("publish", result))
    assert [line.split()[-2:] for line in printed()[1:]] == [["day", "published"], ["0.0", "s"]]
    assert ": published, but publish: not published: " in report.failure("publish", result)


def test_days_given_to_a_store_are_counted_with_what_it_missed_before(printed) -> None:
    followed(PUBLISHED, SERVED)
    lines = printed()
    assert lines[3].split() == ["serve", "9.0", "s", "2", "days", "into", "cassandra"]
    assert lines[-1].endswith("1 day, 3 rows published in 52 s")


def test_a_run_that_only_caught_up_says_so(printed) -> None:
    followed(SERVED, unchanged=True)
    assert printed()[-1].endswith("2 days into cassandra in 52 s")


def test_a_store_that_failed_does_not_hide_the_publication(printed) -> None:
    result = StepResult("failed", seconds=3.0, reason="Cassandra does not answer")
    report = followed(PUBLISHED, row("serve", result))
    assert report.failure("serve", result).endswith(": published, but serve: Cassandra does not answer")


def test_a_step_left_out_says_why(printed) -> None:
    followed(left_out={"serve": "the stores have every published day"})
    lines = printed()
    assert lines[0].split(maxsplit=1) == ["serve", "left out: the stores have every published day"]
    assert lines[-1].endswith("2022-09-28: the stores have every published day")


def test_finding_the_work_done_by_another_run_says_so(printed) -> None:
    followed(unchanged=True)
    assert "published meanwhile" in printed()[-1]


def test_the_demo_tells_real_and_made_up_days_apart() -> None:
    untimed, real, made_up = (date.fromisoformat(day) for day in ("1970-01-01", "2026-04-09", "2100-01-02"))
    published = [
        DayStatus("wormhole", day, None, None, "2026-04-10") for day in (untimed, DAY, real, made_up)
    ]
    (title,) = demo._network("wormhole", published)
    assert title.startswith(
        "wormhole: 4 days published (2022-09-28..2026-04-09; synthetic 2100-01-02..2100-01-02; "
        "messages without a time)"
    )
    (title,) = demo._network("shimmer", published[1:2])
    assert title == "shimmer: 1 day published, 0 rows"


def test_only_what_is_configured_of_the_sample_is_built(tmp_path) -> None:
    everything = load_settings(ROOT / "permalake.toml")
    assert [network for network, _, _ in demo.bundled(everything)] == ["shimmer", "synthetic", "wormhole"]
    file = tmp_path / "permalake.toml"
    sample = f'protocol = "stardust"\nbech32_hrp = "smr"\npath = "{ROOT}/include/sample/shimmer"\n'
    file.write_text(f'[networks.shimmer]\n{sample}[wormhole]\nsource = "wormholescan"\n')
    assert [network for network, _, _ in demo.bundled(load_settings(file))] == ["shimmer"]
