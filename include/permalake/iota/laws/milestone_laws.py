"""Laws of milestones: they are contiguous, and every row belongs to one."""

from __future__ import annotations

from permalake.audit.laws import balance, covered, entries, side, union, violations
from permalake.iota.laws.tangle_sides import AT_MILESTONE, KINDS, messages_of

_RANGED = ("tags", *(f"{kind}_outputs" for kind in (*KINDS, "treasury")))
_TIMED = (*_RANGED, "consumed_outputs")
_UNTIMED = ("messages", "parents", "transactions", "address_analytics")
_AT_TIME = f"{AT_MILESTONE} || ' at ' || CAST({{}} AS STRING)"
_AT_RANGE = f"{AT_MILESTONE} || ' range ' || ms_range_id"

_GAPS = """
SELECT date, 'milestones ' || low || ' to ' || high AS place, high - low + 1 AS expected, n AS found
FROM (
    SELECT date, min(milestone_index) AS low, max(milestone_index) AS high, count(*) AS n
    FROM milestones GROUP BY date
) WHERE high - low + 1 <> n
"""
_NOT_LATER = """
SELECT one.date AS date, 'milestone ' || one.milestone_index AS place,
    'later than ' || earlier.timestamp AS expected, one.timestamp AS found
FROM milestones AS one JOIN milestones AS earlier ON one.milestone_index = earlier.milestone_index + 1
WHERE one.timestamp <= earlier.timestamp
"""
_WRONG_RANGES = f"""
SELECT date, {AT_MILESTONE} AS place, in_range AS expected, ms_range_id AS found
FROM (
    SELECT date, milestone_index, ms_range_id,
        CAST((milestone_index - milestone_index % chunk_size) / chunk_size AS BIGINT) AS in_range
    FROM ms_analytics CROSS JOIN configuration
) WHERE in_range <> ms_range_id
"""


def _milestones_known() -> str:
    """Return a side of every milestone, with and without its time."""
    timed = entries("milestones", _AT_TIME.format("make_timestamp(CAST(timestamp AS BIGINT) * 1000000)"))
    return union([entries("milestones", AT_MILESTONE), timed])


def _milestones_named() -> str:
    """Return a side of the milestones that other tables' rows name."""
    places = dict.fromkeys(_UNTIMED, AT_MILESTONE) | dict.fromkeys(_TIMED, _AT_TIME.format("ms_timestamp"))
    return union(entries(table, place) for table, place in places.items())


LAWS = (
    violations("no_gaps", "milestones", "Milestones of a day are contiguous.", _GAPS),
    violations(
        "time_goes_on",
        "milestones",
        "Each milestone is later than the one before.",
        _NOT_LATER,
        # A Chrysalis coordinator's clock may step back; nodes accept such milestones.
        warns_on=("chrysalis",),
    ),
    covered(
        "milestone_messages_exist",
        "milestones",
        "A milestone's message is among the day's messages.",
        things=messages_of("milestones"),
        allowed=messages_of("messages"),
    ),
    covered(
        "rows_have_milestones",
        "milestones",
        "Every row's milestone exists, on its date and with its time.",
        things=_milestones_named(),
        allowed=_milestones_known(),
    ),
    covered(
        "ranges_agree",
        "ms_analytics",
        "Every row's ms_range_id is that of its milestone.",
        things=union(entries(table, _AT_RANGE) for table in _RANGED),
        allowed=side("ms_analytics", _AT_RANGE),
    ),
    violations(
        "range_of_milestone", "ms_analytics", "ms_range_id is milestone_index div chunk_size.", _WRONG_RANGES
    ),
    *(
        balance(
            f"{topic}_of_milestones",
            f"ms_{topic}",
            "Every milestone has one row.",
            expected=side("milestones", AT_MILESTONE),
            actual=side(f"ms_{topic}", AT_MILESTONE),
        )
        for topic in ("analytics", "activity")
    ),
)
