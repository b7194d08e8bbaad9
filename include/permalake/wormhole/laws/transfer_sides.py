"""Sides that several laws compare: token transfers with their route, amount and value."""

from __future__ import annotations

from pyspark.sql import DataFrame

from permalake.audit.scope import Scope

ROUTE = ("date", "emitter_chain", "target_chain", "origin_chain", "origin_address")
AT_ROUTE = (
    "format_string('chain %d to %d, token %d:%s', emitter_chain, target_chain, origin_chain, origin_address)"
)


def routed(scope: Scope) -> DataFrame:
    """Return token transfers with their route, amount and value."""

    def make() -> DataFrame:
        events = scope("message_publication").select("date", "row_key", "emitter_chain", "timestamp")
        transfers = scope("token_transfer_payload").drop("amount", "app_payload")
        return transfers.join(events, ["date", "row_key"]).join(
            scope("token_transfer_details"), ["date", "row_key"], "left"
        )

    return scope.shared("routed", make)


def in_words(rows: DataFrame) -> DataFrame:
    """Return violations with ``null`` in words, so that a missing value shows."""
    texts = (f"coalesce(cast({name} AS string), 'null') AS {name}" for name in ("expected", "found"))
    return rows.selectExpr("date", "place", *texts)
