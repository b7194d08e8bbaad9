"""Walks from a node's tips down to what milestones reference: the blocks that none references yet.

A node lists a few of its tips at a time, so a walk finds a part; those that follow find the rest. What a node
does not answer, or not in time, is left to the next walk.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from permalake.iota.sources.node_answers import BlockState, parents_of
from permalake.iota.sources.node_api import NodeApi
from permalake.net.http import RequestRejectedError, UnavailableError

_FAILURES = (UnavailableError, RequestRejectedError)
_Answer = tuple[BlockState, bytes | None] | None


@dataclass(slots=True)
class TipCone:
    """The result of a walk: the bytes of ``unreferenced`` blocks and the ids of ``referenced`` ones."""

    unreferenced: dict[bytes, bytes] = field(default_factory=dict)
    referenced: set[bytes] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class WalkLimits:
    """Until when a walk may go on, as of :func:`time.monotonic`, and how many blocks it may find."""

    until: float
    blocks: int


class TipWalk:
    """One walk. ``held``: bytes of unreferenced blocks by id; ``referenced``: where it need not go on."""

    def __init__(
        self,
        api: NodeApi,
        pool: ThreadPoolExecutor,
        held: Mapping[bytes, bytes],
        referenced: Collection[bytes],
        limits: WalkLimits,
    ) -> None:
        self._api, self._pool, self._held = api, pool, held
        self._referenced, self._limits = referenced, limits
        self._visited: set[bytes] = set()
        self._open: dict[Future[_Answer], bytes] = {}
        self._cone = TipCone()

    def run(self) -> TipCone:
        """Walk until everything is seen or a limit is reached; empty if the node lists no tips."""
        try:
            self._visit(self._api.tips())
        except _FAILURES:
            return self._cone
        while self._open and not self._is_at_limit():
            left = max(self._limits.until - time.monotonic(), 0.0)
            done, _ = wait(self._open, timeout=left, return_when=FIRST_COMPLETED)
            for future in done:
                self._take(self._open.pop(future), future)
        for future in self._open:
            future.cancel()
        return self._cone

    def _is_at_limit(self) -> bool:
        is_late = time.monotonic() >= self._limits.until
        return is_late or len(self._cone.unreferenced) >= self._limits.blocks

    def _visit(self, block_ids: list[bytes]) -> None:
        """Go on at some blocks: through those that are held, and by asking for the others."""
        todo = block_ids
        while todo:
            block_id = todo.pop()
            if block_id in self._visited or block_id in self._referenced:
                continue
            self._visited.add(block_id)
            if (raw := self._held.get(block_id)) is not None:
                todo += parents_of(raw, self._api.protocol)
            else:
                self._open[self._pool.submit(self._look, block_id)] = block_id

    def _look(self, block_id: bytes) -> _Answer:
        state = self._api.state(block_id)
        if state is None:
            return None
        return state, self._api.block(block_id) if state.milestone is None else None

    def _take(self, block_id: bytes, future: Future[_Answer]) -> None:
        try:
            answer = future.result()
        except _FAILURES:
            return
        if answer is None:
            return
        state, raw = answer
        if state.milestone is not None:
            self._cone.referenced.add(block_id)
        elif raw is not None and len(self._cone.unreferenced) < self._limits.blocks:
            self._cone.unreferenced[block_id] = raw
            self._visit(parents_of(raw, self._api.protocol))
