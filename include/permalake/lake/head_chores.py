"""Chores that keep a live head small: its many small files become few, and those that nobody needs go.

Of a table's day, files of about one size are merged as soon as there are :data:`FAN` of them, so that a row
is written again a few times at most.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime

from pyiceberg.manifest import DataFile

from permalake.lake.catalog import metadata_files_since, open_table
from permalake.lake.counts import day_of
from permalake.lake.head import Head
from permalake.lake.head_edit import KEPT
from permalake.lake.maintenance.history import served_states
from permalake.lake.maintenance.needed import Root, needed
from permalake.lake.maintenance.storage import Stored, listing, remove
from permalake.net.object_storage import inner_path

FAN = 16


def merge(head: Head) -> int:
    """Merge files of about one size where there are many; return how many are gone."""
    gone = 0
    for name in head.contracts:
        for group in fragmented_files(head.files(name)):
            replaced = {name: {file.file_path for file in group}}
            head.commit(head.write(name, head.scan(name, group).to_table()), replaced)
            gone += len(group)
    return gone


def sweep(head: Head) -> int:
    """Remove files that no reader can need any more; return how many.

    Only who holds the network's lease of kind ``LIVE`` may do it, between two batches.
    """
    listed = needless(head)
    remove(head.place, listed)
    return len(listed)


def needless(head: Head) -> list[Stored]:
    """Return the files that no reader can need any more, none of them young.

    A reader may use a state of the head for :data:`KEPT` from when it was replaced, however old it is.
    """
    since = datetime.now(UTC) - KEPT
    listed = listing(head.place)
    current = head.locations()
    roots = [Root(name, at, since=since) for name, at in current.items()]
    with head.database.read() as connection:
        stored = served_states(connection, head.network)
    roots += [Root(name, at) for name, at in stored if at.startswith(f"{head.place}/")]
    kept = needed(roots)
    if kept.lacking:
        return []
    keep = set().union(*kept.paths.values())
    for at in current.values():
        keep |= {inner_path(file) for file in metadata_files_since(open_table(at), since)}
    return [file for file in listed if file.written < since and file.path not in keep]


def fragmented_files(data_files: Sequence[DataFile]) -> list[list[DataFile]]:
    """Return groups of at least :data:`FAN` files of one day whose numbers of rows are about the same."""
    groups: dict[tuple[date, int], list[DataFile]] = defaultdict(list)
    for file in data_files:
        groups[day_of(file), int(math.log(max(file.record_count, 1), FAN))].append(file)
    return [group for group in groups.values() if len(group) >= FAN]
