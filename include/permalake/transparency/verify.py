"""Checking a copy of the lake: the log's signature and growth, the manifests, the digest of every table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from permalake.contracts import Table
from permalake.errors import ConfigError
from permalake.transparency.copies import Copy, DamagedCopyError, TableOf, read_manifest
from permalake.transparency.digest import counted_columns, order_of, table_digest
from permalake.transparency.log import CHECKPOINT, PUBLIC_KEY, Entry, InvalidLogError, SignedLog, read_log
from permalake.transparency.notes import VerifierKey
from permalake.transparency.seen import SeenLog, check_consistent, remember, seen_logs


@dataclass
class Checked:
    """What was compared, by network.

    Attributes:
        log: The log, which agrees with its checkpoint.
        key: The key that signed it.
        trust: Where that key is known from, in words.
        seen: The log as this machine saw it before, if it did.
        evidence: How the last checked day of each network was verified, by its manifest.
        unread: Tables of manifests that this version does not know.
    """

    log: SignedLog
    key: VerifierKey
    trust: str
    seen: SeenLog | None
    days: Counter[str] = field(default_factory=Counter)
    tables: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    evidence: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)


Wanted = Callable[[Entry], bool]
"""Whether an entry's day is to be checked."""


def verify(
    copy: Copy,
    table_of: TableOf,
    *,
    key: VerifierKey | None = None,
    wanted: Wanted = lambda _: True,
    progress: Callable[[str], None] = lambda _: None,
) -> Checked:
    """Check a copy, and remember its log.

    ``key``: the publisher's key; without it the one that this machine saw first, else the copy's own.

    Raises:
        PermalakeError: at the first difference, which it names: file, or table and day, what is there and
            what should be.
    """
    checked = open_checked(copy, key)
    latest = checked.log.latest
    for entry in checked.log.entries:
        if wanted(entry) and latest[entry.network, entry.date] != entry:
            read_manifest(copy, entry)
    for (network, day), entry in sorted(latest.items()):
        if not wanted(entry):
            continue
        progress(f"{network} {day}")
        _check_day(copy, entry, table_of, checked)
    if not checked.days:
        raise ConfigError("no day of the log is among those that were asked for")
    remember(checked.log, checked.key, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    return checked


def open_checked(copy: Copy, key: VerifierKey | None) -> Checked:
    """Read a copy's log, signed by a trusted key, and check that it only grew since it was seen."""
    seen = seen_logs()
    origin = _origin(copy)
    before = seen.get(origin)
    if key is not None:
        trust = "it is the key that was named"
    elif before is not None:
        key, trust = VerifierKey.parse(before.key), f"the key is the one that signed it on {before.at}"
    else:
        line = copy.place.read(f"{copy.folder}/{PUBLIC_KEY}")
        if line is None:
            raise ConfigError(
                f"{copy.place.location}: who signs this log is not known; name the key by --key"
            )
        key = VerifierKey.parse(line.decode(errors="replace"))
        trust = "the key came with the copy: compare it with the publisher's own word"
    log = read_log(copy.place, copy.folder, [key])
    if log is None:
        raise InvalidLogError(f"{copy.place.location}/{copy.folder}/{CHECKPOINT} is missing")
    if before is not None:
        check_consistent(log, before)
    return Checked(log, key, trust, before)


def _origin(copy: Copy) -> str:
    note = copy.place.read(f"{copy.folder}/{CHECKPOINT}")
    if note is None:
        raise InvalidLogError(
            f"{copy.place.location}/{copy.folder}/{CHECKPOINT} is missing: nothing is signed here; "
            "`permalake keys create` begins"
        )
    return note.partition(b"\n")[0].decode(errors="replace")


def _check_day(copy: Copy, entry: Entry, table_of: TableOf, checked: Checked) -> None:
    manifest = read_manifest(copy, entry)
    for name, said in sorted(manifest["tables"].items()):
        table = table_of(entry.network, name)
        if table is None:
            checked.unread.add(f"{entry.network}.{name}")
            continue
        _check_table(copy, entry, table, said)
        checked.tables[entry.network] += 1
        checked.rows[entry.network] += said["rows"]
    checked.days[entry.network] += 1
    checked.evidence[entry.network] = manifest["verified"]


def _check_table(copy: Copy, entry: Entry, table: Table, said: Mapping[str, Any]) -> None:
    where = f"{entry.network}.{table.name} of {entry.date}"
    stated = [list(column) for column in counted_columns(table)], list(order_of(table))
    if stated != (said["columns"], said["order"]):
        raise DamagedCopyError(
            f"{where}: its manifest has the columns of another version of Permalake; check it with that one"
        )
    with copy.rows(entry, table, said["digest"]) as rows:
        try:
            there = table_digest(rows, table)
        except (pa.ArrowException, KeyError, OSError) as error:
            raise DamagedCopyError(
                f"{where}: the rows cannot be read: {' '.join(str(error).split())}"
            ) from None
    if there.hex != said["digest"]:
        raise DamagedCopyError(
            f"{where}: there are {there.rows:,} rows with digest {there.hex[:16]}…, the manifest says "
            f"{said['rows']:,} with {said['digest'][:16]}…"
        )
