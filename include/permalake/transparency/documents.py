"""The documents of a signed lake: manifests, proofs, and the lists of exports and publications."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, NotRequired

from pydantic import StringConstraints
from typing_extensions import TypedDict

Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
"""In hex, as it becomes part of a file's name."""


class DigestParts(TypedDict):
    """The parts of the digest of a day's rows of a table."""

    block: int
    columns: list[list[str]]
    order: list[str]
    root: str
    rows: int


class SignedDigest(DigestParts):
    """The digest of a day's rows of a table, with its parts."""

    digest: Sha256


class SignedTable(SignedDigest):
    """A table in a manifest; ``kind`` is the commit of its contract."""

    kind: str


class SignedSettings(TypedDict):
    """The settings of an IOTA network from which its tables follow."""

    bech32_hrp: str
    chunk_size: int
    look_back: int
    transaction_signatures: bool


class MilestoneSpan(TypedDict):
    """The milestones of a day; null where it has none."""

    first: int | None
    last: int | None
    count: int


class SignedKey(TypedDict):
    """A key of a coordinator, and the milestones it signs."""

    key: str
    start: int
    end: int | None
    threshold: NotRequired[int | None]


class SignedCoordinator(TypedDict):
    """The keys of a coordinator that counted."""

    threshold: int | None
    keys: list[SignedKey]


def needed_keys(thresholds: Iterable[int | None]) -> str:
    """Return in words how many keys must sign, of the threshold of each key; one, where none is set."""
    counts = {threshold or 1 for threshold in thresholds} or {1}
    least, most = min(counts), max(counts)
    return str(most) if least == most else f"{least} to {most}"


class SignedGuardians(TypedDict):
    """A guardian set that signed messages of a day."""

    messages: int
    quorum: int
    guardians: list[str]


class Evidence(TypedDict):
    """The verification of a day's input: an IOTA network's has milestones, Wormhole's guardian sets."""

    rules: list[str]
    protocol: NotRequired[Literal["chrysalis", "stardust"] | None]
    settings: NotRequired[SignedSettings | None]
    milestones: NotRequired[MilestoneSpan]
    coordinator: NotRequired[SignedCoordinator | None]
    guardian_sets: NotRequired[dict[str, SignedGuardians]]


class Manifest(TypedDict):
    """The manifest of a day (docs/digests.md)."""

    format: str
    lake: str
    network: str
    date: str
    publication: int
    published_at: str
    software: str
    replaces: str | None
    tables: dict[str, SignedTable]
    raw: dict[str, str]
    verified: Evidence
    quarantine: dict[str, int]
    gaps: list[str]
    notes: list[str]


class CopiedFile(TypedDict):
    """A data file of a copy."""

    path: str
    bytes: int
    sha256: str


class ExportedFile(CopiedFile):
    """A data file in the list of an export."""

    network: str
    table: str
    date: str
    rows: int


class RowProof(TypedDict):
    """The proof that a row belongs to its table's day."""

    table: str
    block: str
    row: int
    index: int
    path: list[str]


class DayProof(TypedDict):
    """The proof that the manifest of a day is in the log; with ``row``, also of one of its rows."""

    format: str
    key: str
    checkpoint: str
    index: int
    path: list[str]
    publication: int
    manifest: Manifest
    row: NotRequired[RowProof]


class FeedTable(TypedDict):
    """A day of a table as it is now; the digest is null where it is not signed."""

    rows: int
    digest: str | None


class FeedDay(TypedDict):
    """A publication's changes to a day; the digest of its manifest is null where it is not signed."""

    date: str
    manifest: str | None
    tables: dict[str, FeedTable]


class FeedWithdrawn(TypedDict):
    """The tables that lost all rows of a day."""

    date: str
    tables: list[str]


class FeedWithheld(TypedDict):
    """A day that stays as it was, with the reason."""

    date: str
    reason: str


class FeedEntry(TypedDict):
    """A publication of the feed; null is what its release did not record."""

    number: int
    time: str
    kind: str
    network: str
    start: str
    end: str
    tables: list[str]
    days: list[FeedDay]
    withdrawn: list[FeedWithdrawn] | None
    withheld: list[FeedWithheld] | None
