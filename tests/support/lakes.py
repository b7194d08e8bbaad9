"""Building blocks of the lake's tests: days of a synthetic network, staged without Spark."""

from __future__ import annotations

from datetime import date

import pyarrow as pa

from permalake.config import Settings
from permalake.domains import domain_of
from permalake.lake import Attempt, Lake, Publication
from permalake.lake.catalog import open_catalog
from permalake.lake.counts import days_between

NETWORK = "shimmer"
DAY1, DAY2, DAY3 = date(2022, 9, 28), date(2022, 9, 29), date(2022, 9, 30)


def settings_of(warehouse: object) -> Settings:
    return Settings(lake={"warehouse": str(warehouse)})  # type: ignore[arg-type]


def put(settings: Settings, attempt: Attempt, table: str, rows: list[dict]) -> None:
    """Replace the attempt's days in a staged table, as Attempt.stage does, but by PyIceberg."""
    contract = domain_of(attempt.network).tables[table]
    frame = pa.Table.from_pylist(rows, schema=contract.arrow)
    staged = open_catalog(settings, attempt.catalog).load_table((attempt.network, table))
    staged.overwrite(frame, overwrite_filter=days_between(attempt.start, attempt.end))


def messages(day: date, milestone: int, count: int) -> list[dict]:
    """Synthetic messages of one milestone; ids are unique per milestone and position."""
    return [
        {
            "message_id": f"{milestone:060x}{index:04x}",
            "version": 2,
            "message": b"synthetic",
            "milestone_index": milestone,
            "white_flag_index": index,
            "inclusion_state": 2,
            "conflict_reason": 0,
            "proof": None,
            "date": day,
        }
        for index in range(count)
    ]


def analytics(day: date, milestone: int, count: int) -> list[dict]:
    return [
        {
            "ms_range_id": 0,
            "milestone_index": milestone,
            "message_count": count,
            "transaction_count": 0,
            "transferred_tokens": 0,
            "date": day,
        }
    ]


def cache(day: date, first: int, last: int) -> list[dict]:
    return [{"date": day, "start_ms": first, "end_ms": last}]


def stage_day(settings: Settings, attempt: Attempt, day: date, milestone: int, count: int) -> None:
    """One milestone with so many messages: three tables that must agree."""
    put(settings, attempt, "messages", messages(day, milestone, count))
    put(settings, attempt, "ms_analytics", analytics(day, milestone, count))
    put(settings, attempt, "date_cache", cache(day, milestone, milestone))


def pass_audit(attempt: Attempt) -> None:
    attempt.pin()
    for day in attempt.days_with_rows():
        attempt.verdict(day, True)


def build(settings: Settings, lake: Lake, day: date, milestone: int, count: int, run_id: str) -> Publication:
    """Begin, stage, audit and publish one day."""
    attempt = lake.begin(NETWORK, day, day, run_id)
    stage_day(settings, attempt, day, milestone, count)
    pass_audit(attempt)
    return lake.publish(attempt)


def state(lake: Lake) -> dict[date, tuple[int, int]]:
    """Per day what two tables say about the number of messages, in one read."""
    rows = lake.query(
        "select date, max(m) m, max(a) a from ("
        "  select date, count(*) m, 0 a from shimmer.messages group by date"
        "  union all select date, 0, sum(message_count) from shimmer.ms_analytics group by date"
        ") group by date order by date"
    ).to_pylist()
    return {row["date"]: (int(row["m"]), int(row["a"])) for row in rows}
