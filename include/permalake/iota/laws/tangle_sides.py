"""Sides that several laws compare: rows by milestone, outputs created and consumed by transactions."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.audit.laws import Frame, entries, union
from permalake.audit.scope import Scope

INCLUDED = "inclusion_state = 1"
AT_MILESTONE = "concat('milestone ', milestone_index)"
KINDS = ("basic", "alias", "foundry", "nft", "legacy")
"""Kinds of outputs that transactions create."""


def created(scope: Scope) -> DataFrame:
    """Return the outputs that transactions created, with their owner.

    The ids of a receipt's outputs start with a milestone's id, which is the id of a treasury output.
    """

    def make() -> DataFrame:
        frames = (
            scope(f"{kind}_outputs").selectExpr(
                *("date", "milestone_index", "output_id", "amount"),
                "substring(output_id, 1, 64) AS transaction_id",
                f"{'state_controller' if kind == 'alias' else 'address'} AS owner",
            )
            for kind in KINDS
        )
        receipts = scope("treasury_outputs").selectExpr("output_id AS transaction_id")
        return union(frames).join(F.broadcast(receipts), "transaction_id", "left_anti")

    return scope.shared("created", make)


def spent(scope: Scope) -> DataFrame:
    """Return the outputs that transactions consumed."""
    return scope("consumed_outputs").where("transaction_id IS NOT NULL")


def messages_of(table: str) -> Frame:
    """Return a side of the distinct messages that a table's rows name."""
    return lambda scope: entries(
        scope(table).select("date", "message_id").distinct().where("message_id IS NOT NULL"), "message_id"
    )
