"""Laws of messages: their order, and the rows that belong to them."""

from __future__ import annotations

from permalake.audit.laws import covered, entries, violations
from permalake.iota.laws.tangle_sides import AT_MILESTONE, messages_of

_DISORDERED = f"""
SELECT date, {AT_MILESTONE} AS place, '0 to ' || (n - 1) || ', each once' AS expected,
    low || ' to ' || high || ', ' || places || ' distinct' AS found
FROM (
    SELECT date, milestone_index, count(*) AS n, min(white_flag_index) AS low, max(white_flag_index) AS high,
        count(DISTINCT white_flag_index) AS places
    FROM messages GROUP BY date, milestone_index
) WHERE low <> 0 OR high <> n - 1 OR places <> n
"""


def _states_of(table: str) -> str:
    """Return a side of the messages of a table with their milestone and state."""
    return entries(table, f"concat_ws(' ', message_id, {AT_MILESTONE}, 'state', inclusion_state)")


LAWS = (
    violations(
        "white_flag_order",
        "messages",
        "white_flag_index runs from 0 in each milestone, without gap or repetition.",
        _DISORDERED,
    ),
    *(
        covered(
            f"{table}_have_messages",
            table,
            "Each row's message exists, in the same milestone and state.",
            things=_states_of(table),
            allowed=_states_of("messages"),
        )
        for table in ("transactions", "tags", "parents")
    ),
    covered(
        "messages_have_parents",
        "parents",
        "Every message has a parent.",
        things=messages_of("messages"),
        allowed=messages_of("parents"),
    ),
)
