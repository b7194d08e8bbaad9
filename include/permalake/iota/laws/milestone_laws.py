"""Laws of milestones: they are contiguous, and every row belongs to one."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.audit.laws import balance, covered, entries, side, union, violations
from permalake.audit.scope import Scope
from permalake.iota.laws.tangle_sides import AT_MILESTONE, KINDS, messages_of

_RANGED = ("tags", *(f"{kind}_outputs" for kind in (*KINDS, "treasury")))
_TIMED = (*_RANGED, "consumed_outputs")
_UNTIMED = ("messages", "parents", "transactions", "address_analytics")
_AT_TIME = f"concat({AT_MILESTONE}, ' at ', {{}})"
_AT_RANGE = f"concat({AT_MILESTONE}, ' range ', ms_range_id)"


def _gaps(scope: Scope) -> DataFrame:
    ends = (
        scope("milestones")
        .groupBy("date")
        .agg(
            F.min("milestone_index").alias("low"),
            F.max("milestone_index").alias("high"),
            F.count("*").alias("found"),
        )
    )
    return ends.where("high - low + 1 <> found").selectExpr(
        "date",
        "format_string('milestones %d to %d', low, high) AS place",
        "high - low + 1 AS expected",
        "found",
    )


def _not_later(scope: Scope) -> DataFrame:
    rows = scope("milestones").select("date", "milestone_index", "timestamp")
    before = rows.selectExpr("milestone_index + 1 AS milestone_index", "timestamp AS earlier")
    return (
        rows.join(before, "milestone_index")
        .where("timestamp <= earlier")
        .selectExpr(
            "date",
            f"{AT_MILESTONE} AS place",
            "concat('later than ', earlier) AS expected",
            "timestamp AS found",
        )
    )


def _milestones_known(scope: Scope) -> DataFrame:
    """Return every milestone, with and without its time."""
    frame = scope("milestones")
    timed = entries(frame, _AT_TIME.format("timestamp_seconds(timestamp)"))
    return entries(frame, AT_MILESTONE).union(timed)


def _milestones_named(scope: Scope) -> DataFrame:
    """Return the distinct milestones that other tables' rows name."""
    places = dict.fromkeys(_UNTIMED, AT_MILESTONE) | dict.fromkeys(_TIMED, _AT_TIME.format("ms_timestamp"))
    named = (scope(table).selectExpr("date", f"{place} AS place") for table, place in places.items())
    return entries(union(named).distinct(), "place")


def _ranges_named(scope: Scope) -> DataFrame:
    """Return the distinct milestones with their range, as other tables have them."""
    named = (scope(table).selectExpr("date", f"{_AT_RANGE} AS place") for table in _RANGED)
    return entries(union(named).distinct(), "place")


def _wrong_ranges(scope: Scope) -> DataFrame:
    rows = scope("ms_analytics").selectExpr("*", f"milestone_index div {scope.chunk_size or 'null'} AS right")
    return rows.where("right <> ms_range_id").selectExpr(
        "date", f"{AT_MILESTONE} AS place", "right AS expected", "ms_range_id AS found"
    )


LAWS = (
    violations("no_gaps", "milestones", "Milestones of a day are contiguous.", _gaps),
    violations(
        "time_goes_on",
        "milestones",
        "Each milestone is later than the one before.",
        _not_later,
        # A Chrysalis coordinator's clock may step back; nodes accept such milestones.
        warns_on=("chrysalis",),
    ),
    covered(
        "milestone_messages_exist",
        "milestones",
        "A milestone's message is among the day's messages.",
        things=messages_of("milestones"),
        known=messages_of("messages"),
    ),
    covered(
        "rows_have_milestones",
        "milestones",
        "Every row's milestone exists, on its date and with its time.",
        things=_milestones_named,
        known=_milestones_known,
    ),
    covered(
        "ranges_agree",
        "ms_analytics",
        "Every row's ms_range_id is that of its milestone.",
        things=_ranges_named,
        known=side("ms_analytics", _AT_RANGE),
    ),
    violations(
        "range_of_milestone", "ms_analytics", "ms_range_id is milestone_index div chunk_size.", _wrong_ranges
    ),
    *(
        balance(
            f"{topic}_of_milestones",
            f"ms_{topic}",
            "Every milestone has one row.",
            expected=side("milestones", AT_MILESTONE),
            found=side(f"ms_{topic}", AT_MILESTONE),
        )
        for topic in ("analytics", "activity")
    ),
)
