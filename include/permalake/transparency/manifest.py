"""The manifest of a day: its tables with counts and digests, what was verified, what is missing.

A manifest is JSON in the canonical form of RFC 8785. Its SHA-256 stands in the log.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset as ds
from sqlalchemy import select

from permalake.config import Settings
from permalake.contracts import QUARANTINE, Table
from permalake.lake.counts import files_between
from permalake.lake.database import Database
from permalake.lake.identity import catalog_id
from permalake.lake.leases import CARRY, DAYS
from permalake.lake.published import LakeState, dataset, last_publication, state_in
from permalake.lake.state import days, publications
from permalake.transparency.digest import canonical_json, table_digest
from permalake.transparency.documents import Evidence, Manifest, SignedTable
from permalake.version import VERSION

FORMAT = "permalake-manifest-1"
Tables = Mapping[str, Mapping[str, Any]]


Rows = Callable[[str], ds.Dataset]
"""Returns a day's rows of a table."""
KINDS_WITH_DAYS = (DAYS, CARRY)
"""Kinds of publications that change rows of days."""


class SignedDomain(Protocol):
    """The facts of a domain that a manifest needs.

    ``raw_tables``: the tables that hold the input's bytes, from which all others follow. ``evidence_of``
    returns how a day's input was verified, as JSON.
    """

    @property
    def tables(self) -> Mapping[str, Table]:
        """Contracts by table name."""

    @property
    def raw_tables(self) -> tuple[str, ...]:
        """Names of the tables that hold the input's bytes."""

    def evidence_of(self, settings: Settings, network: str, rows: Rows) -> Evidence:
        """Return how a day's input was verified."""


@dataclass(frozen=True)
class SignableState:
    """All that a network's manifests are made of, as of one publication.

    ``unsigned``: whether a publication of the network is not marked as signed.
    """

    network: str
    lake_id: str
    publication: int
    tables: LakeState
    days: Mapping[date, Mapping[str, Any]]
    unsigned: bool


def published_state(database: Database, network: str, after: int) -> SignableState:
    """Read a network's published state, with the days that publications above ``after`` touched."""
    with database.read() as connection:
        touched = select(days).join(
            publications,
            (publications.c.network == days.c.network)
            & days.c.date.between(publications.c.start, publications.c.end),
        )
        rows = connection.execute(
            touched.where(
                days.c.network == network,
                publications.c.id > after,
                publications.c.kind.in_(KINDS_WITH_DAYS),
                days.c.published_at.is_not(None),
            ).distinct()
        ).mappings()
        unsigned = select(publications.c.id).where(
            publications.c.network == network, publications.c.signed.is_(None)
        )
        return SignableState(
            network,
            catalog_id(connection) or "",
            last_publication(connection),
            state_in(connection),
            {row["date"]: dict(row) for row in rows},
            connection.execute(unsigned.limit(1)).first() is not None,
        )


def hashed_tables(domain: SignedDomain) -> Iterator[Table]:
    """Yield the tables whose rows of a day a manifest covers: all but side tables."""
    yield from (table for table in domain.tables.values() if table.commit != "side")


@dataclass(frozen=True)
class ManifestOfDay:
    """A manifest, with the data files that its digests were made from.

    ``files``: by table, a hash over the names of the day's data files.
    """

    network: str
    day: date
    document: Manifest
    files: Mapping[str, str]

    @property
    def content(self) -> bytes:
        """The manifest's bytes."""
        return canonical_json(self.document)

    @property
    def hex(self) -> str:
        """SHA-256 of the manifest."""
        return hashlib.sha256(self.content).hexdigest()


def make_manifest(
    settings: Settings,
    domain: SignedDomain,
    state: SignableState,
    day: date,
    before: ManifestOfDay | None,
) -> ManifestOfDay:
    """Make the manifest of a published day.

    ``before``: the last one of the day; tables whose data files are the same keep their digests.
    """
    network = state.network
    tables: dict[str, SignedTable] = {}
    files: dict[str, str] = {}
    for table in hashed_tables(domain):
        location = state.tables.get((network, table.name))
        paths = [file.file_path for file in files_between(location, day, day)] if location else []
        if not paths:
            continue
        files[table.name] = hashlib.sha256("\n".join(sorted(paths)).encode()).hexdigest()
        if before and before.files.get(table.name) == files[table.name]:
            tables[table.name] = before.document["tables"][table.name]
        else:
            digest = table_digest(dataset(table, location, day, day), table).document
            tables[table.name] = {**digest, "kind": table.commit}

    def rows(name: str) -> ds.Dataset:
        return dataset(domain.tables[name], state.tables.get((network, name)), day, day)

    row = state.days[day]
    document: Manifest = {
        "format": FORMAT,
        "lake": state.lake_id,
        "network": network,
        "date": day.isoformat(),
        "publication": state.publication,
        "published_at": row["published_at"],
        "software": f"permalake {VERSION}",
        "replaces": before.hex if before else None,
        "tables": tables,
        "raw": {name: tables[name]["digest"] for name in domain.raw_tables if name in tables},
        "verified": domain.evidence_of(settings, network, rows),
        "quarantine": _reasons(rows(QUARANTINE.name)),
        "gaps": json.loads(row["gaps"] or "[]"),
        "notes": json.loads(row["notes"] or "[]"),
    }
    return ManifestOfDay(network, day, document, files)


def says_the_same(manifest: ManifestOfDay, other: ManifestOfDay) -> bool:
    """Return whether two manifests of a day differ at most in when and by what they were made."""
    made = ("publication", "published_at", "software", "replaces")
    first, second = ({k: v for k, v in each.document.items() if k not in made} for each in (manifest, other))
    return first == second


def _reasons(rejected: ds.Dataset) -> dict[str, int]:
    counted = rejected.to_table(columns=["reason"]).group_by("reason").aggregate([([], "count_all")])
    return dict(sorted(zip(counted["reason"].to_pylist(), counted["count_all"].to_pylist(), strict=True)))


def counts(rows: pa.Table, column: str) -> dict[str, int]:
    """Return how many rows each value of a column has, the values as text."""
    values = rows.group_by(column).aggregate([([], "count_all")])
    pairs = zip(values[column].to_pylist(), values["count_all"].to_pylist(), strict=True)
    return {str(value): count for value, count in sorted(pairs)}
