"""Checking a copy of the lake: the log's signature and growth, the manifests, the digest of every table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import partial

import pyarrow.dataset as ds

from permalake.contracts import Table
from permalake.errors import ConfigError
from permalake.transparency.copies import (
    AbsentRowsError,
    Copy,
    DamagedCopyError,
    TableOf,
    as_signed,
    data_path,
    digest_there,
    read_manifest,
    widened,
)
from permalake.transparency.deep import Derivation, RawDay, check_derived
from permalake.transparency.documents import Evidence, Manifest, SignedTable
from permalake.transparency.log import CHECKPOINT, PUBLIC_KEY, Entry, InvalidLogError, SignedLog, read_log
from permalake.transparency.manifest import Rows
from permalake.transparency.notes import VerifierKey
from permalake.transparency.seen import SeenLog, check_consistent, check_place, remember, seen_logs


@dataclass
class Checked:
    """The compared parts, by network.

    Attributes:
        log: The log, which agrees with its checkpoint.
        key: The key that signed it.
        trust: Where that key is known from, in words.
        seen: The log as this machine saw it before, if it did.
        evidence: How the last checked day of each network was verified, by its manifest.
        unread: Tables of manifests that this version does not know.
        derivations: What derived the days of each network again, where that was asked for.
    """

    log: SignedLog
    key: VerifierKey
    trust: str
    seen: SeenLog | None
    days: Counter[str] = field(default_factory=Counter)
    tables: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    evidence: dict[str, Evidence] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    derivations: dict[str, Derivation] = field(default_factory=dict)


EntryFilter = Callable[[Entry], bool]
"""Whether an entry's day is to be checked."""
DerivationOf = Callable[[str], Derivation]
"""Returns what derives the days of a network again."""


def verify(
    copy: Copy,
    table_of: TableOf,
    *,
    key: VerifierKey | None = None,
    is_checked: EntryFilter = lambda _: True,
    derivation_of: DerivationOf | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Checked:
    """Check a copy, and remember its log.

    ``key``: the publisher's key; without it the one that this machine saw first, else the copy's own.
    ``derivation_of``: to derive the days again from their own raw bytes too.

    Raises:
        PermalakeError: at the first difference, which it names: file, or table and day, what is there and
            what should be.
    """
    checked = open_checked(copy, key)
    latest = checked.log.latest
    for entry in checked.log.entries:
        if is_checked(entry) and latest[entry.network, entry.date] != entry:
            read_manifest(copy, entry)
    signed: dict[tuple[str, str], Mapping[str, int] | None] = dict.fromkeys(latest)
    compared: list[str] = []
    for (network, day), entry in sorted(latest.items()):
        if not is_checked(entry):
            continue
        progress(f"{network} {day}")
        tables = _check_day(copy, entry, table_of, checked, derivation_of)["tables"]
        paths = {name: data_path(entry, name, said["digest"]) for name, said in tables.items()}
        signed[network, day] = {path: tables[name]["rows"] for name, path in paths.items()}
        compared += [path for name, path in paths.items() if table_of(network, name)]
    if not checked.days:
        raise ConfigError("no day of the log is among those that were asked for")
    copy.check_list(signed, compared)
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    remember(checked.log, checked.key, at, copy.place.location)
    return checked


def open_checked(copy: Copy, key: VerifierKey | None) -> Checked:
    """Read a copy's log, signed by a trusted key, and check that it only grew since it was seen.

    ``key`` is None where nobody named one: that of the first check counts, of a place as of a log.
    """
    seen = seen_logs()
    origin = _origin(copy)
    before = seen.get(origin)
    if key is not None:
        trust = "it was given to this check"
    else:
        check_place(copy.place.location, origin, seen)
        key, trust = _first_key(copy, before)
    log = read_log(copy.place, copy.folder, [key])
    if log is None:
        raise InvalidLogError(f"{copy.place.location}/{copy.folder}/{CHECKPOINT} is missing")
    if log.checkpoint.origin != origin:  # what was seen, and whose key it was, was looked up by that name
        raise InvalidLogError(
            f"{copy.place.location}/{copy.folder}/{CHECKPOINT} is of {origin[:80]!r} at one moment, of "
            f"{log.checkpoint.origin} at the next"
        )
    if before is not None:
        check_consistent(log, before)
    return Checked(log, key, trust, before)


def _first_key(copy: Copy, before: SeenLog | None) -> tuple[VerifierKey, str]:
    """Return the key that this machine saw first, else the one beside the copy, and whence it is known."""
    if before is not None:
        return VerifierKey.parse(before.key), f"it is the key that signed the log on {before.at}, too"
    line = copy.place.read(f"{copy.folder}/{PUBLIC_KEY}")
    if line is None:
        raise ConfigError(f"{copy.place.location}: who signs this log is not known; name the key by --key")
    key = VerifierKey.parse(line.decode(errors="replace"))
    return key, "the key came with the copy: compare it with the publisher's own word"


def _origin(copy: Copy) -> str:
    note = copy.place.read(f"{copy.folder}/{CHECKPOINT}")
    if note is None:
        raise InvalidLogError(
            f"{copy.place.location}/{copy.folder}/{CHECKPOINT} is missing: nothing is signed here; "
            "`permalake keys create` begins"
        )
    return note.partition(b"\n")[0].decode(errors="replace")


def _check_day(
    copy: Copy, entry: Entry, table_of: TableOf, checked: Checked, derivation_of: DerivationOf | None
) -> Manifest:
    manifest = read_manifest(copy, entry)
    contracts: dict[str, Table] = {}
    with ExitStack() as opened:
        rows: dict[str, ds.Dataset] = {}
        for name, said in sorted(manifest["tables"].items()):
            table = table_of(entry.network, name)
            if table is None:
                checked.unread.add(f"{entry.network}.{name}")
                continue
            # A derivation reads the tables again: what came over the network stays until the day is done.
            signed = as_signed(table, said, _where(entry, table))
            with ExitStack() as open_copies:
                table_rows = open_copies.enter_context(copy.rows(entry, signed, said["digest"]))
                _check_table(table_rows, entry, signed, said)
                if derivation_of is not None:
                    rows[name], contracts[name] = widened(table_rows, table), signed
                    opened.enter_context(open_copies.pop_all())
            checked.tables[entry.network] += 1
            checked.rows[entry.network] += said["rows"]
        if derivation_of is not None:
            if entry.network not in checked.derivations:
                checked.derivations[entry.network] = derivation_of(entry.network)
            derivation = checked.derivations[entry.network]
            contracts = _contracts(derivation, entry.network, table_of) | contracts
            day = RawDay(date.fromisoformat(entry.date), manifest, _rows_of(rows, contracts))
            before = partial(_day_before, copy, entry, table_of, checked.log, opened)
            check_derived(derivation, day, before, contracts, entry.network)
    checked.days[entry.network] += 1
    checked.evidence[entry.network] = manifest["verified"]
    return manifest


def _contracts(derivation: Derivation, network: str, table_of: TableOf) -> dict[str, Table]:
    named = {name: table_of(network, name) for name in derivation.tables}
    return {name: table for name, table in named.items() if table is not None}


def _rows_of(rows: Mapping[str, ds.Dataset], contracts: Mapping[str, Table]) -> Rows:
    def of(name: str) -> ds.Dataset:
        dataset = rows.get(name)
        return ds.dataset(contracts[name].arrow.empty_table()) if dataset is None else dataset

    return of


def _day_before(
    copy: Copy, entry: Entry, table_of: TableOf, log: SignedLog, opened: ExitStack
) -> RawDay | None:
    """Return the raw tables of the last day before with input, as signed; None where the copy lacks them."""
    earlier = [
        candidate
        for candidate in log.latest.values()
        if candidate.network == entry.network and candidate.date < entry.date
    ]
    for other in sorted(earlier, key=lambda candidate: candidate.date, reverse=True):
        manifest = read_manifest(copy, other)
        if any(manifest["tables"][name]["rows"] for name in manifest["raw"]):
            return _raw_rows(copy, other, manifest, table_of, opened)
    return None


def _raw_rows(
    copy: Copy, other: Entry, manifest: Manifest, table_of: TableOf, opened: ExitStack
) -> RawDay | None:
    contracts: dict[str, Table] = {}
    rows: dict[str, ds.Dataset] = {}
    for name in manifest["raw"]:
        table = table_of(other.network, name)
        said = manifest["tables"][name]
        if table is None:
            return None
        signed = as_signed(table, said, _where(other, table))
        try:
            table_rows = opened.enter_context(copy.rows(other, signed, said["digest"]))
        except AbsentRowsError:
            return None
        _check_table(table_rows, other, signed, said)
        rows[name], contracts[name] = widened(table_rows, table), signed
    return RawDay(date.fromisoformat(other.date), manifest, _rows_of(rows, contracts))


def _where(entry: Entry, table: Table) -> str:
    return f"{entry.network}.{table.name} of {entry.date}"


def _check_table(rows: ds.Dataset, entry: Entry, table: Table, said: SignedTable) -> None:
    where = _where(entry, table)
    there = digest_there(rows, table, where)
    if there.hex != said["digest"]:
        raise DamagedCopyError(
            f"{where}: there are {there.rows:,} rows with digest {there.hex[:16]}…, the manifest says "
            f"{said['rows']:,} with {said['digest'][:16]}…"
        )
