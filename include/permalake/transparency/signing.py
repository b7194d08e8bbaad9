"""Signing what is published: manifests of the changed days, appended to the log of the warehouse."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import date
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.lake.advisory_locks import AdvisoryLock
from permalake.lake.database import Database
from permalake.lake.identity import catalog_id
from permalake.lake.maintenance.tidy import networks_of
from permalake.lake.published import state_in
from permalake.lake.state import now as present_time
from permalake.lake.state import publications, signed_logs
from permalake.transparency.copies import LakeCopy
from permalake.transparency.keys import RUNBOOK, signing_key
from permalake.transparency.log import CHECKPOINT, Entry, InvalidLogError, SignedLog, append, read_log
from permalake.transparency.manifest import (
    KINDS_WITH_DAYS,
    ManifestOfDay,
    SignableState,
    SignedDomain,
    make_manifest,
    published_state,
    says_the_same,
)
from permalake.transparency.notes import Checkpoint, SignerKey, VerifierKey
from permalake.transparency.places import SMALL, FolderPlace

FOLDER = "_log"
"""The log's folder in the warehouse."""
_TRIES = 20
DomainOf = Callable[[str], SignedDomain]


def sign_all(settings: Settings, database: Database, domain_of: DomainOf) -> tuple[Entry, ...]:
    """Sign the published days of every network of the lake."""
    return tuple(
        entry
        for network in networks_of(database)
        for entry in sign_published(settings, database, domain_of(network), network)
    )


def signed_lake(
    settings: Settings, database: Database, domain_of: DomainOf
) -> tuple[LakeCopy, VerifierKey | None]:
    """Sign what is not signed yet; return the lake as a copy to be checked, and this machine's public key.

    The copy is of one moment, though others go on publishing: its log has what its tables have.

    Raises:
        PermalakeError: if others keep on publishing.
    """
    key = signing_key()
    place = FolderPlace(settings.lake.warehouse)
    for _ in range(_TRIES):
        sign_all(settings, database, domain_of)
        with database.read() as connection:
            before = _with_days(connection)
        note = place.read(f"{FOLDER}/{CHECKPOINT}")
        with database.read() as connection:
            after, tables = _with_days(connection), state_in(connection)
        if before == after and (key is None or after[1] == 0):
            copy = LakeCopy(_LogAt(place.location, note) if note else place, FOLDER, tables)
            return copy, key.verifier if key else None
    raise PermalakeError("others kept on publishing while the lake was read; try again")


class _LogAt(FolderPlace):
    """A warehouse with the log as of one of its checkpoints."""

    def __init__(self, location: str, note: bytes) -> None:
        super().__init__(location)
        self._note = note

    def read(self, path: str, limit: int = SMALL) -> bytes | None:
        """Return a file's content; the checkpoint's is the one that was read first."""
        return self._note if path == f"{FOLDER}/{CHECKPOINT}" else super().read(path, limit)


def _with_days(connection: Connection) -> tuple[int, int]:
    """Return the last publication of days or carried tables, and how many of these are not signed."""
    unsigned = func.count() - func.count(publications.c.signed)
    query = select(func.coalesce(func.max(publications.c.id), 0), unsigned)
    [(last, count)] = connection.execute(query.where(publications.c.kind.in_(KINDS_WITH_DAYS))).all()
    return last, count


def sign_published(
    settings: Settings, database: Database, domain: SignedDomain, network: str
) -> tuple[Entry, ...]:
    """Append the manifests of a network's days published since its last entry; return the new entries.

    The publications of which the log then speaks are marked, those that changed nothing too: the feed waits
    for that. Without a key on this machine nothing happens. What a killed process left, the next call does.

    Raises:
        InvalidNoteError: if the log was signed by another key.
        InvalidLogError: if its files are damaged, or it is lost or older than it was.
        PermalakeError: if other processes kept on signing the same network.
    """
    key = signing_key()
    if key is None:
        return ()
    for _ in range(_TRIES):
        done = _sign_once(settings, database, domain, network, key)
        if done is not None:
            return done
    raise PermalakeError(f"{network}: others kept on signing; its next publication signs what is left")


def _sign_once(
    settings: Settings, database: Database, domain: SignedDomain, network: str, key: SignerKey
) -> tuple[Entry, ...] | None:
    """Sign a network's days; None, and nothing is signed, where another process was faster."""
    place = FolderPlace(settings.lake.warehouse)
    with database.read() as connection:
        origin = f"{key.name}/{catalog_id(connection)}"
        recorded = connection.execute(select(signed_logs).where(signed_logs.c.origin == origin)).first()
    log = read_log(place, FOLDER, [key.verifier])
    _check_kept(place, log, recorded)
    signed = _entries_of(log, network)
    now = published_state(database, network, max((entry.publication for entry in signed), default=0))
    manifests = _changed(settings, place, now, log, domain)
    if not manifests and not now.unsigned:
        return ()
    with database.write() as connection:
        AdvisoryLock.SIGNATURE.take(connection)
        if place.read(f"{FOLDER}/{CHECKPOINT}") != (log.note if log else None):
            log = read_log(place, FOLDER, [key.verifier])
        # A manifest tells which one it replaces, and must not be older than what others found to be signed.
        if _entries_of(log, network) != signed or _last_mark(connection, network) > now.publication:
            return None
        entries = _write(place, manifests)
        if entries:
            _remember(connection, append(place, FOLDER, log, entries, key=key, origin=origin))
        _mark(connection, now, is_new=not signed)
    return entries


def _check_kept(place: FolderPlace, log: SignedLog | None, recorded: Row[Any] | None) -> None:
    """Check that the log has only grown since it was signed last: another one of its name would be a fork."""
    if recorded is None:
        return
    if log is None or len(log.leaves) < recorded.size or log.root_at(recorded.size).hex() != recorded.root:
        raise InvalidLogError(
            f"{place.location}/{FOLDER} is not the log that was signed on {recorded.signed_at[:19]}Z with "
            f"{recorded.size:,} entries: restore it from an export or a backup; a new log needs a key with "
            f"another name, see {RUNBOOK}"
        )


def _remember(connection: Connection, checkpoint: Checkpoint) -> None:
    """Record how far the log goes."""
    connection.execute(delete(signed_logs).where(signed_logs.c.origin == checkpoint.origin))
    connection.execute(
        insert(signed_logs).values(
            origin=checkpoint.origin,
            size=checkpoint.size,
            root=checkpoint.root.hex(),
            signed_at=present_time(),
        )
    )


def _entries_of(log: SignedLog | None, network: str) -> list[Entry]:
    return [entry for entry in log.entries if entry.network == network] if log else []


def _changed(
    settings: Settings, place: FolderPlace, now: SignableState, log: SignedLog | None, domain: SignedDomain
) -> list[ManifestOfDay]:
    """Return the manifests of the days that now differ from their last ones."""
    latest = log.latest if log else {}
    changed = []
    for day in sorted(now.days):
        entry = latest.get((now.network, day.isoformat()))
        before = _manifest_of(place, entry) if entry else None
        manifest = make_manifest(settings, domain, now, day, before)
        if before is None or not says_the_same(before, manifest):
            changed.append(manifest)
    return changed


def _write(place: FolderPlace, manifests: list[ManifestOfDay]) -> tuple[Entry, ...]:
    """Write manifests; return the entries by which the log shall name them."""
    entries = []
    for manifest in manifests:
        publication = int(manifest.document["publication"])
        entry = Entry(manifest.network, manifest.day.isoformat(), publication, manifest.hex)
        place.write(f"{FOLDER}/{entry.path}", manifest.content)
        cached = {"manifest": entry.manifest, "files": manifest.files}
        place.write(_files_path(entry.network, entry.date), json.dumps(cached).encode())
        entries.append(entry)
    return tuple(entries)


def _last_mark(connection: Connection, network: str) -> int:
    last = select(func.max(publications.c.signed)).where(publications.c.network == network)
    return connection.execute(last).scalar() or 0


def _mark(connection: Connection, now: SignableState, *, is_new: bool) -> None:
    """Mark the publications of which the log speaks now; all of them, if it is new to the network."""
    here = (publications.c.network == now.network) & (publications.c.id <= now.publication)
    marked = here if is_new else here & publications.c.signed.is_(None)
    connection.execute(update(publications).where(marked).values(signed=now.publication))


def _manifest_of(place: FolderPlace, entry: Entry) -> ManifestOfDay:
    content = place.read(f"{FOLDER}/{entry.path}")
    if content is None:
        raise InvalidLogError(f"{place.location}/{FOLDER}/{entry.path} is missing; restore it from a copy")
    if hashlib.sha256(content).hexdigest() != entry.manifest:
        raise InvalidLogError(f"{place.location}/{FOLDER}/{entry.path} is damaged; restore it from a copy")
    cached = json.loads(place.read(_files_path(entry.network, entry.date)) or b"{}")
    # It may be of a manifest that never came into the log, or of a log that was replaced.
    files = cached["files"] if cached.get("manifest") == entry.manifest else {}
    return ManifestOfDay(entry.network, date.fromisoformat(entry.date), json.loads(content), files)


def _files_path(network: str, day: str) -> str:
    """Return the file that says of which data files a day's last manifest is: a cache that may be deleted."""
    return f"{FOLDER}/files/{network}/{day}.json"
