"""Signing what is published: manifests of the changed days, appended to the log of the warehouse."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import date

from sqlalchemy import Connection, func, select, update

from permalake.config import Settings
from permalake.lake.database import Database
from permalake.lake.maintenance import networks_of
from permalake.lake.published import state
from permalake.lake.state import publications
from permalake.transparency.copies import LakeCopy
from permalake.transparency.keys import signing_key
from permalake.transparency.log import Entry, InvalidLogError, SignedLog, append, read_log
from permalake.transparency.manifest import (
    ManifestOfDay,
    SignableState,
    SignedDomain,
    make_manifest,
    published_state,
    says_the_same,
)
from permalake.transparency.notes import SignerKey, VerifierKey
from permalake.transparency.places import FolderPlace

FOLDER = "_log"
"""The log's folder in the warehouse."""
_LOCK = 7_365_213  # any number that no other advisory lock of the database uses
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
    """Sign what is not signed yet; return the lake as a copy to be checked, and this machine's public key."""
    sign_all(settings, database, domain_of)
    key = signing_key()
    copy = LakeCopy(FolderPlace(settings.lake.warehouse), FOLDER, state(database))
    return copy, key.verifier if key else None


def sign_published(
    settings: Settings, database: Database, domain: SignedDomain, network: str
) -> tuple[Entry, ...]:
    """Append the manifests of a network's days published since its last entry; return the new entries.

    The publications of which the log then speaks are marked, those that changed nothing too: the feed waits
    for that. Without a key on this machine nothing happens. What a killed process left, the next call does.

    Raises:
        InvalidNoteError: if the log was signed by another key.
        InvalidLogError: if its files are damaged.
    """
    key = signing_key()
    if key is None:
        return ()
    place = FolderPlace(settings.lake.warehouse)
    log = read_log(place, FOLDER, [key.verifier])
    entries = log.entries if log else ()
    signed = max((entry.publication for entry in entries if entry.network == network), default=0)
    now = published_state(database, network, signed)
    manifests = _changed(settings, place, now, log, domain)
    if not manifests and not now.unsigned:
        return ()
    with database.write() as connection:
        if connection.dialect.name == "postgresql":  # SQLite's writers wait for each other anyway
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        done = _append(place, key, f"{key.name}/{now.lake_id}", manifests)
        _mark(connection, now, is_new=not signed)
    return done


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


def _append(
    place: FolderPlace, key: SignerKey, origin: str, manifests: list[ManifestOfDay]
) -> tuple[Entry, ...]:
    """Append what no other process has appended since, and write the manifests before the log names them."""
    log = read_log(place, FOLDER, [key.verifier])
    latest: Mapping[tuple[str, str], Entry] = log.latest if log else {}
    entries = []
    for manifest in manifests:
        publication = int(manifest.document["publication"])
        entry = Entry(manifest.network, manifest.day.isoformat(), publication, manifest.hex)
        logged = latest.get((entry.network, entry.date))
        if logged and logged.publication >= publication:
            continue
        place.write(f"{FOLDER}/{entry.path}", manifest.content)
        cached = {"manifest": entry.manifest, "files": manifest.files}
        place.write(_files_path(entry.network, entry.date), json.dumps(cached).encode())
        entries.append(entry)
    if entries:
        append(place, FOLDER, log, entries, key=key, origin=origin)
    return tuple(entries)


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
