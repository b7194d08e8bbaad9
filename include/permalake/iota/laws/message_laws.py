"""Laws of messages: their order, and the rows that belong to them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.audit.laws import Frame, covered, entries, violations
from permalake.audit.scope import Scope
from permalake.iota.laws.tangle_sides import AT_MILESTONE, messages_of


def _disordered(scope: Scope) -> DataFrame:
    index = F.col("white_flag_index")
    found = (
        scope("messages")
        .groupBy("date", "milestone_index")
        .agg(
            F.count("*").alias("n"),
            F.min(index).alias("low"),
            F.max(index).alias("high"),
            F.count_distinct(index).alias("distinct"),
        )
    )
    return found.where("low <> 0 OR high <> n - 1 OR distinct <> n").selectExpr(
        "date",
        f"{AT_MILESTONE} AS place",
        "format_string('0 to %d, each once', n - 1) AS expected",
        "format_string('%d to %d, %d distinct', low, high, distinct) AS found",
    )


def _states_of(table: str) -> Frame:
    """Return a side of the distinct messages of a table with their milestone and state."""
    place = f"concat_ws(' ', message_id, {AT_MILESTONE}, 'state', inclusion_state)"
    return lambda scope: entries(scope(table).selectExpr("date", f"{place} AS place").distinct(), "place")


LAWS = (
    violations(
        "white_flag_order",
        "messages",
        "white_flag_index runs from 0 in each milestone, without gap or repetition.",
        _disordered,
    ),
    *(
        covered(
            f"{table}_have_messages",
            table,
            "Each row's message exists, in the same milestone and state.",
            things=_states_of(table),
            known=_states_of("messages"),
        )
        for table in ("transactions", "tags", "parents")
    ),
    covered(
        "messages_have_parents",
        "parents",
        "Every message has a parent.",
        things=messages_of("messages"),
        known=messages_of("parents"),
    ),
)
