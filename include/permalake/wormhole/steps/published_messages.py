"""Which messages are published, for a head that asks at every batch.

An emitter counts its messages upwards: what is above all that is published of it needs no search. The first
question reads the keys of every day, later ones those of the files that have come since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from permalake.engine.connection import connect
from permalake.lake.catalog import locations, open_table
from permalake.lake.counts import files
from permalake.lake.head import Head
from permalake.lake.state import PUBLISHED

_TABLE = "message_publication"
_LAST = "SELECT emitter_chain || ':' || emitter_address, max(sequence) FROM messages GROUP BY ALL"
_TWICE = "SELECT DISTINCT row_key FROM messages SEMI JOIN held USING (row_key)"
_MEMORY = "512MiB"


class PublishedMessages:
    """The messages of a head's network that are published."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._location: str | None = None
        self._read_paths: set[str] = set()
        self._last: dict[str, int] = {}  # too high after a rebuild without its message: one search in vain
        self._twice: set[str] = set()

    def in_head(self) -> list[str]:
        """Return the messages that the head has of another day than that which was published since.

        A day takes its own messages out of the head as it is published.
        """
        self._follow()
        if self._twice:
            self._twice &= set(self._held()["row_key"].to_pylist())
        return sorted(self._twice)

    def among(self, messages: Iterable[str]) -> list[str]:
        """Return those of some messages (row keys) that are published on some day."""
        maybe = [key for key in messages if self._may_be_published(key)]
        return self.rows(_TABLE, maybe, ["row_key"])["row_key"].to_pylist() if maybe else []

    def rows(self, name: str, messages: Sequence[str], columns: list[str] | None = None) -> pa.Table:
        """Return the published rows of some messages; ``columns``: these alone."""
        if not messages:
            return self._head.contracts[name].arrow.empty_table()
        published = self._head.published_rows(name, every_day=True)
        return published.to_table(columns, filter=pc.field("row_key").isin(messages))

    def _may_be_published(self, key: str) -> bool:
        emitter, _, sequence = key.rpartition(":")  # bytes that show no message have a hash, without emitter
        return emitter in self._last and int(sequence) <= self._last[emitter]

    def _held(self) -> pa.Table:
        return self._head.rows(_TABLE).to_table(["row_key"])

    def _follow(self) -> None:
        """Learn each emitter's last message, and what the head has too, from files that were not read yet."""
        with self._head.database.read() as connection:
            location = locations(connection, PUBLISHED, self._head.network).get(_TABLE)
        if location == self._location:
            return
        present = list(files(open_table(location))) if location else []
        come = [file for file in present if file.file_path not in self._read_paths]
        if come:
            with connect() as connection:
                connection.execute(f"SET memory_limit = '{_MEMORY}'; SET threads = 1")
                connection.register("held", self._held())
                connection.register("messages", self._head.scan(_TABLE, come))
                for emitter, last in connection.sql(_LAST).fetchall():
                    self._last[emitter] = max(int(last), self._last.get(emitter, 0))
                self._twice.update(key for (key,) in connection.sql(_TWICE).fetchall())
        self._read_paths = {file.file_path for file in present}
        self._location = location
