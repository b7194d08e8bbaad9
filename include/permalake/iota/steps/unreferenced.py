"""Messages that no milestone references yet, in the live head: added as the node lists them.

All rows of the table lie in one file, of the first day that may have them: a batch, or a walk from the tips,
writes it anew. So a message leaves in the transaction that adds it as a referenced one, or that publishes a
day that may have it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from permalake.config.networks import NetworkSettings
from permalake.errors import PermalakeError
from permalake.iota.contracts.unreferenced import UNREFERENCED_MESSAGES
from permalake.iota.sources.node import NodeSource
from permalake.iota.sources.node_tips import WalkLimits
from permalake.iota.tables.unreferenced_messages import ROWS, above, unreferenced_messages
from permalake.lake.head import Head
from permalake.lake.task_files import WrittenFile

NAME = UNREFERENCED_MESSAGES.name
AGE = timedelta(days=1)
"""The time that a message is in the head while no milestone references it: that of the permanode's rows."""
_PAUSE_SECONDS = 3.0
_MOST = 20_000
_MOST_PASSED = 500_000
_LOG = logging.getLogger("permalake")


class UnreferencedMessages:
    """The messages above a head's last milestone. ``walk_seconds``: how long a walk may take; 0: none."""

    def __init__(self, head: Head, source: NodeSource, network: NetworkSettings, walk_seconds: float) -> None:
        self._head, self._source, self._network = head, source, network
        self._walk_seconds = walk_seconds
        self._passed: dict[bytes, None] = {}  # ids at which no walk goes on, the latest at the end
        self._has_recalled = False
        self._next = 0.0

    def blocks(self) -> dict[bytes, bytes]:
        """Return the bytes of the messages, by id."""
        rows, _ = self._rows()
        return _by_id(rows)

    def after(
        self, message_ids: pa.ChunkedArray, last: int, first_day: date
    ) -> tuple[list[WrittenFile], set[str]]:
        """Write what remains unreferenced once milestones up to ``last`` are in the head.

        Args:
            message_ids: What they reference, as hex.
            last: The last of them.
            first_day: The first day that may have the rest.

        Returns:
            The new file, if any, which is not part of the head yet, and the paths of those that it replaces.
        """
        self._pass(message_ids.to_pylist())
        rows, paths = self._rows()
        if not paths:
            return [], paths
        others = self._young(rows.filter(pc.invert(pc.is_in(rows["message_id"], message_ids))))
        return self._head.write(NAME, above(others, last, first_day)), paths

    def look(self, last: int) -> None:
        """Walk from the node's tips, and add what is new. A node that fails says nothing of the head.

        ``last`` is the last milestone of both head and node.

        Raises:
            PermalakeError: if others kept on changing the head.
        """
        if not self._walk_seconds or time.monotonic() < self._next:
            return
        self._recall(last)
        rows, paths = self._rows()
        try:
            fresh = self._fresh(rows, last)
            young = self._young(rows)
            is_changed = fresh.num_rows > 0 or young.num_rows < rows.num_rows
            day = self._first_day(last) if is_changed else None
        except PermalakeError as error:
            _LOG.info("live %s: no look above milestone %d: %s", self._head.network, last, error)
            day = None
        if day is not None:
            added = self._head.write(NAME, above(pa.concat_tables([young, fresh]), last, day))
            self._head.commit(added, {NAME: paths})
            log_values = (self._head.network, fresh.num_rows, last)
            _LOG.info("live %s: %d messages more above milestone %d", *log_values)
        self._next = time.monotonic() + _PAUSE_SECONDS

    def _rows(self) -> tuple[pa.Table, set[str]]:
        """Return the rows that the head has now, and the paths of their files."""
        files = self._head.files(NAME)
        rows = self._head.scan(NAME, files).to_table() if files else ROWS.empty_table()
        return rows, {file.file_path for file in files}

    def _fresh(self, rows: pa.Table, last: int) -> pa.Table:
        """Return rows of what a walk finds beside ``rows``."""
        held = _by_id(rows)
        limits = WalkLimits(time.monotonic() + self._walk_seconds, max(_MOST - len(held), 0))
        cone = self._source.above(last, held, self._passed, limits)
        if cone is None:
            return ROWS.empty_table()
        fresh = unreferenced_messages(cone.unreferenced, self._network.protocol, datetime.now(UTC))
        sound = set(fresh["message_id"].to_pylist())
        self._pass(message_id.hex() for message_id in cone.referenced)
        self._pass(text for message_id in cone.unreferenced if (text := message_id.hex()) not in sound)
        return fresh

    def _first_day(self, last: int) -> date:
        """Return the first day that may have what is above a milestone: its own, unless that is published."""
        day, published = self._source.date_of(last), self._head.newest_published()
        return max(day, published + timedelta(days=1)) if published else day

    def _young(self, rows: pa.Table) -> pa.Table:
        """Return the rows that are not too old; the others are not looked for again."""
        oldest = pa.scalar(datetime.now(UTC) - AGE, ROWS.field("seen_at").type)
        is_young = pc.greater_equal(rows["seen_at"], oldest)
        self._pass(rows.filter(pc.invert(is_young))["message_id"].to_pylist())
        return rows.filter(is_young)

    def _recall(self, last: int) -> None:
        """Pass what the last milestones reference, once: a node that restarts may list it as unreferenced."""
        if self._has_recalled:
            return
        recent = pc.field("milestone_index") > last - self._network.look_back
        for rows in (self._head.rows("messages"), self._head.published_rows("messages")):
            self._pass(rows.to_table(["message_id"], filter=recent)["message_id"].to_pylist())
        self._has_recalled = True

    def _pass(self, message_ids: Iterable[str]) -> None:
        self._passed.update(dict.fromkeys(map(bytes.fromhex, message_ids)))
        too_many = max(len(self._passed) - _MOST_PASSED, 0)
        for message_id in list(islice(self._passed, too_many)):
            del self._passed[message_id]


def _by_id(rows: pa.Table) -> dict[bytes, bytes]:
    ids, messages = (rows[name].to_pylist() for name in ("message_id", "message"))
    return dict(zip(map(bytes.fromhex, ids), messages, strict=True))
