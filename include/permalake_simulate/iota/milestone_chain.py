"""The milestones of a synthetic tangle in sequence: each names the one before, and signs its cone.

Cones are made in parallel; only this is sequential. Of a cone it needs no more than a
:class:`~permalake_simulate.iota.epochs.Summary`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from permalake.iota.codec.encode import MilestoneDraft, pack_block, pack_milestone, pack_milestone_essence
from permalake.iota.codec.encode_outputs import Output, pack_output
from permalake.iota.codec.merkle import merkle_root, root_from_path
from permalake.iota.codec.milestones import Milestone, decode_milestone
from permalake.iota.codec.outputs import ED25519, SINGLE
from permalake.iota.codec.receipts import MigratedFunds, ProtocolParameters, Receipt
from permalake_simulate.iota.archive_lines import Shape
from permalake_simulate.iota.chronicle_logs import entry, milestone_body
from permalake_simulate.iota.epoch_ledger import Booked, SimulatedCoin, owned
from permalake_simulate.iota.epochs import Summary
from permalake_simulate.iota.spine import Lead, anchor, hashed, message_network
from permalake_simulate.iota.tangle_world import OPENING, IotaWorld
from permalake_simulate.iota.wallets import BANK, Wallets, coordinator
from permalake_simulate.seeds import digest

_NO_TRANSACTION = 2
_UPPER_HALF = 0x80
_LEAST_DEPOSIT, _MOST_DEPOSIT = 1_000_000, 50_000_000
_BELOW_MAX_DEPTH = 15
# Id, bytes and parents of a message that carries a milestone.
Carrier = tuple[bytes, bytes, tuple[bytes, ...]]


@dataclass
class Closed:
    """A finished milestone.

    It has lines by archive file, or the entry of its own message in a Chronicle log (and the cone's other
    ``entries``, where they are not in a file).
    """

    summary: Summary
    milestone: Milestone
    migrated: int = 0
    lines: dict[str, list[str]] = field(default_factory=dict)
    carrier: str = ""
    entries: str = ""

    @property
    def analytics(self) -> tuple[int, int, int]:
        """Messages, included transactions, transferred tokens, as ms_analytics has them."""
        return self.summary.size, self.summary.included, self.summary.transferred


class MilestoneChain:
    """The chain of milestones. ``treasury`` is what receipts have left of it."""

    def __init__(self, world: IotaWorld):
        self._world = world
        self._shape = Shape(world.protocol)
        self._keys = coordinator(world.seed)
        self._wallets = Wallets(world.seed, world.wallets)
        self._previous = digest(world.seed, "milestone before the first")
        self._treasury_id = digest(world.seed, "treasury")
        self.treasury = world.funds.treasury
        self._carrier = self._before_the_first()

    def open(self) -> tuple[Closed, Lead]:
        """Return the milestone before all epochs (Chronicle), and what it leads to.

        Its receipt mints what the epochs will spend.
        """
        world = self._world
        raw = anchor(world, OPENING, digest(world.seed, "anchor"))
        anchored, day = hashed(raw), world.filled_days[0]
        time = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
        summary = Summary(
            milestone=OPENING,
            day=day.isoformat(),
            time=time,
            size=2,
            tips=[anchored.hex()],
            applied_root=merkle_root([]).hex(),
        )
        closed = self._closed(summary)
        closed.entries = entry(world.index(OPENING), anchored, raw, _NO_TRANSACTION)
        bank_id = closed.milestone.milestone_id + bytes(2)
        lead = Lead(anchored, bank_id, world.funds.bank, self._carrier[0], world.index(OPENING), time)
        return closed, lead

    def close(self, summaries: Iterable[Summary]) -> Iterator[Closed]:
        """Yield the milestones of the summaries, which come in order."""
        for summary in summaries:
            yield self._closed(summary)

    def _before_the_first(self) -> Carrier:
        """Return the message of the milestone before the world's first one."""
        world = self._world
        parents = (digest(world.seed, "anchor"),)
        draft = MilestoneDraft(
            index=world.first_milestone - 1,
            timestamp=0,
            parents=parents,
            applied_root=hashed(b""),
            inclusion_root=hashed(b""),
            previous_milestone_id=self._previous,
        )
        payload = self._signed(draft)
        self._previous = decode_milestone(payload, world.protocol).milestone_id
        return self._carried(payload, parents)

    def _closed(self, summary: Summary) -> Closed:
        world, before = self._world, self._carrier
        parents = tuple(sorted([before[0], *map(bytes.fromhex, summary.tips)]))
        receipt = self._receipt(summary.milestone) if world.has_receipt(summary.milestone) else None
        draft = MilestoneDraft(
            index=world.index(summary.milestone),
            timestamp=summary.time,
            parents=parents,
            applied_root=bytes.fromhex(summary.applied_root),
            previous_milestone_id=self._previous,
            receipt=receipt,
        )
        if self._shape.is_stardust:
            path = [("right", bytes.fromhex(sibling)) for sibling in summary.path]
            draft = replace(
                draft,
                inclusion_root=root_from_path(before[0], path),  # type: ignore[arg-type]
                protocol_parameters=self._announced(summary.milestone),
            )
        payload = self._signed(draft)
        milestone = decode_milestone(payload, world.protocol)
        self._carrier = self._carried(payload, parents)
        self._previous = milestone.milestone_id
        return self._written(summary, milestone, payload, before)

    def _signed(self, draft: MilestoneDraft) -> bytes:
        if not self._shape.is_stardust:
            draft = replace(draft, public_keys=tuple(pair.public for pair in self._keys))
        essence = pack_milestone_essence(draft, self._world.protocol)
        signatures = [(pair.public, pair.sign(hashed(essence))) for pair in self._keys]
        return pack_milestone(essence, signatures, self._world.protocol)

    def _carried(self, payload: bytes, parents: tuple[bytes, ...]) -> Carrier:
        """Return id, bytes and parents of the milestone's message.

        Its nonce puts the id into the lower half, so that it comes first among the next milestone's parents,
        and in its white-flag order too.
        """
        nonce = 0
        raw = pack_block(parents, payload, self._world.protocol, network_id=message_network(self._world))
        while hashed(raw)[0] >= _UPPER_HALF:
            nonce += 1
            raw = raw[:-8] + struct.pack("<Q", nonce)
        return hashed(raw), raw, parents

    def _announced(self, milestone: int) -> ProtocolParameters | None:
        """Return the parameters that a milestone announces, if it does (same version: no change)."""
        if milestone % 1_000 != 500:
            return None
        return ProtocolParameters(self._world.index(milestone) + 1_000, 2, self._world.network.encode())

    def _receipt(self, milestone: int) -> Receipt:
        """Return funds that arrive from the legacy network, out of the treasury."""
        if milestone == OPENING:
            return self._first_receipt()
        seed, count = self._world.seed, 1 + digest(self._world.seed, "funds", milestone)[0] % 5
        funds = []
        for number in range(count):
            tail = digest(seed, "tail", milestone, number)
            deposit = _LEAST_DEPOSIT + int.from_bytes(tail[:4], "little") % (_MOST_DEPOSIT - _LEAST_DEPOSIT)
            owner = self._wallets[tail[4] % self._world.wallets].address
            funds.append(MigratedFunds(_trits(tail), ED25519, owner, deposit))
        self.treasury -= sum(fund.deposit for fund in funds)
        if self.treasury < 0:
            raise ValueError("the treasury is empty")
        funds.sort(key=lambda fund: fund.tail_transaction_hash)
        at = 1 + milestone // self._world.receipt_every
        return Receipt(at, True, tuple(funds), self._treasury_id, self.treasury)

    def _first_receipt(self) -> Receipt:
        self.treasury -= self._world.funds.bank
        tail = _trits(digest(self._world.seed, "tail", OPENING))
        fund = MigratedFunds(tail, ED25519, self._wallets[BANK].address, self._world.funds.bank)
        return Receipt(0, True, (fund,), self._treasury_id, self.treasury)

    def _written(self, summary: Summary, milestone: Milestone, payload: bytes, before: Carrier) -> Closed:
        shape, index = self._shape, milestone.index
        # Stardust: the cone holds the message of the milestone before; Chrysalis: the milestone's own.
        block_id, raw, parents = before if shape.is_stardust else self._carrier
        more = {"whiteFlagIndex": 0} if shape.is_stardust else {"milestoneIndex": index}
        closed = Closed(summary, milestone)
        if self._world.layout == "chronicle":
            told = milestone_body(milestone)
            closed.carrier = entry(index, block_id, raw, _NO_TRANSACTION, told)
            self._migrated(closed, milestone)
            return closed
        closed.lines[shape.blocks_file] = [
            shape.block(index, block_id, raw, parents, _NO_TRANSACTION, **more)
        ]
        network = {
            "version": milestone.protocol_version,
            "network_name": self._world.network,
            "bech32_hrp": self._world.bech32_hrp,
            "below_max_depth": _BELOW_MAX_DEPTH,
            "token_supply": str(self._world.funds.supply),
        }
        closed.lines["milestones"] = [
            shape.milestone(milestone, payload, self._carrier[0], summary.size, network)
        ]
        self._migrated(closed, milestone)
        return closed

    def _migrated(self, closed: Closed, milestone: Milestone) -> None:
        receipt = milestone.receipt
        if receipt is None:
            return
        shape, summary = self._shape, closed.summary
        booked = Booked(self._carrier[0], milestone.index, milestone.timestamp)
        ids, lines = [], []
        for number, fund in enumerate(receipt.funds):
            output = Output(SINGLE, fund.deposit, owned(fund.address))
            coin = SimulatedCoin(
                milestone.milestone_id + number.to_bytes(2, "little"), output, pack_output(output)
            )
            ids.append(coin.output_id)
            lines.append(shape.created(milestone.index, coin, booked))
        created = [*map(bytes.fromhex, summary.created), *ids]
        consumed = map(bytes.fromhex, summary.consumed)
        closed.lines["created_outputs"] = lines
        closed.lines["utxo_changes"] = [shape.changes(milestone.index, created, consumed)]
        closed.migrated = sum(fund.deposit for fund in receipt.funds)
        self._treasury_id = milestone.milestone_id


def _trits(random: bytes) -> bytes:
    """Return a legacy hash as in receipts (TIP-17): 243 trits, five to a byte and three in the last one."""
    packed = bytes((value % 243 - 121) % 256 for value in (random + random)[:48])
    return packed + bytes([(random[-1] % 27 - 13) % 256])


@dataclass
class DayTotals:
    """The generator's totals of a day; ``unspent`` and ``treasury`` are at its end, genesis included."""

    first_milestone: int = 0
    last_milestone: int = 0
    messages: int = 0
    included_transactions: int = 0
    conflicts: dict[str, int] = field(default_factory=dict)
    transferred_tokens: int = 0
    migrated_tokens: int = 0
    unspent: int = 0
    treasury: int = 0

    def add(self, index: int, closed: Closed) -> None:
        """Count a milestone."""
        summary = closed.summary
        self.first_milestone = self.first_milestone or index
        self.last_milestone = index
        self.messages += summary.size
        self.included_transactions += summary.included
        for reason, count in summary.conflicts.items():
            self.conflicts[reason] = self.conflicts.get(reason, 0) + count
        self.transferred_tokens += summary.transferred
        self.migrated_tokens += closed.migrated
        self.unspent += summary.created_amount - summary.consumed_amount + closed.migrated
        self.treasury -= closed.migrated
