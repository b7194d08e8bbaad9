"""The cone of one synthetic milestone: messages, their parents, their order and their Merkle trees.

A message's id hashes its parents' ids, so messages are made in sequence; epochs are made in parallel.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random

from permalake.iota.codec.encode import pack_block, pack_tagged_data
from permalake.iota.codec.merkle import Path, audit_path, merkle_root
from permalake.iota.cone.white_flag import white_flag_order
from permalake_simulate.iota.epoch_ledger import Draft, SimulatedLedger
from permalake_simulate.iota.spine import anchor, hashed, message_network
from permalake_simulate.iota.tag_choice import SimulatedTags
from permalake_simulate.iota.tangle_world import IotaWorld

# More tips than these are joined first: a milestone refers to 8 messages at most, the last milestone's own
# among them.
_MOST_TIPS = 6
_WINDOW = 40
_NO_PAYLOAD = 0.02
_UPPER_HALF = 0x80


@dataclass(slots=True)
class Message:
    """A message of the cone. ``parents`` are sorted; ``draft`` is the transaction that it carries."""

    block_id: bytes
    raw: bytes
    parents: list[bytes]
    draft: Draft | None = None
    reason: int = 0


@dataclass(slots=True)
class SimulatedCone:
    """A cone without the message that carries the previous (Stardust) or this (Chrysalis) milestone.

    ``messages`` are in white-flag order, ``tips`` sorted. ``path`` is the audit path of a message before all
    others: with it a Stardust milestone's inclusion root follows from its predecessor's message.
    """

    messages: list[Message]
    tips: list[bytes]
    applied_root: bytes
    path: Path
    included: list[Draft] = field(default_factory=list)


class ConeMaker:
    """The maker of an epoch's cones, in order; the next cone may refer to ``_before``."""

    def __init__(
        self,
        world: IotaWorld,
        rng: Random,
        ledger: SimulatedLedger,
        tagger: SimulatedTags,
        last_anchor: bytes,
    ):
        self._world, self._rng, self._ledger, self._tagger = world, rng, ledger, tagger
        self._anchor = last_anchor
        self._before = [last_anchor]
        self._network = message_network(world)
        # Numbers of the messages that no other refers to yet, oldest first.
        self._loose: dict[int, None] = {}

    def make(
        self, milestone: int, size: int, drafts: Sequence[Draft], funding: bytes | None
    ) -> SimulatedCone:
        """Return the cone of ``size`` messages with these transactions.

        An epoch's first cone begins with ``funding``, which carries the first draft.
        """
        made = self._messages(milestone, size, drafts, funding)
        tips = self._tips(made)
        ordered = _ordered(made, tips)
        carrying = [message for message in ordered if message.draft]
        transactions = [message.draft for message in carrying if message.draft]
        reasons = self._ledger.settle(transactions, [message.block_id for message in carrying])
        for message, reason in zip(carrying, reasons, strict=True):
            message.reason = reason
        applied = [message for message in carrying if not message.reason]
        ids = [message.block_id for message in ordered]
        self._before = [*tips, self._anchor]
        is_stardust = self._world.protocol == "stardust"
        return SimulatedCone(
            ordered,
            tips,
            merkle_root([message.block_id for message in applied]),
            audit_path([bytes(32), *ids], 0) if is_stardust else [],
            [message.draft for message in applied if message.draft],
        )

    def _messages(
        self, milestone: int, size: int, drafts: Sequence[Draft], funding: bytes | None
    ) -> list[Message]:
        raw = anchor(self._world, milestone, self._anchor)
        made = [Message(hashed(raw), raw, [self._anchor])]
        self._anchor = made[0].block_id
        carried: list[int] = []  # by draft: the number of its message
        if funding:
            made.append(Message(hashed(funding), funding, [self._anchor], drafts[0]))
            carried.append(1)
        self._loose = {len(made) - 1: None}
        for position in range(len(made), size):
            draft = None
            if self._rng.random() * (size - position) < len(drafts) - len(carried):
                draft = drafts[len(carried)]
            parents = self._parents(made, [carried[number] for number in draft.needs] if draft else ())
            if draft:
                carried.append(position)
            made.append(self._message(parents, draft.payload if draft else self._small_payload(), draft))
        return made

    def _parents(self, made: list[Message], needs: Sequence[int]) -> list[bytes]:
        """Return the ids of the next message's parents, sorted.

        They are some tips, so that these stay few, recent messages, now and then one of the last cone, and
        the messages that it needs.
        """
        rng, loose, chosen = self._rng, self._loose, set(needs)
        joined = 2 if len(loose) >= _MOST_TIPS - 1 else int(3 * rng.random())
        for _ in range(min(joined, len(loose))):
            tip = next(iter(loose)) if rng.random() < 0.5 else next(reversed(loose))
            del loose[tip]
            chosen.add(tip)
        # An anchor or funding message is never a milestone's parent: its nonce is settled.
        if loose and next(iter(loose)) < 2:
            chosen.add(next(iter(loose)))
        for _ in range(int(3 * rng.random())):
            if len(chosen) < 5:
                chosen.add(max(0, len(made) - 1 - int(_WINDOW * rng.random())))
        if not chosen:
            chosen.add(len(made) - 1)
        for number in chosen:
            loose.pop(number, None)
        loose[len(made)] = None
        ids = {made[number].block_id for number in chosen}
        if rng.random() < 0.1:
            ids.add(rng.choice(self._before))
        return sorted(ids)

    def _small_payload(self) -> bytes:
        if self._rng.random() < _NO_PAYLOAD:
            return b""
        return pack_tagged_data(self._tagger.tagged(self._rng), self._world.protocol)

    def _message(self, parents: list[bytes], packed: bytes, draft: Draft | None) -> Message:
        nonce = self._rng.getrandbits(64)
        raw = pack_block(parents, packed, self._world.protocol, nonce=nonce, network_id=self._network)
        return Message(hashed(raw), raw, parents, draft)

    def _tips(self, made: list[Message]) -> list[bytes]:
        """Return the ids of the messages that no other refers to, sorted.

        On Stardust their nonces are chosen so that the message of the last milestone, whose id is in the
        lower half, comes before them.
        """
        tips = []
        for number in self._loose:
            message = made[number]
            while self._world.protocol == "stardust" and message.block_id[0] < _UPPER_HALF:
                message.raw = message.raw[:-8] + struct.pack("<Q", self._rng.getrandbits(64))
                message.block_id = hashed(message.raw)
            tips.append(message.block_id)
        return sorted(tips)


def _ordered(made: list[Message], tips: Sequence[bytes]) -> list[Message]:
    """Return the messages in white-flag order."""
    row = {message.block_id: number for number, message in enumerate(made)}
    edges = [row.get(parent, -1) for message in made for parent in message.parents]
    first_edge = [0, *accumulate(len(message.parents) for message in made)]
    member = bytearray(b"\1" * len(made))
    return [
        made[number] for number in white_flag_order((row[tip] for tip in tips), first_edge, edges, member)
    ]
