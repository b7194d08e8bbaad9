"""A publisher's export as a source of days: its log is checked, its rows compared with what was signed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.dataset as ds

from permalake.contracts import Table
from permalake.errors import ConfigError
from permalake.transparency.copies import (
    DamagedCopyError,
    ExportCopy,
    as_signed,
    check_footer,
    counted_schema,
    digest_there,
    open_rows,
    read_manifest,
)
from permalake.transparency.data_files import rewrite
from permalake.transparency.documents import Manifest, SignedTable
from permalake.transparency.log import Entry
from permalake.transparency.notes import InvalidNoteError, VerifierKey
from permalake.transparency.places import open_place
from permalake.transparency.seen import remember
from permalake.transparency.verify import Checked, open_checked


@dataclass(frozen=True)
class Publisher:
    """An export whose log was signed by a trusted key, and has only grown since this machine saw it.

    Attributes:
        url: Where it lies.
        copy: The export.
        checked: Its log.
    """

    url: str
    copy: ExportCopy
    checked: Checked

    @property
    def origin(self) -> str:
        """The name of the log."""
        return self.checked.log.checkpoint.origin

    @cached_property
    def _latest(self) -> dict[tuple[str, str], Entry]:
        return self.checked.log.latest

    def days(self, network: str) -> dict[date, Entry]:
        """Return a network's days with their last entries, in order."""
        entries = {
            date.fromisoformat(day): entry for (name, day), entry in self._latest.items() if name == network
        }
        return dict(sorted(entries.items()))

    @property
    def networks(self) -> list[str]:
        """The networks that have days, in order."""
        return sorted({name for name, _ in self._latest})

    def manifest(self, entry: Entry) -> Manifest:
        """Read the manifest of an entry.

        Raises:
            DamagedCopyError: if it is not there as it was signed, or its publisher signed what is none.
        """
        return read_manifest(self.copy, entry)

    @contextmanager
    def file(self, entry: Entry, table: Table, manifest: Manifest) -> Iterator[Path]:
        """Give the block a file with a day's rows of a table, which have the digest that was signed.

        It is this machine's own: the rows are written anew and then checked, so that nobody else changes it
        any more, and readers that filter go by bounds of this machine's making.

        Raises:
            DamagedCopyError: if they are missing or others.
        """
        where = f"{self.copy.place.location}: {entry.network}.{table.name} of {entry.date}"
        said = manifest["tables"][table.name]
        signed = as_signed(table, said, where)
        with self.copy.file(entry, table.name, said["digest"]) as there, TemporaryDirectory() as folder:
            written = Path(folder, "rows.parquet")
            names = [name for name, _ in said["columns"]]
            open_rows(there, signed, where)
            try:
                rewrite(there, written, counted_schema(table), names)
            except (pa.ArrowException, OSError, ValueError, TypeError) as error:
                raise DamagedCopyError(f"{where} cannot be read: {' '.join(str(error).split())}") from None
            check_rows(written, table, said, where)
            yield written

    def remember(self) -> None:
        """Keep how far the log goes, so that a rollback or a fork is noticed next time."""
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        remember(self.checked.log, self.checked.key, at, self.copy.place.location)


def check_rows(file: Path, table: Table, said: SignedTable, where: str) -> None:
    """Check that a file of this machine has the rows that were signed, and that its footer fits them.

    It has all columns of the contract; null are those that the rows were signed without.

    Raises:
        DamagedCopyError: if it has not.
    """
    rows = open_rows(file, table, where)
    check_footer(file, where)
    signed = as_signed(table, said, where)
    unsigned = set(rows.schema.names) - set(signed.names)
    is_filled = any(rows.count_rows(filter=ds.field(name).is_valid()) for name in unsigned)
    if is_filled or digest_there(rows, signed, where).hex != said["digest"]:
        raise DamagedCopyError(f"{where}: the rows are not those that were signed")


def open_publisher(url: str, keys: Sequence[str] = ()) -> Publisher:
    """Open the export at an address: a path, ``s3://…``, ``gs://…``, ``http://…`` or ``https://…``.

    ``keys`` are the lines of the public keys of which one must have signed; without any it is the key that
    this machine saw first, else the one that lies beside the export.

    Raises:
        PermalakeError: if it cannot be read, another key signed it, its log is damaged, was rolled back or
            forked; the line names it.
    """
    copy = ExportCopy(open_place(url))
    if not keys:
        return Publisher(url, copy, open_checked(copy, None))
    for number, line in enumerate(keys, 1):
        try:
            return Publisher(url, copy, open_checked(copy, VerifierKey.parse(line)))
        except InvalidNoteError:
            if number == len(keys):
                raise
    raise ConfigError(f"{url}: no key is named that may sign it")
