"""Copies of a lake that can be checked: the lake itself, and what ``permalake export`` wrote."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
from pydantic import TypeAdapter, ValidationError

from permalake.contracts import Table
from permalake.errors import PermalakeError
from permalake.lake.published import LakeState, dataset
from permalake.sanitize import shown
from permalake.transparency.data_files import footer_fault
from permalake.transparency.digest import TableDigest, counted_columns, table_digest
from permalake.transparency.documents import ExportedFile, Manifest, SignedTable
from permalake.transparency.log import Entry
from permalake.transparency.places import SMALL, Place

EXPORTED_LOG = "log"
"""The log's folder in an export."""
FILES = "files.json"
"""List of an export's data files."""
DATA = re.compile(
    r"data/(?P<network>[a-z0-9_-]+)/(?P<table>[a-z0-9_]+)/(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})-[0-9a-f]{16}\.parquet"
)
"""Paths of data files: see :func:`data_path`."""
_MANIFEST = TypeAdapter(Manifest)
_MOST_VALUES = 20_000_000
"""Values of a list of files. An honest one of 512 MiB has fifteen million; as much of ``{},`` would take
twelve gigabytes of memory."""
SignedFiles = Mapping[tuple[str, str], Mapping[str, int] | None]
"""Path and number of rows of the files of each network and day in a log; None: they are not known."""


class DamagedCopyError(PermalakeError):
    """Raised if a file of a copy is missing, or is not what it should be; it names the file."""


class AbsentRowsError(DamagedCopyError):
    """Raised if a copy neither has nor lists a day's rows: one of a part lacks those of other days."""


class Copy(Protocol):
    """A copy of days whose rows can be compared with their manifests.

    ``place`` and ``folder`` say where the log is.
    """

    place: Place
    folder: str

    @contextmanager
    def rows(self, entry: Entry, table: Table, digest: str) -> Iterator[ds.Dataset]:
        """Give the block a day's rows of a table; ``digest`` is what the manifest says of them."""

    def check_list(self, signed: SignedFiles, compared: Collection[str]) -> None:
        """Check that the copy's list, by which others read it, names the signed files and no more.

        ``compared`` are the paths that it has to name; a day that is None is not checked.
        """


class LakeCopy:
    """The published tables of the lake that this machine works on."""

    def __init__(self, place: Place, folder: str, state: LakeState) -> None:
        self.place = place
        self.folder = folder
        self.state = state

    @contextmanager
    def rows(self, entry: Entry, table: Table, digest: str) -> Iterator[ds.Dataset]:  # noqa: ARG002
        """Give the block a day's rows, as :class:`Copy` has it."""
        day = date.fromisoformat(entry.date)
        yield dataset(table, self.state.get((entry.network, table.name)), day, day)

    def check_list(self, signed: SignedFiles, compared: Collection[str]) -> None:
        """Do nothing: a lake has no such list."""


class ExportCopy:
    """An export: a Parquet file per table and day, named by what is in it.

    The log says which files count. Their list is for others to read by, and finds damage early; it may be
    older or newer than the log, where an export goes on meanwhile.
    """

    folder = EXPORTED_LOG

    def __init__(self, place: Place) -> None:
        self.place = place
        self._files = _listed(place)

    @contextmanager
    def rows(self, entry: Entry, table: Table, digest: str) -> Iterator[ds.Dataset]:
        """Give the block a day's rows, as :class:`Copy` has it.

        Raises:
            DamagedCopyError: as for :meth:`file`; if it has other columns or types than the contract, or a
                footer that does not fit its rows.
        """
        with self.file(entry, table.name, digest) as file:
            name = f"{self.place.location}/{data_path(entry, table.name, digest)}"
            rows = open_rows(file, table, name)
            check_footer(file, name)
            yield rows

    @contextmanager
    def file(self, entry: Entry, table: str, digest: str) -> Iterator[Path]:
        """Give the block the file of a day's rows of a table.

        Raises:
            DamagedCopyError: if it is missing, or has another length or SHA-256 than the list says.
        """
        path = data_path(entry, table, digest)
        listed = self._files.get(path)
        with self.place.on_disk(path) as file:
            if file is None and listed is None:
                raise AbsentRowsError(
                    f"{self.place.location}/{path} is missing, and {FILES} does not list it; of an export of "
                    "a part, check that part alone (--network, --date, --to)"
                )
            if file is None:
                raise DamagedCopyError(f"{self.place.location}/{path} is missing")
            if listed and (file.stat().st_size, sha256_of(file)) != (listed["bytes"], listed["sha256"]):
                raise DamagedCopyError(f"{self.place.location}/{path} is damaged: not what {FILES} lists")
            yield file

    def check_list(self, signed: SignedFiles, compared: Collection[str]) -> None:
        """Check the list, as :class:`Copy` has it.

        Raises:
            DamagedCopyError: if it is another one, and is still after it was read once more: an export that
                went on meanwhile has written it last.
        """
        if _fault(self._files, signed, compared) is None:
            return
        self._files = _listed(self.place)
        if fault := _fault(self._files, signed, compared):
            raise DamagedCopyError(
                f"{self.place.location}/{FILES} {fault}; an export that goes on, or was interrupted, is "
                "without its new list for a moment"
            )


def _fault(files: Mapping[str, ExportedFile], signed: SignedFiles, compared: Collection[str]) -> str | None:
    """Return how a list differs from the signed files, in words."""
    for path, file in files.items():
        of_day = signed.get((file["network"], file["date"]), {})
        if of_day is not None and path not in of_day:
            return f"lists {path}, which is not of the day as it is signed"
        if of_day is not None and of_day[path] != file["rows"]:
            return f"says {file['rows']:,} rows of {path}, and {of_day[path]:,} are signed"
    missing = next((path for path in compared if path not in files), None)
    return f"does not list {missing}" if missing else None


def data_path(entry: Entry, table: str, digest: str) -> str:
    """Return where an export keeps a day's rows of a table."""
    return f"data/{entry.network}/{table}/{entry.date}-{digest[:16]}.parquet"


def read_manifest(copy: Copy, entry: Entry) -> Manifest:
    """Read the manifest that an entry of the log names.

    Raises:
        DamagedCopyError: if it is missing, or another one than the log's.
    """
    path = f"{copy.folder}/{entry.path}"
    content = copy.place.read(path)
    if content is None:
        raise DamagedCopyError(f"{copy.place.location}/{path} is missing")
    if hashlib.sha256(content).hexdigest() != entry.manifest:
        raise DamagedCopyError(f"{copy.place.location}/{path} is not the manifest that the log holds")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if not _is_whole(document):
        raise DamagedCopyError(
            f"{copy.place.location}/{path}: the manifest of {entry.network} {entry.date} is not whole"
        )
    manifest: Manifest = document
    if (manifest["network"], manifest["date"]) != (entry.network, entry.date):
        raise DamagedCopyError(f"{copy.place.location}/{path} is the manifest of another day")
    return manifest


def _is_whole(document: Any) -> bool:
    """Return whether a document has the form of a manifest, whatever it has besides."""
    try:
        manifest = _MANIFEST.validate_python(document, strict=True)
    except ValidationError:
        return False
    return manifest["raw"].keys() <= manifest["tables"].keys()


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _listed(place: Place) -> dict[str, ExportedFile]:
    content = place.read(FILES, 64 * SMALL)
    if content is None:
        raise DamagedCopyError(
            f"{place.location}/{FILES} is missing: this is no export of `permalake export`"
        )
    listed = list_of(content)
    if listed is None or not all(_is_listing(file) for file in listed):
        raise DamagedCopyError(f"{place.location}/{FILES} is damaged")
    files = {file["path"]: file for file in listed}
    if len(files) < len(listed):
        raise DamagedCopyError(f"{place.location}/{FILES} lists a file twice")
    return files


def list_of(content: bytes) -> list[Any] | None:
    """Return the list that JSON of others holds; None where it holds none, or would take all memory."""
    # Each value begins behind one of these bytes; inside texts they count too, which does no harm.
    if sum(map(content.count, (b",", b"[", b"{"))) > _MOST_VALUES:
        return None
    try:
        listed = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return listed if isinstance(listed, list) else None


def _is_listing(file: Any) -> bool:
    """Return whether an item of a list says what has to be said of a data file."""
    if not isinstance(file, dict):
        return False
    named = DATA.fullmatch(str(file.get("path")))
    return (
        named is not None
        and named.groupdict().items() <= file.items()
        and all(isinstance(file.get(name), int) for name in ("rows", "bytes"))
        and isinstance(file.get("sha256"), str)
    )


def as_signed(table: Table, said: SignedTable, where: str) -> Table:
    """Return the contract with the columns that a manifest speaks of: an optional one may have come since.

    Raises:
        PermalakeError: if it speaks of other columns, or another order, than this version has.
    """
    names = {name for name, _ in said["columns"]}
    body = tuple(
        column
        for column in table.body
        if column.name in names or column.required or column.name in table.first_value
    )
    signed = table if body == table.body else replace(table, body=body)
    stated = [list(column) for column in counted_columns(signed)], list(signed.order)
    if stated != (said["columns"], said["order"]):
        raise PermalakeError(
            f"{where}: its manifest has the columns of another version of Permalake; use that one"
        )
    return signed


def counted_schema(table: Table) -> pa.Schema:
    """Return the columns that a digest covers, in the types of the contract."""
    return pa.schema([table.arrow.field(name) for name, _ in counted_columns(table)])


def widened(rows: ds.Dataset, table: Table) -> ds.Dataset:
    """Return rows with all columns of the contract: null are those that they were signed without."""
    lacking = [field for field in counted_schema(table) if field.name not in rows.schema.names]
    return rows.replace_schema(pa.schema([*rows.schema, *lacking])) if lacking else rows


def digest_there(rows: ds.Dataset, table: Table, where: str) -> TableDigest:
    """Return the digest of a copy's rows.

    Raises:
        DamagedCopyError: if they cannot be read, or lack a value that the contract asks for.
    """
    try:
        return table_digest(rows, table, of_others=True)
    except (pa.ArrowException, duckdb.Error, OSError, ValueError, TypeError, KeyError) as error:
        raise DamagedCopyError(f"{where}: the rows cannot be read: {' '.join(str(error).split())}") from None


def open_rows(file: Path, table: Table, name: str) -> ds.Dataset:
    """Open a data file, which has the columns of the digest alone, in the types of the contract.

    The digest covers numbers, and not where a file puts the point or what else it holds.
    """
    try:
        rows = ds.dataset(file, format="parquet")
    except (pa.ArrowException, OSError):
        raise DamagedCopyError(f"{name} is damaged: no Parquet file") from None
    held = [f"{field.name} {_plain(field.type)}" for field in rows.schema]
    due = [f"{field.name} {_plain(field.type)}" for field in counted_schema(table)]
    for there, here in zip_longest(held, due, fillvalue="none"):
        if there != here:
            raise DamagedCopyError(f"{name} has the column {shown(there, 200)!r} instead of {here!r}")
    return rows


def check_footer(file: Path, name: str) -> None:
    """Check that the footer of a data file states what its rows show: readers that filter go by it."""
    try:
        fault = footer_fault(file)
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise DamagedCopyError(f"{name} cannot be read: {' '.join(str(error).split())}") from None
    if fault:
        raise DamagedCopyError(f"{name} is damaged: {fault}")


def _plain(kind: pa.DataType) -> str:
    """Name a type, whatever the width of its offsets and the name of a list's elements."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list of {kind.value_type}"
    return str(kind).removeprefix("large_")


TableOf = Callable[[str, str], "Table | None"]
"""Returns the contract of a network's table; None where this version knows no such table."""
