"""Export: the published days as Parquet files with manifests and log, to be served as static files.

Data files are named by what is in them and stay for one more export, so that a reader sees a day as it was or
as it is, whichever checkpoint and list of files it has read. Only what changed is written.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from permalake.contracts import Table
from permalake.errors import PermalakeError
from permalake.lake.published import dataset
from permalake.transparency.copies import (
    DATA,
    EXPORTED_LOG,
    FILES,
    LakeCopy,
    TableOf,
    as_signed,
    data_path,
    list_of,
    read_manifest,
    sha256_of,
)
from permalake.transparency.data_files import write_rows
from permalake.transparency.digest import table_digest
from permalake.transparency.documents import CopiedFile, ExportedFile, SignedTable
from permalake.transparency.log import CHECKPOINT, PUBLIC_KEY, Entry, SignedLog, files_of
from permalake.transparency.notes import InvalidNoteError, VerifierKey, open_note, read_checkpoint
from permalake.transparency.places import SMALL, FolderPlace
from permalake.transparency.report import UNSIGNED

EntryFilter = Callable[[Entry], bool]
_RETIRED = "retired.json"


@dataclass(frozen=True)
class Exported:
    """The result of an export: days in the target, files written and left as they were, bytes written."""

    days: int
    written: int
    kept: int
    bytes: int


@dataclass(frozen=True)
class Export:
    """The export of a lake's signed days.

    Attributes:
        lake: The lake, with its log.
        log: The log, checked.
        key: The public key of the log.
        table_of: Contracts of tables.
        is_exported: Which days are exported.
        options: Those of the command line that choose them, each after a space.
    """

    lake: LakeCopy
    log: SignedLog
    key: VerifierKey
    table_of: TableOf
    is_exported: EntryFilter
    options: str = ""

    def write(self, target: FolderPlace, progress: Callable[[str], None] = lambda _: None) -> Exported:
        """Bring ``target`` up to date; data files that no manifest names any more go one export later.

        Files come before what names them: data, manifests and tiles, the checkpoint, the list of files. An
        export that was interrupted anywhere is completed by the next one.

        Raises:
            PermalakeError: if the target's log is further than this one, before or while it is written, or is
                another one of its name.
        """
        self._check_log_at(target)
        before = _files_at(target)
        listed: list[ExportedFile] = []
        written = kept = size = days = 0
        for (network, day), entry in sorted(self.log.latest.items()):
            if not self.is_exported(entry):
                continue
            days += 1
            progress(f"{network} {day}")
            for table, said in self._tables(entry):
                path = data_path(entry, table.name, said["digest"])
                if path in before:
                    kept += 1
                    copied = before[path]
                else:
                    copied = self._write_table(target, entry, table, path, said)
                    written, size = written + 1, size + copied["bytes"]
                listed.append(
                    {
                        "path": path,
                        "network": network,
                        "table": table.name,
                        "date": day,
                        "rows": said["rows"],
                        "bytes": copied["bytes"],
                        "sha256": copied["sha256"],
                    }
                )
        self._check_log_at(target)  # what took long may be overtaken: then nothing more is written
        self._write_log(target)
        gone = set(before) - {file["path"] for file in listed}
        retired = _retired_at(target) - {file["path"] for file in listed}
        _write_retired(target, retired | gone)
        self._replace(target, f"{EXPORTED_LOG}/{CHECKPOINT}", self.log.note)
        self._replace(target, FILES, _lines(listed))
        target.write("README.md", _readme(self, listed).encode())
        target.write("croissant.json", json.dumps(_croissant(self.log, listed), indent=1).encode())
        # Who began to read before this export still finds the files of the last one.
        for path in retired - gone:
            target.remove(path)
        _write_retired(target, gone)
        return Exported(days, written, kept, size)

    def _replace(self, target: FolderPlace, path: str, content: bytes) -> None:
        """Write what readers begin with, unless another export went further up to this very moment."""
        self._check_log_at(target)
        target.write(path, content)

    def _check_log_at(self, target: FolderPlace) -> None:
        """Check that this log goes on from the target's: readers would notice a rollback or a fork."""
        note = target.read(f"{EXPORTED_LOG}/{CHECKPOINT}")
        if note is None:
            return
        try:
            there = read_checkpoint(open_note(note, {self.key.name: self.key}))
        except InvalidNoteError:
            return  # another key's, or damaged: this export replaces it
        here = self.log.checkpoint
        if there.origin != here.origin:
            return
        if there.size > here.size:
            raise PermalakeError(
                f"{target.location}: the log there has {there.size:,} entries, this export {here.size:,}: "
                "another export went further, or the lake was restored to an older state"
            )
        if self.log.root_at(there.size) != there.root:
            raise PermalakeError(
                f"{target.location}: the log there has other entries than the lake's under the same name"
            )

    def _tables(self, entry: Entry) -> Iterator[tuple[Table, SignedTable]]:
        for name, said in sorted(read_manifest(self.lake, entry)["tables"].items()):
            if table := self.table_of(entry.network, name):
                yield table, said

    def _write_table(
        self, target: FolderPlace, entry: Entry, table: Table, path: str, said: SignedTable
    ) -> CopiedFile:
        day = date.fromisoformat(entry.date)
        signed = as_signed(table, said, f"{entry.network}.{table.name} of {entry.date}")
        rows = dataset(table, self.lake.state.get((entry.network, table.name)), day, day)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "rows.parquet")
            scanner = rows.scanner(columns=[name for name, _ in said["columns"]])
            write_rows(scanner.to_batches(), scanner.projected_schema, file)
            if table_digest(ds.dataset(file), signed).hex != said["digest"]:
                raise PermalakeError(
                    f"{entry.network}.{table.name} of {entry.date}: the rows are not those of the manifest; "
                    "`permalake verify` says more"
                )
            target.write(path, file.read_bytes())
            return {"path": path, "bytes": file.stat().st_size, "sha256": sha256_of(file)}

    def _write_log(self, target: FolderPlace) -> None:
        """Write tiles and manifests; the checkpoint makes them count."""
        place, folder = self.lake.place, self.lake.folder
        for path in files_of(self.log):
            content = place.read(f"{folder}/{path}")
            if path != CHECKPOINT and content is not None:
                _write_new(target, f"{EXPORTED_LOG}/{path}", content)
        for entry in self.log.entries:
            content = place.read(f"{folder}/{entry.path}")
            if content is not None:
                _write_new(target, f"{EXPORTED_LOG}/{entry.path}", content)
        _write_new(target, f"{EXPORTED_LOG}/{PUBLIC_KEY}", f"{self.key}\n".encode())


def _write_new(target: FolderPlace, path: str, content: bytes) -> None:
    if target.read(path) != content:
        target.write(path, content)


def _files_at(target: FolderPlace) -> dict[str, CopiedFile]:
    """Return the data files that an earlier export has listed."""
    return {
        file["path"]: {"path": file["path"], "bytes": file["bytes"], "sha256": file["sha256"]}
        for file in _list_at(target, FILES)
        if isinstance(file, dict)
        and _is_data(file.get("path"))
        and isinstance(file.get("bytes"), int)
        and isinstance(file.get("sha256"), str)
    }


def _retired_at(target: FolderPlace) -> set[str]:
    """Return the data files that an earlier export has left for readers that had begun."""
    return {path for path in _list_at(target, _RETIRED) if _is_data(path)}


def _list_at(target: FolderPlace, name: str) -> list[Any]:
    """Return what a list at the target holds, where others may write too: nothing of one that is damaged."""
    return list_of(target.read(name, 64 * SMALL) or b"[]") or []


def _is_data(path: Any) -> bool:
    """Return whether a path is of a data file, which alone an export removes."""
    return isinstance(path, str) and DATA.fullmatch(path) is not None


def _write_retired(target: FolderPlace, paths: set[str]) -> None:
    target.write(_RETIRED, json.dumps(sorted(paths)).encode())


def _lines(listed: list[ExportedFile]) -> bytes:
    return ("[\n" + ",\n".join(json.dumps(file) for file in listed) + "\n]\n").encode()


def _readme(export: Export, listed: list[ExportedFile]) -> str:
    networks = ", ".join(sorted({file["network"] for file in listed}))
    first = next(iter(listed), None)
    table = f"{first['network']}/{first['table']}" if first else ""
    return f"""# Days of {networks}, exported by Permalake

`data/NETWORK/TABLE/DATE-DIGEST.parquet` holds a table's rows of a UTC day, `files.json` lists these files
with size and SHA-256, `log/` is the signed log of manifests.

Read a table with DuckDB, here or over HTTPS (put the address of this folder in place of `.`):

```sql
SET VARIABLE files = (SELECT list('./' || path) FROM './files.json' WHERE path LIKE 'data/{table}/%');
SELECT * FROM read_parquet(getvariable('files'));
```

Check the copy: `permalake verify .{export.options}` compares every table with its signed manifest. The log is
`{export.log.checkpoint.origin}`, and its key is

    {export.key}

Not here, as they go on growing after a day is signed: the tables {", ".join(UNSIGNED)}, which hold what
others answered while days were built. `permalake query` over a lake of one's own has them.
"""  # noqa: S608


def _croissant(log: SignedLog, listed: list[ExportedFile]) -> dict[str, object]:
    """Describe the files as Croissant 1.0 has it (docs.mlcommons.org/croissant)."""
    tables = sorted({(file["network"], file["table"]) for file in listed})
    return {
        "@context": {
            "@vocab": "https://schema.org/",
            "cr": "http://mlcommons.org/croissant/",
            "sc": "https://schema.org/",
            "dct": "http://purl.org/dc/terms/",
            "conformsTo": "dct:conformsTo",
        },
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": log.checkpoint.origin,
        "description": "Published days of a Permalake lake, with signed manifests.",
        "distribution": [
            {
                "@type": "cr:FileSet",
                "@id": f"{network}.{table}",
                "name": f"{network}.{table}",
                "encodingFormat": "application/vnd.apache.parquet",
                "includes": f"data/{network}/{table}/*.parquet",
            }
            for network, table in tables
        ],
    }
