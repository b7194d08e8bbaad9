"""What the laws of an IOTA day compare: sides and violations over its tables."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from permalake.audit.laws import Frame, Scope, entries, per_day, per_row, union

INCLUDED = "inclusion_state = 1"
AT_MILESTONE = "concat('milestone ', milestone_index)"
_AT_TIME = f"concat({AT_MILESTONE}, ' at ', {{}})"
_KINDS = ("basic", "alias", "foundry", "nft", "legacy")
_RANGED = ("tags", *(f"{kind}_outputs" for kind in (*_KINDS, "treasury")))
_TIMED = (*_RANGED, "consumed_outputs")
_UNTIMED = ("messages", "parents", "transactions", "address_analytics")


def side(table: str, place: str, value: str = "1", where: str = "true") -> Frame:
    """Entries of a table's rows."""
    return lambda scope: entries(scope(table).where(where), place, value)


def created(scope: Scope) -> DataFrame:
    """Outputs that transactions created, with their owner. Ids of receipts' outputs start with a
    milestone's."""

    def make() -> DataFrame:
        frames = (
            scope(f"{kind}_outputs").selectExpr(
                *("date", "milestone_index", "output_id", "amount"),
                "substring(output_id, 1, 64) AS transaction_id",
                f"{'state_controller' if kind == 'alias' else 'address'} AS owner",
            )
            for kind in _KINDS
        )
        receipts = scope("treasury_outputs").selectExpr("output_id AS transaction_id")
        return union(frames).join(F.broadcast(receipts), "transaction_id", "left_anti")

    return scope.shared("created", make)


def spent(scope: Scope) -> DataFrame:
    """Outputs that transactions consumed."""
    return scope("consumed_outputs").where("transaction_id IS NOT NULL")


def by(frame: Frame, place: str, value: str = "1") -> Frame:
    """Entries of a frame's rows; those without a place are left out."""
    return lambda scope: entries(frame(scope), place, value).where("place IS NOT NULL")


def messages_of(table: str) -> Frame:
    """The distinct messages that a table's rows name."""
    return lambda scope: entries(
        scope(table).select("date", "message_id").distinct().where("message_id IS NOT NULL"), "message_id"
    )


def states_of(table: str) -> Frame:
    """The distinct messages of a table with their milestone and state."""
    place = f"concat_ws(' ', message_id, {AT_MILESTONE}, 'state', inclusion_state)"
    return lambda scope: entries(scope(table).selectExpr("date", f"{place} AS place").distinct(), "place")


def metric_values(scope: Scope) -> DataFrame:
    """Distinct addresses by what they did, and distinct tags, from the rows behind them."""
    did = {"sent": "sent_tokens > 0", "received": "recv_tokens > 0", "sent_or_received": "true"}
    frames = [
        scope("address_analytics").where(what).selectExpr("date", f"'{metric} ' || address AS place")
        for metric, what in did.items()
    ]
    tags = scope("tags").selectExpr("date", "'used ' || tag AS place")
    return entries(union([*frames, tags]).distinct(), "place")


def message_states(scope: Scope) -> DataFrame:
    """Messages per milestone and state, as ms_activity counts them."""
    counts = {0: "conflicting_count", 1: "confirmed_count", 2: "no_transaction_count"}
    rows = scope("ms_activity").selectExpr(
        *("date", "milestone_index"),
        f"stack(3, {', '.join(f'{state}, {count}' for state, count in counts.items())}) AS (state, n)",
    )
    return entries(rows, f"concat({AT_MILESTONE}, ' state ', state)", "n")


def milestones_known(scope: Scope) -> DataFrame:
    """Every milestone, with and without its time."""
    frame = scope("milestones")
    timed = entries(frame, _AT_TIME.format("timestamp_seconds(timestamp)"))
    return entries(frame, AT_MILESTONE).union(timed)


def milestones_named(scope: Scope) -> DataFrame:
    """The distinct milestones that other tables' rows name."""
    places = dict.fromkeys(_UNTIMED, AT_MILESTONE) | dict.fromkeys(_TIMED, _AT_TIME.format("ms_timestamp"))
    named = (scope(table).selectExpr("date", f"{place} AS place") for table, place in places.items())
    return entries(union(named).distinct(), "place")


_AT_RANGE = f"concat({AT_MILESTONE}, ' range ', ms_range_id)"


def ranges_known(scope: Scope) -> DataFrame:
    """Every milestone with its range, as ms_analytics has it."""
    return entries(scope("ms_analytics"), _AT_RANGE)


def ranges_named(scope: Scope) -> DataFrame:
    """The distinct milestones with their range, as other tables have them."""
    named = (scope(table).selectExpr("date", f"{_AT_RANGE} AS place") for table in _RANGED)
    return entries(union(named).distinct(), "place")


def day_counted(scope: Scope) -> DataFrame:
    """The figures of daily_extended, counted anew."""
    tangle = per_day(
        scope("messages"),
        message_count="count(*)",
        included_transaction_count=f"count_if({INCLUDED})",
        conflicting_transaction_count="count_if(inclusion_state = 0)",
    )
    tokens = per_day(scope("ms_analytics"), transferred_tokens="sum(transferred_tokens)")
    tags = per_day(scope("tags"), used_tags="count(DISTINCT tag)")
    sizes = created(scope).groupBy("date", "transaction_id").agg(F.count("*").alias("size"))
    outputs = per_day(sizes, max_outputs="max(size)", avg_outputs="avg(size)")
    return union([tangle, tokens, tags, outputs])


def day_written(scope: Scope) -> DataFrame:
    """The figures of daily_extended as they stand."""
    columns = (
        *("message_count", "included_transaction_count", "conflicting_transaction_count"),
        *("transferred_tokens", "used_tags", "max_outputs", "avg_outputs"),
    )
    return per_row(scope("daily_extended"), **{column: column for column in columns})


def treasury_before(scope: Scope) -> DataFrame:
    """What receipts consumed, per milestone."""
    return entries(scope("consumed_outputs").where("kind = 'treasury'"), AT_MILESTONE, "amount")


def treasury_after(scope: Scope) -> DataFrame:
    """What receipts left and created, per milestone."""
    left = scope("treasury_outputs").selectExpr("date", "milestone_index", "amount", "output_id AS id")
    migrated = union(
        scope(f"{kind}_outputs").selectExpr(
            *("date", "milestone_index", "amount", "substring(output_id, 1, 64) AS id")
        )
        for kind in ("legacy", "basic")
    ).join(F.broadcast(left.select("id")), "id", "left_semi")
    return entries(left.unionByName(migrated), AT_MILESTONE, "amount")


def disordered(scope: Scope) -> DataFrame:
    """Milestones whose white-flag indexes are not 0, 1, 2, …"""
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


def gaps(scope: Scope) -> DataFrame:
    """Days that lack a milestone between their first and last."""
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


def untimely(scope: Scope) -> DataFrame:
    """Milestones that are not later than the one before."""
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


def treasury_changed(scope: Scope) -> DataFrame:
    """Treasuries that were spent with another amount than they were created with."""
    made = scope("treasury_outputs").selectExpr("output_id", "amount AS expected")
    used = scope("consumed_outputs").where("kind = 'treasury'")
    return (
        used.join(made, "output_id")
        .where("expected <> amount")
        .selectExpr("date", "concat('treasury ', output_id) AS place", "expected", "amount AS found")
    )


def treasury_skipped(scope: Scope) -> DataFrame:
    """Receipts that spend another treasury than the one that the receipt before them left."""
    left = scope("treasury_outputs").select("date", "milestone_index", "output_id")
    used = (
        scope("consumed_outputs")
        .where("kind = 'treasury'")
        .selectExpr("date", "milestone_index", "output_id AS used")
    )
    before = F.lag("output_id").over(Window.orderBy("milestone_index"))
    in_line = left.select("date", "milestone_index", before.alias("before"))
    return (
        in_line.join(used, ["date", "milestone_index"], "left")
        .where("before IS NOT NULL AND NOT before <=> used")
        .selectExpr("date", f"{AT_MILESTONE} AS place", "before AS expected", "used AS found")
    )


def wrong_ranges(scope: Scope) -> DataFrame:
    """Milestones whose ms_range_id does not follow from the network's chunk size."""
    rows = scope("ms_analytics").selectExpr("*", f"milestone_index div {scope.chunk_size or 'null'} AS right")
    return rows.where("right <> ms_range_id").selectExpr(
        "date", f"{AT_MILESTONE} AS place", "right AS expected", "ms_range_id AS found"
    )
