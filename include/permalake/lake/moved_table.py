"""Rewriting the places that Iceberg's files of a table hold, after its warehouse was copied or moved.

A table's files lie in ``WAREHOUSE/NAMESPACE/TABLE``, below ``metadata`` and ``data``. Its metadata files,
manifest lists and manifests name each other and the data files by absolute paths. What follows
``/NAMESPACE/TABLE/`` in such a path stays, so a file can be rewritten again, and a killed run goes on.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from pyiceberg.io import OutputFile, load_file_io
from pyiceberg.manifest import (
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Snapshot

from permalake.errors import PermalakeError
from permalake.lake.catalog import open_table
from permalake.lake.maintenance.needed import Root
from permalake.lake.warehouse_files import read_json, write_json, write_whole
from permalake.net.object_storage import inner_path

_CODEC: Literal["deflate"] = "deflate"
# Places of fields in Iceberg's records, which have no setters.
_MANIFEST_PATH, _MANIFEST_LENGTH, _DATA_FILE_PATH = 0, 1, 1
_T = TypeVar("_T")
_LISTED_PLACES = (
    ("snapshots", "manifest-list"),
    ("metadata-log", "metadata-file"),
    ("statistics", "statistics-path"),
    ("partition-statistics", "statistics-path"),
)


@dataclass
class MovedTable:
    """A table at its new place.

    A file that cannot be read is left as it is: who checks the table finds it.

    Attributes:
        rewritten: How many files were rewritten.
        sizes: Size in bytes of every data file that lives in some state, by path as its file system knows it.
    """

    warehouse: str
    namespace: str
    table: str
    rewritten: int = 0
    sizes: dict[str, int] = field(default_factory=dict)
    _lists: set[str] = field(default_factory=set)
    _lengths: dict[str, int] = field(default_factory=dict)

    def rewrite(self, roots: Iterable[Root]) -> MovedTable:
        """Rewrite the metadata files of the roots and all that they lead to."""
        for root in roots:
            self._rewrite_metadata(root.location)
        return self

    @property
    def _root(self) -> str:
        return f"{self.warehouse}/{self.namespace}/{self.table}"

    def _moved(self, location: str) -> str:
        _, between, inside = location.rpartition(f"/{self.namespace}/{self.table}/")
        return f"{self._root}/{inside}" if between else location

    def _rewrite_metadata(self, location: str) -> None:
        document = _readable(lambda: read_json(location))
        if document is None:
            return
        places = [(document, "location", self._root)]
        for group, key in _LISTED_PLACES:
            places += [(item, key, self._moved(item[key])) for item in document.get(group, ()) if key in item]
        stale = [(item, key, place) for item, key, place in places if item.get(key) != place]
        for item, key, place in stale:
            item[key] = place
        if stale:
            write_json(location, document)
            self.rewritten += 1
        table = _readable(lambda: open_table(location))
        for snapshot in table.metadata.snapshots if table else ():
            if table and snapshot.manifest_list not in self._lists:
                self._lists.add(snapshot.manifest_list)
                self._rewrite_list(table, snapshot)

    def _rewrite_list(self, table: IcebergTable, snapshot: Snapshot) -> None:
        manifests = _readable(lambda: list(read_manifest_list(table.io.new_input(snapshot.manifest_list))))
        if manifests is None:
            return
        listed = [(manifest.manifest_path, manifest.manifest_length) for manifest in manifests]
        for manifest in manifests:
            manifest[_MANIFEST_PATH] = self._moved(manifest.manifest_path)
            if manifest.manifest_path not in self._lengths:
                self._lengths[manifest.manifest_path] = self._rewrite_manifest(table, manifest)
            manifest[_MANIFEST_LENGTH] = self._lengths[manifest.manifest_path]
        if listed == [(manifest.manifest_path, manifest.manifest_length) for manifest in manifests]:
            return

        def write(output: OutputFile) -> None:
            with write_manifest_list(
                table.metadata.format_version,
                output,
                snapshot.snapshot_id,
                snapshot.parent_snapshot_id,
                snapshot.sequence_number,
                _CODEC,
            ) as writer:
                writer.add_manifests(manifests)

        self._write(snapshot.manifest_list, write)

    def _rewrite_manifest(self, table: IcebergTable, manifest: ManifestFile) -> int:
        """Rewrite the manifest that lies at its new place; return its length."""
        if manifest.content != ManifestContent.DATA:
            raise PermalakeError(f"{manifest.manifest_path} lists deleted rows, which no lake has")
        entries = _readable(lambda: manifest.fetch_manifest_entry(table.io, discard_deleted=False))
        if entries is None:
            return manifest.manifest_length
        stale = False
        for entry in entries:
            file = entry.data_file
            place = self._moved(file.file_path)
            stale |= place != file.file_path
            file[_DATA_FILE_PATH] = place
            if entry.status != ManifestEntryStatus.DELETED:
                self.sizes[inner_path(place)] = file.file_size_in_bytes
        if not stale:
            return len(table.io.new_input(manifest.manifest_path))

        def write(output: OutputFile) -> None:
            with write_manifest(
                table.metadata.format_version,
                table.specs()[manifest.partition_spec_id],
                table.schema(),
                output,
                manifest.added_snapshot_id or 0,
                _CODEC,
            ) as writer:
                for entry in entries:
                    writer.add_entry(entry)

        return self._write(manifest.manifest_path, write)

    def _write(self, location: str, write: Callable[[OutputFile], None]) -> int:
        """Write an Avro file in the place of one; return its length."""
        with tempfile.TemporaryDirectory() as folder:
            aside = f"{folder}/{location.rpartition('/')[2]}"
            write(load_file_io(location=aside).new_output(aside))
            content = Path(aside).read_bytes()
        write_whole(location, content)
        self.rewritten += 1
        return len(content)


def _readable(read: Callable[[], _T]) -> _T | None:
    """Return what was read; None of a file that is missing, of an expired snapshot for one, or damaged."""
    try:
        return read()
    except Exception:  # noqa: BLE001 - a damaged file makes readers raise anything
        return None
