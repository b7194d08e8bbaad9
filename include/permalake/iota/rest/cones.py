"""Cones of milestones, as proofs of inclusion need them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from permalake.iota.codec.inclusion_proof import Root
from permalake.iota.rest import ledger
from permalake.lake.serving import Scan
from permalake.web.state import RequestLake

INCLUDED = 1


@dataclass(frozen=True)
class ProvenCone:
    """A milestone's payload and what it references.

    ``carrier`` is the message that carries the milestone, where it is known; ``order`` are the referenced
    messages in white-flag order, with their inclusion states. Ids are bare hex.
    """

    lake: RequestLake
    index: int
    payload: bytes
    carrier: str | None
    order: tuple[tuple[str, int], ...]

    def ids(self, root: Root) -> list[bytes]:
        """Return the ids under a Merkle root of the milestone, in order (TIP-2, TIP-4)."""
        return [
            bytes.fromhex(message_id)
            for message_id, state in self.order
            if root == "inclusion" or state == INCLUDED
        ]

    def messages(self, *message_ids: str | None) -> list[bytes]:
        """Return the bytes of some of its messages, in the order asked for."""
        ids = [message_id for message_id in message_ids if message_id]
        rows = self.lake.rows(
            "SELECT message_id, message FROM messages WHERE message_id IN (SELECT unnest($ids))",
            {"ids": ids},
            messages=Scan(milestones=[self.index]),
        )
        messages = {row["message_id"]: row["message"] for row in rows}
        return [messages[message_id] for message_id in ids]

    def parents(self) -> dict[bytes, list[bytes]]:
        """Return the parents of every message that the milestone references."""
        rows = self.lake.rows(
            "SELECT parent_id, message_id FROM parents WHERE milestone_index = $index ORDER BY parent_id",
            {"index": self.index},
            parents=Scan(milestones=[self.index]),
        )
        parents = defaultdict(list)
        for row in rows:
            parents[bytes.fromhex(row["message_id"])].append(bytes.fromhex(row["parent_id"]))
        return dict(parents)


def cone_of(lake: RequestLake, index: int) -> ProvenCone:
    """Return the cone of a milestone; 404 where it is not published."""
    row = ledger.milestone(lake, index)
    order = lake.rows(
        "SELECT message_id, inclusion_state FROM messages WHERE milestone_index = $index "
        "ORDER BY white_flag_index",
        {"index": index},
        messages=Scan(milestones=[index]),
    )
    states = tuple((row["message_id"], row["inclusion_state"]) for row in order)
    return ProvenCone(lake, index, row["payload"], row["message_id"], states)
