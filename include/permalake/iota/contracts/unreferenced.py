"""Contract of the messages that no milestone references yet; only the live head of a network has them."""

from __future__ import annotations

from permalake.contracts.schema import Column, Table
from permalake.iota.contracts.columns import message

UNREFERENCED_MESSAGES = Table(
    "unreferenced_messages",
    "iota",
    "Messages (blocks) above the last milestone of the live head, which no milestone references yet.",
    (
        message(),
        Column("version", "int", "1 on Chrysalis, the block's protocol version on Stardust.", values=(1, 2)),
        Column("message", "binary", "Raw bytes of the message."),
        Column(
            "est_milestone_index",
            "int",
            "Estimate: the first milestone that may reference it, the one after the head's last.",
            minimum=0,
        ),
        Column("seen_at", "timestamptz", "When the head first had it."),
    ),
    key=("message_id",),
    sort=("seen_at", "message_id"),
    commit="head",
    date_doc="UTC date of the first day that may have it.",
)
HEAD_TABLES = {UNREFERENCED_MESSAGES.name: UNREFERENCED_MESSAGES}
