"""Fetches a stretch of milestones from a node: their cones, ledger changes and consumed outputs.

The cones of all milestones of the stretch are walked at once, from the milestones' parents to blocks that an
earlier milestone references already. A block is asked for once, however many refer to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

import pyarrow.compute as pc

from permalake.errors import PermalakeError
from permalake.iota.codec.faults import DecodeError
from permalake.iota.codec.milestones import decode_milestone
from permalake.iota.cone.source_records import Record
from permalake.iota.sources.node_answers import BlockState, Changes, Signed, carried, parents_of
from permalake.iota.sources.node_api import NodeApi, RestV1
from permalake.iota.sources.node_cache import REFERENCE, STRETCH, NodeCache, NodeRecord, Whole
from permalake.net.http import RequestRejectedError, UnavailableError

# What a kill may cost: records or seconds since the last piece was put down.
_PIECE_ROWS, _PIECE_SECONDS = 512, 2.0
_ID = 34


@dataclass(slots=True)
class _Held:
    """The part of a stretch that is there."""

    milestones: dict[int, NodeRecord] = field(default_factory=dict)
    blocks: dict[bytes, NodeRecord] = field(default_factory=dict)
    changes: dict[int, NodeRecord] = field(default_factory=dict)
    consumed: dict[tuple[int, bytes], NodeRecord] = field(default_factory=dict)
    references: dict[bytes, int] = field(default_factory=dict)  # blocks of earlier milestones

    def put(self, row: NodeRecord) -> None:
        kind, milestone, block_id = row["kind"], row["milestone"], row["id"] or b""
        if kind == REFERENCE:
            self.references[block_id] = milestone
        elif kind == Record.MILESTONE:
            self.milestones[milestone] = row
        elif kind == Record.BLOCK:
            self.blocks[block_id] = row
        elif kind == Record.CHANGES:
            self.changes[milestone] = row
        else:
            self.consumed[milestone, block_id] = row

    def rows(self) -> Iterator[NodeRecord]:
        yield from self.milestones.values()
        yield from self.blocks.values()
        yield from self.consumed.values()
        yield from self.changes.values()
        for block_id, milestone in self.references.items():
            yield _row(REFERENCE, milestone, id=block_id)


class Walk:
    """The fetch of milestones ``span`` (first, last) of one stretch.

    What a cone up to milestone ``entry_end`` refers to and the node lacks is a solid entry point.
    ``present``: bytes of blocks by id that the node need not be asked for.
    """

    def __init__(
        self,
        api: NodeApi,
        landing: NodeCache,
        pool: ThreadPoolExecutor,
        span: tuple[int, int],
        entry_end: int,
        *,
        present: Mapping[bytes, bytes],
    ) -> None:
        self._api, self._landing, self._pool = api, landing, pool
        self._present = present
        self._stretch, self._entry_end = span[0] // STRETCH, entry_end
        self._first, self._last = span
        self._held = _Held()
        self._before: set[bytes] = set()
        self._children: dict[bytes, int] = {}  # blocks that were asked for: the earliest that refers to each
        self._absent: set[bytes] = set()
        self._carriers: dict[bytes, int] = {}  # Chrysalis: messages that carry the milestones
        self._open: dict[Future[Any], Callable[[Any], None]] = {}
        self._done: SimpleQueue[Future[Any]] = SimpleQueue()
        self._stopped = False
        self._fresh: list[NodeRecord] = []
        self._put_down = time.monotonic()
        self._lacking: list[int] = []  # milestones of which the node lacks something

    def run(self) -> Whole:
        """Fetch what is not landed yet and land it.

        What the node cannot be asked for raises, with all that it answered landed.
        """
        self._load()
        try:
            for index in range(self._first, self._last + 1):
                self._want_milestone(index)
            for row in list(self._held.blocks.values()):
                if row["milestone"] >= self._first:
                    self._want_parents(row["raw"] or b"", row["milestone"])
            self._work()
        finally:
            self._settle()
        complete = min(self._lacking, default=self._last + 1) - 1
        return self._landing.add_whole(self._stretch, self._first, complete, self._held.rows())

    # -- What is there -------------------------------------------------------------------------------

    def _load(self) -> None:
        whole = self._landing.whole(self._stretch)
        if whole and whole.first <= self._last + 1 and whole.last >= self._first - 1:
            self._first, self._last = min(self._first, whole.first), max(self._last, whole.last)
        for table in self._landing.read(self._stretch):
            for row in table.to_pylist():
                self._held.put(row)
        # What lay before the stretch when it began later belongs to it now, and what lay before the node's
        # beginning may.
        begins_earlier = whole is not None and self._first < whole.first
        outside = self._held.references.items()
        self._held.references = {
            block_id: index
            for block_id, index in outside
            if index < self._first and not (index == 0 and begins_earlier)
        }
        for table in self._landing.read(self._stretch - 1, ("kind", "id")):
            blocks = table.filter(pc.equal(table.column("kind"), int(Record.BLOCK)))
            self._before.update(blocks.column("id").to_pylist())

    def _keep(self, row: NodeRecord) -> None:
        self._held.put(row)
        self._fresh.append(row)
        if len(self._fresh) >= _PIECE_ROWS or time.monotonic() - self._put_down > _PIECE_SECONDS:
            self._flush()

    def _flush(self) -> None:
        if self._fresh:
            self._landing.add_piece(self._stretch, self._fresh)
        self._fresh, self._put_down = [], time.monotonic()

    # -- What is wanted ------------------------------------------------------------------------------

    def _want_milestone(self, index: int) -> None:
        if row := self._held.milestones.get(index):
            self._want_cone(index, decode_milestone(row["raw"] or b"", self._api.protocol).parents)
            if row["link"]:
                self._want(row["link"], index)
        elif isinstance(self._api, RestV1):
            self._ask(self._api.carrier, index, then=lambda answer: self._got_carrier(index, answer))
        else:
            self._ask(self._api.milestone, index, then=lambda answer: self._got_milestone(index, answer))
        if row := self._held.changes.get(index):
            ids = row["link"] or b""
            self._want_outputs(index, [ids[at : at + _ID] for at in range(0, len(ids), _ID)])
        else:
            self._ask(self._api.changes, index, then=lambda answer: self._got_changes(index, answer))

    def _got_milestone(self, index: int, signed: Signed | None) -> None:
        if signed is None:
            self._lacking.append(index)
            return
        milestone_id = signed.milestone.milestone_id
        self._keep(_row(Record.MILESTONE, index, id=milestone_id, raw=signed.raw, link=signed.message_id))
        self._want_cone(index, signed.milestone.parents)

    def _got_carrier(self, index: int, message_id: bytes | None) -> None:
        if message_id is None:
            self._lacking.append(index)
            return
        self._carriers[message_id] = index
        if row := self._held.blocks.get(message_id):
            self._got_message(message_id, row["raw"] or b"")
        else:
            self._want(message_id, index)

    def _got_message(self, message_id: bytes, raw: bytes) -> None:
        index = self._carriers[message_id]
        try:
            self._got_milestone(index, carried(raw, index, message_id))
        except (ValueError, DecodeError) as error:
            raise PermalakeError(f"milestone {index}: its message {message_id.hex()}: {error}") from None

    def _got_changes(self, index: int, changes: Changes | None) -> None:
        if changes is None:
            self._lacking.append(index)
            return
        created, consumed = changes
        self._want_outputs(index, consumed)
        self._keep(_row(Record.CHANGES, index, raw=b"".join(created), link=b"".join(consumed)))

    def _want_outputs(self, index: int, ids: list[bytes]) -> None:
        for output_id in ids:
            if (index, output_id) not in self._held.consumed:
                self._ask(self._api.output, output_id, then=self._output_of(index, output_id))

    def _output_of(self, index: int, output_id: bytes) -> Callable[[bytes | None], None]:
        def got(raw: bytes | None) -> None:
            if raw is None:
                self._lacking.append(index)
            else:
                self._keep(_row(Record.CONSUMED, index, id=output_id, raw=raw))

        return got

    def _want_cone(self, index: int, parents: tuple[bytes, ...]) -> None:
        for parent in parents:
            self._want(parent, index)

    def _want_parents(self, raw: bytes, index: int) -> None:
        for parent in parents_of(raw, self._api.protocol):
            self._want(parent, index)

    def _want(self, block_id: bytes, child: int) -> None:
        """Look at a block that milestone ``child`` or a block of its cone refers to."""
        held = self._held
        if block_id in held.blocks or block_id in held.references or block_id in self._before:
            return
        is_new = block_id not in self._children
        self._children[block_id] = min(child, self._children.get(block_id, child))
        if is_new:
            self._ask(self._look, block_id, then=lambda answer: self._got_block(block_id, answer))
        elif block_id in self._absent:
            self._lack(block_id)

    def _look(self, block_id: bytes) -> tuple[BlockState, bytes | None] | None:
        state = self._api.state(block_id)
        if state is None:
            return None
        is_needed = state.milestone is not None and state.milestone >= self._first
        if not is_needed:
            return state, b""
        return state, self._present.get(block_id) or self._api.block(block_id)

    def _lack(self, block_id: bytes) -> None:
        """Note that the node lacks a block, by the earliest milestone whose cone has it."""
        child = self._children[block_id]
        if child <= self._entry_end:
            self._keep(_row(REFERENCE, 0, id=block_id))
        else:
            self._absent.add(block_id)
            self._lacking.append(child)

    def _got_block(self, block_id: bytes, block: tuple[BlockState, bytes | None] | None) -> None:
        state, raw = block or (None, None)
        if state is None or raw is None:
            self._lack(block_id)
            return
        child = self._children[block_id]
        index = state.milestone
        if index is None or index > child:
            place = "no milestone" if index is None else f"milestone {index}"
            raise PermalakeError(
                f"milestone {child}: its cone has block {block_id.hex()}, which the node says is referenced "
                f"by {place}; is it synchronised?"
            )
        if index < self._first:
            self._keep(_row(REFERENCE, index, id=block_id))
            return
        self._keep(_row(Record.BLOCK, index, id=block_id, raw=raw, state=state))
        if block_id in self._carriers:
            self._got_message(block_id, raw)
        self._want_parents(raw, index)

    # -- Work ----------------------------------------------------------------------------------------

    def _ask(self, call: Callable[..., Any], *args: Any, then: Callable[[Any], None]) -> None:
        if not self._stopped:
            future = self._pool.submit(call, *args)
            self._open[future] = then
            future.add_done_callback(self._done.put)

    def _work(self) -> None:
        while self._open:
            future = self._done.get()
            then = self._open.pop(future)
            then(future.result())

    def _settle(self) -> None:
        """After a failure: keep what is still answered, and leave what has not been asked yet."""
        self._stopped = True
        for future in self._open:
            future.cancel()
        for future, then in self._open.items():
            with suppress(CancelledError, PermalakeError, UnavailableError, RequestRejectedError):
                then(future.result())
        self._open.clear()
        self._flush()


def _row(
    kind: int,
    milestone: int,
    *,
    id: bytes | None = None,
    raw: bytes | None = None,
    link: bytes | None = None,
    state: BlockState | None = None,
) -> NodeRecord:
    return {
        "kind": int(kind),
        "milestone": milestone,
        "id": id,
        "raw": raw,
        "link": link,
        "state": None if state is None or state.state is None else int(state.state),
        "conflict": state.conflict if state else None,
        "number": state.white_flag_index if state else None,
        "origin": "",
    }
