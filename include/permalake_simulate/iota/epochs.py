"""One epoch of a synthetic tangle: its cones as archive files, and a summary for its milestones."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import TextIO

from permalake.iota.codec.encode_outputs import Output, pack_output
from permalake.iota.codec.outputs import BASIC, SINGLE
from permalake_simulate.iota.archive_lines import Shape
from permalake_simulate.iota.chronicle_logs import entry
from permalake_simulate.iota.chrysalis_ledger import ChrysalisLedger
from permalake_simulate.iota.cones import ConeMaker, Message, SimulatedCone
from permalake_simulate.iota.epoch_ledger import Booked, Draft, SimulatedCoin, SimulatedLedger, owned
from permalake_simulate.iota.owners import Owners
from permalake_simulate.iota.spine import Lead, anchor, funding, funding_block, hashed
from permalake_simulate.iota.stardust_transactions import stardust_ledger
from permalake_simulate.iota.tag_choice import SimulatedTags
from permalake_simulate.iota.tangle_world import Epoch, IotaWorld
from permalake_simulate.iota.wallets import BANK, Wallets
from permalake_simulate.seeds import opened

_CONFLICTING, _INCLUDED, _NO_TRANSACTION = range(3)
FILES = ("blocks", "created_outputs", "consumed_outputs", "utxo_changes")
_NOTHING: tuple[Draft | None, bytes | None] = (None, None)


@dataclass
class Summary:
    """What the milestone that closes a cone needs, and the cone's totals.

    Ids are in hex; ``created`` and ``consumed`` are set only where a receipt adds to them.
    """

    milestone: int
    day: str
    time: int
    size: int
    tips: list[str]
    applied_root: str
    path: list[str] = field(default_factory=list)
    included: int = 0
    transferred: int = 0
    conflicts: dict[str, int] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    consumed: list[str] = field(default_factory=list)
    created_amount: int = 0
    consumed_amount: int = 0


class EpochMaker:
    """The maker of epochs, which funds each of them, or the first one alone where all have one ledger."""

    def __init__(self, world: IotaWorld) -> None:
        self._world = world
        self._tagger = SimulatedTags(world.protocol, world.tags)
        self._going: tuple[Random, SimulatedLedger, ConeMaker] | None = None

    def make(self, epoch: Epoch, lead: Lead, folder: Path, packed: bool) -> Iterator[Summary]:
        """Write the epoch's files into ``folder`` and yield a summary of each milestone."""
        world, first = self._world, _NOTHING
        if self._going is None or not world.one_ledger:
            self._going = self._begun(epoch, lead)
            first = _funded(world, epoch, lead)
        rng, ledger, maker = self._going
        with ExitStack() as files:
            writer = _writer(world, ledger, folder / f"{epoch.number:06d}", packed, files)
            for at, (time, size) in enumerate(zip(epoch.times, epoch.sizes, strict=True)):
                milestone = epoch.first + at
                others = size - 1
                room = others - 2 - (first[0] is not None)
                count = min(_binomial(rng, others, world.transaction_share), room) + (first[0] is not None)
                drafts = ledger.fill(world.index(milestone), time, count, first[0])
                cone = maker.make(milestone, others, drafts, first[1])
                first = _NOTHING
                yield writer.write(cone, milestone, epoch, at)

    def _begun(self, epoch: Epoch, lead: Lead) -> tuple[Random, SimulatedLedger, ConeMaker]:
        rng = Random(f"{self._world.seed}/epoch {epoch.number}")  # noqa: S311 (reproducible, not secret)
        ledger = _ledger(self._world, lead, rng, self._tagger)
        return rng, ledger, ConeMaker(self._world, rng, ledger, self._tagger, lead.anchor)


def _funded(world: IotaWorld, epoch: Epoch, lead: Lead) -> tuple[Draft, bytes]:
    """Return the transaction that funds an epoch, and the message that carries it."""
    payload, outputs = funding(world, epoch, lead)
    anchored = hashed(anchor(world, epoch.first, lead.anchor))
    return _funding_draft(payload, outputs, lead), funding_block(world, payload, anchored)


def _writer(
    world: IotaWorld, ledger: SimulatedLedger, place: Path, packed: bool, files: ExitStack
) -> _Writer:
    """Return a writer of an epoch's files, which ``place`` names (folder, number)."""
    shape, folder, number = Shape(world.protocol), place.parent, place.name
    if world.layout == "chronicle":
        # Messages wait for their milestones, a line for each.
        entries = files.enter_context(opened(folder / f"entries-{number}", packed=False))
        return _LogWriter(world, shape, ledger, {"blocks": entries})
    names = {name: shape.blocks_file if name == "blocks" else name for name in FILES}
    out = {
        name: files.enter_context(opened(folder / f"{file}-{number}.jsonl", packed))
        for name, file in names.items()
    }
    return _Writer(world, shape, ledger, out)


def _ledger(world: IotaWorld, lead: Lead, rng: Random, tagger: SimulatedTags) -> SimulatedLedger:
    wallets = Wallets(world.seed, world.wallets)
    owners = Owners(wallets)
    for number in range(min(world.wallets, 100)):
        owners.known(number)
    is_stardust = world.protocol == "stardust"
    new_ledger = stardust_ledger if is_stardust else ChrysalisLedger
    ledger: SimulatedLedger = new_ledger(world, wallets, rng, owners=owners, tagger=tagger)
    bank_kind = BASIC if is_stardust else SINGLE
    bank = Output(bank_kind, lead.bank_amount, owned(wallets[BANK].address))
    ledger.unspent[lead.bank_id] = SimulatedCoin(lead.bank_id, bank, pack_output(bank))
    ledger.booked[lead.bank_id] = Booked(lead.bank_block, lead.bank_index, lead.bank_time)
    return ledger


def _funding_draft(payload: bytes, outputs: tuple[Output, ...], lead: Lead) -> Draft:
    transaction_id = hashed(payload)
    coins = tuple(
        SimulatedCoin(transaction_id + at.to_bytes(2, "little"), output, pack_output(output))
        for at, output in enumerate(outputs)
    )
    return Draft(payload, transaction_id, (lead.bank_id,), coins, repeatable=False)


def _binomial(rng: Random, count: int, share: float) -> int:
    """Return about how many of ``count`` there are; exact enough, and quick for large cones."""
    spread = (count * share * (1 - share)) ** 0.5
    return max(0, min(count, round(rng.gauss(count * share, spread))))


class _Nowhere(io.StringIO):
    """A sink for lines that a format has no file for."""

    def write(self, text: str) -> int:
        """Drop the text."""
        return len(text)


class _Writer:
    """Writer of an epoch's archive files."""

    def __init__(self, world: IotaWorld, shape: Shape, ledger: SimulatedLedger, out: dict[str, TextIO]):
        self._world, self._shape, self._ledger = world, shape, ledger
        self._out: dict[str, TextIO] = {name: out.get(name) or _Nowhere() for name in FILES}

    def write(self, cone: SimulatedCone, milestone: int, epoch: Epoch, at: int) -> Summary:
        """Write a cone and return the summary of its milestone."""
        index = self._world.index(milestone)
        self._blocks(cone, index)
        created, consumed, created_amount, consumed_amount = self._changes(cone, index, epoch.times[at])
        has_receipt = self._world.has_receipt(milestone)
        if not has_receipt:
            self._out["utxo_changes"].write(self._shape.changes(index, created, consumed))
        conflicts = Counter(str(message.reason) for message in cone.messages if message.reason)
        return Summary(
            milestone=milestone,
            day=epoch.day.isoformat(),
            time=epoch.times[at],
            size=epoch.sizes[at],
            tips=[tip.hex() for tip in cone.tips],
            applied_root=cone.applied_root.hex(),
            path=[sibling.hex() for _, sibling in cone.path],
            included=len(cone.included),
            transferred=created_amount,
            conflicts=dict(sorted(conflicts.items())),
            created=[output_id.hex() for output_id in created] if has_receipt else [],
            consumed=[output_id.hex() for output_id in consumed] if has_receipt else [],
            created_amount=created_amount,
            consumed_amount=consumed_amount,
        )

    def _blocks(self, cone: SimulatedCone, index: int) -> None:
        shape, write = self._shape, self._out["blocks"].write
        for number, message in enumerate(cone.messages):
            # Stardust: the message of the milestone before is the cone's first.
            more = {"whiteFlagIndex": number + 1} if shape.is_stardust else {}
            if message.reason:
                more["conflictReason"] = message.reason
            write(shape.block(index, message.block_id, message.raw, message.parents, _state(message), **more))

    def _changes(
        self, cone: SimulatedCone, index: int, time: int
    ) -> tuple[list[bytes], list[bytes], int, int]:
        ledger, shape = self._ledger, self._shape
        created, consumed, gained, lost = [], [], 0, 0
        for draft in cone.included:
            for coin in draft.coins:
                created.append(coin.output_id)
                gained += coin.output.amount
                self._out["created_outputs"].write(shape.created(index, coin, ledger.booked[coin.output_id]))
            for output_id in draft.inputs:
                coin = ledger.gone[output_id]
                consumed.append(output_id)
                lost += coin.output.amount
                booked = ledger.booked.pop(output_id)
                line = shape.consumed(index, time, coin, booked, draft.transaction_id)
                self._out["consumed_outputs"].write(line)
        return created, consumed, gained, lost


class _LogWriter(_Writer):
    def _blocks(self, cone: SimulatedCone, index: int) -> None:
        entries = (entry(index, message.block_id, message.raw, _state(message)) for message in cone.messages)
        self._out["blocks"].write(",".join(entries) + "\n")


def _state(message: Message) -> int:
    if not message.draft:
        return _NO_TRANSACTION
    return _CONFLICTING if message.reason else _INCLUDED


def as_line(summary: Summary) -> str:
    """Return the summary as a JSON line."""
    return json.dumps(asdict(summary), separators=(",", ":")) + "\n"


def from_line(line: str) -> Summary:
    """Return the summary from a line of :func:`as_line`."""
    return Summary(**json.loads(line))
