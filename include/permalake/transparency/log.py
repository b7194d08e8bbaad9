"""The append-only log of manifests: tiles as C2SP ``tlog-tiles`` has them, below one folder.

``checkpoint`` is a signed note, ``tile/entries/N`` holds 256 entries, ``tile/L/N`` 256 hashes of level L; the
last of each is partial (``.p/W``) until it is full. Whoever reads checks the tiles against the checkpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date

from permalake.errors import PermalakeError
from permalake.transparency import merkle
from permalake.transparency.digest import canonical_json
from permalake.transparency.notes import Checkpoint, SignerKey, VerifierKey, open_note, read_checkpoint
from permalake.transparency.places import FolderPlace, Place

TILE = 256
_NETWORK = re.compile(r"[a-z0-9_-]+")
_DIGEST = re.compile(r"[0-9a-f]{64}")
CHECKPOINT = "checkpoint"
PUBLIC_KEY = "key"
"""The public key, beside the checkpoint."""


class InvalidLogError(PermalakeError):
    """Raised if files of a log are missing, damaged, or are not what its checkpoint says."""


@dataclass(frozen=True)
class Entry:
    """An entry of the log: the manifest of a day.

    Attributes:
        date: UTC day as text.
        publication: The publication that the manifest describes, and that its file is named after.
        manifest: SHA-256 of the manifest's file, in hex.
    """

    network: str
    date: str
    publication: int
    manifest: str

    @property
    def content(self) -> bytes:
        """The entry as the log holds it."""
        return canonical_json(asdict(self))

    @property
    def path(self) -> str:
        """The manifest's file, beside the log."""
        return f"manifests/{self.network}/{self.date}/{self.publication:09d}.json"

    def _is_whole(self) -> bool:
        """Return whether each field is what it says; they become dates, and parts of paths."""
        return (
            _NETWORK.fullmatch(self.network) is not None
            and date.fromisoformat(self.date).isoformat() == self.date
            and isinstance(self.publication, int)
            and _DIGEST.fullmatch(self.manifest) is not None
        )

    @classmethod
    def parse(cls, content: bytes) -> Entry:
        """Read an entry; :class:`InvalidLogError` if it is none."""
        try:
            entry = cls(**json.loads(content))
            is_whole = entry._is_whole()
        except (ValueError, TypeError, RecursionError):
            is_whole = False
        if not is_whole:
            raise InvalidLogError(f"an entry of the log is damaged: {content[:80]!r}")
        if entry.content != content:
            raise InvalidLogError(f"an entry of the log is not in canonical form: {content[:80]!r}")
        return entry


@dataclass(frozen=True)
class SignedLog:
    """A log whose tiles agree with its signed checkpoint, which ``note`` is."""

    note: bytes
    checkpoint: Checkpoint
    entries: tuple[Entry, ...]
    leaves: tuple[bytes, ...]

    @property
    def latest(self) -> dict[tuple[str, str], Entry]:
        """The last entry of each network and day, which is the one that counts."""
        return {(entry.network, entry.date): entry for entry in self.entries}

    def root_at(self, size: int) -> bytes:
        """Return the root that the log had when it held ``size`` entries."""
        return merkle.root(self.leaves[:size])


def read_log(place: Place, folder: str, keys: Sequence[VerifierKey]) -> SignedLog | None:
    """Read a log whole and check it; None where there is none.

    Raises:
        InvalidNoteError: if none of ``keys`` has signed its checkpoint.
        InvalidLogError: if a tile is missing, or does not agree with the checkpoint; it names the file.
    """
    note = place.read(f"{folder}/{CHECKPOINT}")
    if note is None:
        return None
    text = open_note(note, {key.name: key for key in keys})
    checkpoint = read_checkpoint(text)
    if not any(checkpoint.origin.startswith(f"{key.name}/") for key in keys):
        raise InvalidLogError(
            f"{place.location}/{folder}/{CHECKPOINT}: {checkpoint.origin} is no log of this key"
        )
    contents: list[bytes] = []
    for path, width in _tiles("entries", checkpoint.size):
        contents += _bundle(place, folder, path, width)
    leaves = [merkle.leaf_hash(content) for content in contents]
    if merkle.root(leaves) != checkpoint.root:
        raise InvalidLogError(
            f"{place.location}/{folder}: the {checkpoint.size:,} entries are not those that the checkpoint "
            f"signs{_damaged_tile(place, folder, leaves)}"
        )
    for path, expected in _hash_tiles(leaves):
        if place.read(f"{folder}/{path}") != expected:
            raise InvalidLogError(f"{place.location}/{folder}/{path}: the tile is missing or damaged")
    return SignedLog(note, checkpoint, tuple(Entry.parse(content) for content in contents), tuple(leaves))


def append(
    place: FolderPlace,
    folder: str,
    log: SignedLog | None,
    entries: Sequence[Entry],
    *,
    key: SignerKey,
    origin: str,
) -> Checkpoint:
    """Add entries to a log: its tiles first, then the checkpoint that covers them.

    ``origin`` names the log; one key may sign those of several lakes. Whoever calls keeps others from
    appending meanwhile. A process killed in between leaves tiles that no checkpoint covers, which the next
    one writes again.
    """
    before = log.entries if log else ()
    contents = [entry.content for entry in (*before, *entries)]
    leaves = [*(log.leaves if log else ()), *(merkle.leaf_hash(entry.content) for entry in entries)]
    start = len(before) // TILE * TILE
    for path, width in _tiles("entries", len(contents), start):
        first = start
        place.write(
            f"{folder}/{path}", b"".join(_prefixed(content) for content in contents[first : first + width])
        )
        start += width
    hashed_tiles = dict(_hash_tiles(leaves[: len(before)])) if before else {}
    for path, content in _hash_tiles(leaves):
        if path not in hashed_tiles:
            place.write(f"{folder}/{path}", content)
    if log is None:
        place.write(f"{folder}/{PUBLIC_KEY}", f"{key.verifier}\n".encode())
    checkpoint = Checkpoint(origin, len(leaves), merkle.root(leaves))
    place.write(f"{folder}/{CHECKPOINT}", key.sign(checkpoint.text))
    return checkpoint


def files_of(log: SignedLog) -> list[str]:
    """Return the paths of a log's files within its folder, the checkpoint last."""
    tiles = [path for path, _ in _tiles("entries", len(log.leaves))]
    return [*tiles, *(path for path, _ in _hash_tiles(log.leaves)), CHECKPOINT]


def _tiles(kind: str, size: int, start: int = 0) -> Iterator[tuple[str, int]]:
    """Yield the path and the width of each tile that ``size`` entries or hashes fill."""
    for first in range(start, size, TILE):
        width = min(TILE, size - first)
        yield f"tile/{kind}/{_number(first // TILE)}{'' if width == TILE else f'.p/{width}'}", width


def _number(number: int) -> str:
    """Spell a tile's number in groups of three digits, all but the last behind an ``x``."""
    groups = [f"{number % 1000:03d}"]
    while number := number // 1000:
        groups.insert(0, f"x{number % 1000:03d}")
    return "/".join(groups)


def _hash_tiles(leaves: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every tile of hashes; level L has the roots of 256^L entries each."""
    level, hashes = 0, list(leaves)
    while hashes:
        first = 0
        for path, width in _tiles(str(level), len(hashes)):
            yield path, b"".join(hashes[first : first + width])
            first += width
        hashes = [
            merkle.root(hashes[at : at + TILE]) for at in range(0, len(hashes) - len(hashes) % TILE, TILE)
        ]
        level += 1


def _prefixed(content: bytes) -> bytes:
    return len(content).to_bytes(2, "big") + content


def _bundle(place: Place, folder: str, path: str, width: int) -> list[bytes]:
    content = place.read(f"{folder}/{path}") or b""
    entries: list[bytes] = []
    at = 0
    while at < len(content):
        start = at + 2
        at = start + int.from_bytes(content[at:start], "big")
        entries.append(content[start:at])
    if at != len(content) or len(entries) != width:
        raise InvalidLogError(f"{place.location}/{folder}/{path}: the tile is missing or damaged")
    return entries


def _damaged_tile(place: Place, folder: str, leaves: Sequence[bytes]) -> str:
    """Name the first tile of entries that does not agree with its tile of hashes."""
    for path, content in _hash_tiles(leaves):
        if path.startswith("tile/0/") and place.read(f"{folder}/{path}") != content:
            return f"; {path.replace('tile/0/', 'tile/entries/')} or {path} is damaged"
    return ""
