"""Laws of the ledger and of counts across the tables of an IOTA day."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.audit.laws import Scope, balance, covered, entries, union, violations
from permalake.audit.roots import broken_roots

INCLUDED = 1
OUTPUTS = ("basic", "alias", "foundry", "nft", "legacy")
OF_MILESTONES = (
    *("messages", "parents", "tags", "transactions"),
    *(f"{kind}_outputs" for kind in (*OUTPUTS, "treasury")),
    *("consumed_outputs", "address_analytics"),
)
TIMED = ("tags", *(f"{kind}_outputs" for kind in (*OUTPUTS, "treasury")), "consumed_outputs")
RANGED = ("tags", *(f"{kind}_outputs" for kind in (*OUTPUTS, "treasury")))
AT_MILESTONE = F.concat(F.lit("milestone "), F.col("milestone_index"))


def included(name: str):
    return lambda scope: scope(name).where(F.col("inclusion_state") == INCLUDED)


def created(scope: Scope) -> DataFrame:
    """Outputs that transactions created (not receipts, whose ids start with a milestone's)."""
    frames = (
        scope(f"{kind}_outputs").select(
            "date",
            "milestone_index",
            "output_id",
            F.substring("output_id", 1, 64).alias("transaction_id"),
            "amount",
            F.col("state_controller" if kind == "alias" else "address").alias("owner"),
        )
        for kind in OUTPUTS
    )
    receipts = scope("treasury_outputs").select(F.col("output_id").alias("transaction_id"))
    return union(frames).join(F.broadcast(receipts), "transaction_id", "left_anti")


def spent(scope: Scope) -> DataFrame:
    """Outputs that transactions consumed."""
    return scope("consumed_outputs").where("transaction_id IS NOT NULL")


def little_endian(text: str) -> Column:
    """Output id of an element's place: transaction id || u16 LE."""
    low, high = F.col(text) % 256, F.floor(F.col(text) / 256)
    return F.lower(F.concat(F.lpad(F.hex(low), 2, "0"), F.lpad(F.hex(high), 2, "0")))


def transaction_inputs(scope: Scope) -> DataFrame:
    """Ids of the outputs that included transactions name as inputs (behind the input's kind byte)."""
    inputs = included("transactions")(scope).where("variant = 'input'")
    return entries(inputs, F.lower(F.hex(F.substring("data", 2, 34))))


def transaction_outputs(scope: Scope) -> DataFrame:
    outputs = included("transactions")(scope).where("variant = 'output'")
    return entries(outputs, F.concat("transaction_id", little_endian("idx")))


def by_milestone(name: str, value: str | None = None):
    return lambda scope: entries(scope(name), AT_MILESTONE, F.col(value) if value else 1)


def stated(name: str):
    """A row's message with its milestone and state."""
    place = F.concat_ws(" ", "message_id", AT_MILESTONE, F.lit("state"), "inclusion_state")
    return lambda scope: entries(scope(name), place)


def message_of(name: str):
    return lambda scope: entries(
        scope(name).where("message_id IS NOT NULL").select("date", "message_id").distinct(), "message_id"
    )


def moved(frame, owner: str):
    place = F.concat_ws(" ", F.col(owner), AT_MILESTONE)
    return lambda scope: entries(frame(scope).where(F.col(owner).isNotNull()), place, F.col("amount"))


def of_address(column: str):
    place = F.concat_ws(" ", "address", AT_MILESTONE)
    return lambda scope: entries(scope("address_analytics"), place, F.col(column))


def both_metrics(scope: Scope) -> DataFrame:
    """Distinct addresses by what they did, and distinct tags, from the rows behind them."""
    addresses = scope("address_analytics")
    did = {
        "sent": addresses.where("sent_tokens > 0"),
        "received": addresses.where("recv_tokens > 0"),
        "sent_or_received": addresses,
    }
    frames = [
        frame.select("date", F.concat(F.lit(f"{metric} "), "address").alias("place")).distinct()
        for metric, frame in did.items()
    ]
    tags = scope("tags").select("date", F.concat(F.lit("used "), "tag").alias("place")).distinct()
    return entries(union([*frames, tags]), "place")


def activity_states(scope: Scope) -> DataFrame:
    states = {0: "conflicting_count", 1: "confirmed_count", 2: "no_transaction_count"}
    frame = scope("ms_activity")
    return union(
        entries(frame, F.concat(AT_MILESTONE, F.lit(f" state {state}")), F.col(column))
        for state, column in states.items()
    )


def known_milestones(scope: Scope) -> DataFrame:
    """Every milestone under the names that the other tables may give it."""
    frame = scope("milestones")
    time = F.concat(AT_MILESTONE, F.lit(" at "), F.timestamp_seconds("timestamp"))
    return entries(frame, AT_MILESTONE).union(entries(frame, time))


def named_milestones(scope: Scope) -> DataFrame:
    time = F.concat(AT_MILESTONE, F.lit(" at "), F.col("ms_timestamp"))
    frames = [
        scope(name).select("date", AT_MILESTONE.alias("place")) for name in OF_MILESTONES if name not in TIMED
    ]
    frames += [scope(name).select("date", time.alias("place")) for name in TIMED]
    return entries(union(frames).distinct(), "place")


RANGE = F.concat(AT_MILESTONE, F.lit(" range "), F.col("ms_range_id"))


def ranges(scope: Scope) -> DataFrame:
    return entries(
        union(scope(name).select("date", RANGE.alias("place")) for name in RANGED).distinct(), "place"
    )


def per_day(metrics: dict[str, Column], name: str):
    """Aggregates of a table per day, each at a place of its own."""

    def frame(scope: Scope) -> DataFrame:
        days = scope(name).groupBy("date").agg(*(value.alias(metric) for metric, value in metrics.items()))
        return unpivoted(days, *metrics)

    return frame


def unpivoted(frame: DataFrame, *metrics: str) -> DataFrame:
    named = F.explode(
        F.array(
            *(
                F.struct(F.lit(m).alias("place"), F.col(m).cast("decimal(38,8)").alias("value"))
                for m in metrics
            )
        )
    )
    return (
        frame.select("date", named.alias("e")).select("date", "e.place", "e.value").where("value IS NOT NULL")
    )


def of_row(name: str, *metrics: str):
    return lambda scope: unpivoted(scope(name), *metrics)


def extended(scope: Scope) -> DataFrame:
    """The figures of daily_extended, counted anew."""
    tangle = per_day(
        {
            "message_count": F.count("*"),
            "included_transaction_count": F.count_if(F.col("inclusion_state") == INCLUDED),
            "conflicting_transaction_count": F.count_if(F.col("inclusion_state") == 0),
        },
        "messages",
    )(scope)
    tokens = per_day({"transferred_tokens": F.sum("transferred_tokens")}, "ms_analytics")(scope)
    tags = per_day({"used_tags": F.count_distinct("tag")}, "tags")(scope)
    sizes = created(scope).groupBy("date", "transaction_id").agg(F.count("*").alias("size")).groupBy("date")
    outputs = unpivoted(
        sizes.agg(F.max("size").alias("max_outputs"), F.round(F.avg("size"), 6).alias("avg_outputs")),
        *("max_outputs", "avg_outputs"),
    )
    return union([tangle, tokens, tags, outputs])


def extended_row(scope: Scope) -> DataFrame:
    frame = scope("daily_extended").withColumn("avg_outputs", F.round("avg_outputs", 6))
    counts = ("message_count", "included_transaction_count", "conflicting_transaction_count")
    return unpivoted(frame, *counts, "transferred_tokens", "used_tags", "max_outputs", "avg_outputs")


def disordered(scope: Scope) -> DataFrame:
    """Milestones whose white-flag indexes are not 0, 1, 2, …"""
    index = F.col("white_flag_index")
    rows = scope("messages").groupBy("date", "milestone_index")
    found = rows.agg(
        F.count("*").alias("n"),
        F.min(index).alias("low"),
        F.max(index).alias("high"),
        F.count_distinct(index).alias("d"),
    )
    return found.where("low <> 0 OR high <> n - 1 OR d <> n").select(
        "date",
        AT_MILESTONE.alias("place"),
        F.format_string("0 to %d, each once", F.col("n") - 1).alias("expected"),
        F.format_string("%d to %d, %d distinct", "low", "high", "d").alias("found"),
    )


def gaps(scope: Scope) -> DataFrame:
    """Days that lack a milestone between their first and last."""
    days = scope("milestones").groupBy("date")
    ends = days.agg(
        F.min("milestone_index").alias("a"), F.max("milestone_index").alias("b"), F.count("*").alias("n")
    )
    return ends.where("b - a + 1 <> n").select(
        "date",
        F.format_string("milestones %d to %d", "a", "b").alias("place"),
        F.expr("b - a + 1").alias("expected"),
        F.col("n").alias("found"),
    )


def untimely(scope: Scope) -> DataFrame:
    """Milestones that are not later than an earlier one of their day."""
    rows = scope("milestones")
    last = rows.alias("a").join(
        rows.select(
            "date", F.expr("milestone_index + 1").alias("milestone_index"), F.col("timestamp").alias("t")
        ),
        ["date", "milestone_index"],
    )
    return last.where("timestamp <= t").select(
        "date",
        AT_MILESTONE.alias("place"),
        F.format_string("later than %d", "t").alias("expected"),
        F.col("timestamp").alias("found"),
    )


def treasury(scope: Scope) -> tuple[DataFrame, DataFrame]:
    kept = entries(scope("treasury_outputs"), AT_MILESTONE, F.col("amount"))
    receipts = scope("treasury_outputs").select(F.col("output_id").alias("id"))
    migrated = union(
        scope(f"{kind}_outputs").select(
            "date", "milestone_index", "amount", F.substring("output_id", 1, 64).alias("id")
        )
        for kind in ("legacy", "basic")
    ).join(F.broadcast(receipts), "id")
    taken = scope("consumed_outputs").where("kind = 'treasury'")
    return entries(taken, AT_MILESTONE, F.col("amount")), kept.union(
        entries(migrated, AT_MILESTONE, F.col("amount"))
    )


def treasury_chain(scope: Scope) -> DataFrame:
    """Treasuries that were spent with another amount than they were created with, within the audited days."""
    made = scope("treasury_outputs").select("output_id", F.col("amount").alias("expected"))
    used = (
        scope("consumed_outputs")
        .where("kind = 'treasury'")
        .select("date", "output_id", F.col("amount").alias("found"))
    )
    return (
        used.join(made, "output_id")
        .where("expected <> found")
        .select("date", F.concat(F.lit("treasury "), "output_id").alias("place"), "expected", "found")
    )


def wrong_ranges(scope: Scope) -> DataFrame:
    size = F.lit(scope.chunk_size)
    right = F.floor(F.col("milestone_index") / size)
    return (
        scope("ms_analytics")
        .where(right != F.col("ms_range_id"))
        .select(
            "date", AT_MILESTONE.alias("place"), right.alias("expected"), F.col("ms_range_id").alias("found")
        )
    )


MESSAGES = (
    violations(
        "white_flag_order",
        "messages",
        "white_flag_index runs from 0 without gap or repetition in each milestone.",
        disordered,
    ),
    violations(
        "roots_match",
        "messages",
        "Ids in white-flag order lead to the Merkle roots that the milestone was signed with.",
        broken_roots,
    ),
    covered(
        "milestone_messages_known",
        "milestones",
        "A milestone's message is among the day's messages.",
        things=message_of("milestones"),
        known=message_of("messages"),
    ),
    covered(
        "transactions_have_messages",
        "transactions",
        "Each row's message exists, in the same milestone and state.",
        things=stated("transactions"),
        known=stated("messages"),
    ),
    covered(
        "tags_have_messages",
        "tags",
        "Each tag's message exists, in the same milestone and state.",
        things=stated("tags"),
        known=stated("messages"),
    ),
    covered(
        "parents_have_messages",
        "parents",
        "Each row's message exists, in the same milestone and state.",
        things=stated("parents"),
        known=stated("messages"),
    ),
    covered(
        "messages_have_parents",
        "parents",
        "Every message has a parent.",
        things=stated("messages"),
        known=stated("parents"),
    ),
)
MILESTONES = (
    violations("no_gaps", "milestones", "Milestones of a day are contiguous.", gaps),
    violations("time_goes_on", "milestones", "Each milestone is later than the one before.", untimely),
    covered(
        "milestones_known",
        "milestones",
        "Every row's milestone exists on its date, with its time.",
        things=named_milestones,
        known=known_milestones,
    ),
    covered(
        "ranges_agree",
        "ms_analytics",
        "Every row's ms_range_id is that of its milestone.",
        things=ranges,
        known=lambda scope: entries(scope("ms_analytics"), RANGE),
    ),
    violations(
        "range_of_milestone", "ms_analytics", "ms_range_id is milestone_index div chunk_size.", wrong_ranges
    ),
    balance(
        "analytics_of_milestones",
        "ms_analytics",
        "Every milestone has one row.",
        expected=by_milestone("milestones"),
        found=by_milestone("ms_analytics"),
    ),
    balance(
        "activity_of_milestones",
        "ms_activity",
        "Every milestone has one row.",
        expected=by_milestone("milestones"),
        found=by_milestone("ms_activity"),
    ),
)
LEDGER = (
    balance(
        "outputs_of_transactions",
        "transactions",
        "The outputs of included transactions are the rows of the output tables.",
        expected=transaction_outputs,
        found=lambda scope: entries(created(scope), "output_id"),
    ),
    balance(
        "inputs_of_transactions",
        "consumed_outputs",
        "The inputs of included transactions are the consumed outputs.",
        expected=transaction_inputs,
        found=lambda scope: entries(spent(scope), "output_id"),
    ),
    balance(
        "supply_is_conserved",
        "consumed_outputs",
        "A transaction creates as much as it consumes.",
        expected=lambda scope: entries(
            spent(scope), F.concat(F.lit("transaction "), "transaction_id"), F.col("amount")
        ),
        found=lambda scope: entries(
            created(scope), F.concat(F.lit("transaction "), "transaction_id"), F.col("amount")
        ),
    ),
    balance(
        "supply_of_milestones",
        "consumed_outputs",
        "A milestone's receipt and transactions create as much as they consume.",
        expected=lambda scope: entries(spent(scope), AT_MILESTONE, F.col("amount")).union(treasury(scope)[0]),
        found=lambda scope: entries(created(scope), AT_MILESTONE, F.col("amount")).union(treasury(scope)[1]),
    ),
    balance(
        "treasury_pays_receipts",
        "treasury_outputs",
        "What a receipt takes from the treasury is what it creates and leaves.",
        expected=lambda scope: treasury(scope)[0],
        found=lambda scope: treasury(scope)[1],
    ),
    violations(
        "treasury_goes_on",
        "treasury_outputs",
        "A treasury is spent with the amount that it was created with.",
        treasury_chain,
    ),
)
COUNTS = (
    balance(
        "messages_add_up",
        "ms_analytics",
        "message_count is the number of messages.",
        expected=by_milestone("messages"),
        found=by_milestone("ms_analytics", "message_count"),
    ),
    balance(
        "transactions_add_up",
        "ms_analytics",
        "transaction_count is the number of included transactions.",
        expected=lambda scope: entries(included("messages")(scope), AT_MILESTONE),
        found=by_milestone("ms_analytics", "transaction_count"),
    ),
    balance(
        "tokens_add_up",
        "ms_analytics",
        "transferred_tokens is the sum of the created outputs.",
        expected=lambda scope: entries(created(scope), AT_MILESTONE, F.col("amount")),
        found=by_milestone("ms_analytics", "transferred_tokens"),
    ),
    balance(
        "states_add_up",
        "ms_activity",
        "Messages by state are as many as in messages.",
        expected=lambda scope: entries(
            scope("messages"), F.concat(AT_MILESTONE, F.lit(" state "), F.col("inclusion_state"))
        ),
        found=activity_states,
    ),
    balance(
        "bytes_add_up",
        "ms_activity",
        "message_bytes is the size of the messages.",
        expected=lambda scope: entries(scope("messages"), AT_MILESTONE, F.length("message")),
        found=by_milestone("ms_activity", "message_bytes"),
    ),
    balance(
        "sent_adds_up",
        "address_analytics",
        "sent_tokens is the sum of what the address unlocked.",
        expected=moved(spent, "address"),
        found=of_address("sent_tokens"),
    ),
    balance(
        "received_adds_up",
        "address_analytics",
        "recv_tokens is the sum of the created outputs that the address owns.",
        expected=moved(created, "owner"),
        found=of_address("recv_tokens"),
    ),
    balance(
        "date_cache_is_right",
        "date_cache",
        "start_ms and end_ms are the day's first and last milestone.",
        expected=per_day(
            {"start_ms": F.min("milestone_index"), "end_ms": F.max("milestone_index")}, "milestones"
        ),
        found=of_row("date_cache", "start_ms", "end_ms"),
    ),
    balance(
        "metrics_are_right",
        "metrics_cache",
        "Values are the distinct addresses and tags behind the day's metrics.",
        expected=both_metrics,
        found=lambda scope: entries(scope("metrics_cache"), F.concat_ws(" ", "metric", "value")),
    ),
    balance(
        "addresses_add_up",
        "daily_analytics",
        "Counts are those of metrics_cache.",
        expected=per_day(
            {
                "total_addresses": F.count_if(F.col("metric") == "sent_or_received"),
                "send_addresses": F.count_if(F.col("metric") == "sent"),
                "recv_addresses": F.count_if(F.col("metric") == "received"),
            },
            "metrics_cache",
        ),
        found=of_row("daily_analytics", "total_addresses", "send_addresses", "recv_addresses"),
    ),
    balance(
        "day_adds_up", "daily_extended", "The day's figures add up.", expected=extended, found=extended_row
    ),
    balance(
        "one_row_a_day",
        "daily_extended",
        "Each day with milestones has one row in date_cache, daily_analytics and daily_extended.",
        expected=lambda scope: union(
            entries(scope("milestones").select("date").distinct(), F.lit(name))
            for name in ("date_cache", "daily_analytics", "daily_extended")
        ),
        found=lambda scope: union(
            entries(scope(name), F.lit(name)) for name in ("date_cache", "daily_analytics", "daily_extended")
        ),
    ),
)

LAWS = (*MILESTONES, *MESSAGES, *LEDGER, *COUNTS)
