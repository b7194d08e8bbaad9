"""Sides that several laws compare: rows by milestone, outputs created and consumed by transactions."""

from __future__ import annotations

from permalake.audit.laws import entries, shared, union

INCLUDED = "inclusion_state = 1"
AT_MILESTONE = "'milestone ' || milestone_index"
KINDS = ("basic", "alias", "foundry", "nft", "legacy")
"""Kinds of outputs that transactions create."""

_MADE = union(
    "SELECT date, milestone_index, output_id, amount, substring(output_id, 1, 64) AS transaction_id, "
    f"{'state_controller' if kind == 'alias' else 'address'} AS owner FROM {kind}_outputs"
    for kind in KINDS
)
# The ids of a receipt's outputs start with a milestone's id, which is the id of a treasury output.
CREATED = shared(
    "created",
    f"SELECT made.* FROM ({_MADE}) AS made "
    "ANTI JOIN treasury_outputs AS receipts ON made.transaction_id = receipts.output_id",
)
"""The outputs that transactions created, with their owner."""
SPENT = "SELECT * FROM consumed_outputs WHERE transaction_id IS NOT NULL"
"""The outputs that transactions consumed."""


def messages_of(table: str) -> str:
    """Return a side of the messages that a table's rows name."""
    return entries(f"SELECT date, message_id FROM {table} WHERE message_id IS NOT NULL", "message_id")
