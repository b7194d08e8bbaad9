"""Exports of a lake before and after its days changed, and what a host could do to a copy of them."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from permalake.config import Settings
from permalake.transparency import keys
from permalake.transparency.log import append, read_log
from permalake.transparency.notes import SignerKey
from permalake.transparency.places import FolderPlace
from support.lakes import DAY1, DAY2, DAY3, OpenLake, build, pass_audit, put, settings_of
from support.served_wormhole import publish_days, world_rows, wormhole_settings
from support.signed_lakes import export, public_key, sign

CHECKPOINT = "log/checkpoint"


@dataclass(frozen=True)
class Exports:
    """An export after two publications (``older``), and after two more: a correction and a new day."""

    settings: Settings
    lake: OpenLake
    older: Path
    newer: Path
    network: str

    def copy(self, target: Path) -> Export:
        """A copy of the newer one. Its files are links: replace them, never write into them."""
        return Export(shutil.copytree(self.newer, target, copy_function=os.link), self)


def iota_exports(folder: Path) -> Exports:
    """Three days of messages, of which the first is corrected and the last is new."""
    settings = settings_of(folder / "warehouse")
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 300, "first")
    build(settings, lake, DAY2, 2, 40, "second")
    older = _exported(settings, lake, folder / "older")
    build(settings, lake, DAY1, 1, 700, "corrected")
    build(settings, lake, DAY3, 3, 5, "third")
    shutil.copytree(older, folder / "newer")
    return Exports(settings, lake, older, _exported(settings, lake, folder / "newer"), "shimmer")


def wormhole_exports(folder: Path) -> Exports:
    """Two days of VAAs, of which the first is corrected; its last transfer comes on a day that is new."""
    settings = wormhole_settings(folder)
    lake = OpenLake(settings)
    tables = world_rows()
    corrected, last = sorted({row["date"] for row in tables["quorum_state"]})[-2:]
    publish_days(settings, tables, [corrected, last])
    older = _exported(settings, lake, folder / "older")
    new = last.replace(year=last.year + 1)
    for day, change in ((corrected, lambda rows: rows[:-1]), (new, lambda rows: rows[-1:])):
        attempt = lake.begin("wormhole", day, day, f"again-{day}")
        for name in ("quorum_state", "message_publication"):
            rows = [row for row in tables[name] if row["date"] == corrected]
            put(settings, attempt, name, [{**row, "date": day} for row in change(rows)])
        lake.builds.publish(pass_audit(attempt))
    shutil.copytree(older, folder / "newer")
    return Exports(settings, lake, older, _exported(settings, lake, folder / "newer"), "wormhole")


def _exported(settings: Settings, lake: OpenLake, target: Path) -> Path:
    sign(settings, lake)
    export(settings, lake, target)
    return target


@dataclass(frozen=True)
class Export:
    """A copy of the newer of two exports, to be changed."""

    folder: Path
    exports: Exports

    def listed(self) -> list[dict]:
        """The data files that it lists."""
        return json.loads((self.folder / "files.json").read_text())

    @cached_property
    def files(self) -> list[str]:
        """Paths of the files that somebody who checks it reads: data, manifests, tiles, checkpoint."""
        counted = {one["path"] for one in self.listed()}
        return [path for path in self._paths if path in counted or self._is_of_log(path)]

    @cached_property
    def others(self) -> list[str]:
        """Paths of all other files: descriptions, lists, files of earlier days, the key."""
        return [path for path in self._paths if path not in self.files]

    @property
    def _paths(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())

    def _is_of_log(self, path: str) -> bool:
        """Whether it is read from the log; partial tiles of a smaller log are not, nor the key."""
        file = self.folder / path
        is_superseded = file.parent.suffix == ".p" and int(file.name) < max(
            int(one.name) for one in file.parent.iterdir()
        )
        return path.startswith("log/") and file.name != "key" and not is_superseded

    def of(self, *starts: str) -> list[str]:
        """Those of the files that are read below one of some folders."""
        return [path for path in self.files if path.startswith(starts)]

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return (self.folder / path).read_bytes()

    def put(self, path: str, content: bytes) -> None:
        """Replace a file, and not what it is a link to."""
        (self.folder / path).unlink(missing_ok=True)
        (self.folder / path).write_bytes(content)


def flip(copy: Export, path: str, chance: random.Random) -> None:
    """Change one bit of a file."""
    content = bytearray(copy.read(path))
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    copy.put(path, bytes(content))


def _flip_in(*starts: str) -> Manipulation:
    return lambda copy, chance: flip(copy, chance.choice(copy.of(*starts)), chance)


def _truncate(copy: Export, chance: random.Random) -> None:
    path = chance.choice(copy.files)
    copy.put(path, copy.read(path)[: chance.randrange(len(copy.read(path)))])


def _remove(copy: Export, chance: random.Random) -> None:
    (copy.folder / chance.choice(copy.files)).unlink()


def _swap_days(copy: Export, chance: random.Random) -> None:
    """Let two days of a table change places, and list them as if they belonged there."""
    tables: dict[str, list[str]] = {}
    for path in copy.of("data/"):
        tables.setdefault(path.rpartition("/")[0], []).append(path)
    one, other = chance.sample(chance.choice([paths for paths in tables.values() if len(paths) > 1]), 2)
    contents = {one: copy.read(other), other: copy.read(one)}
    listed = {entry["path"]: entry for entry in copy.listed()}
    for here, there in ((one, other), (other, one)):
        copy.put(here, contents[here])
        facts = {name: listed[there][name] for name in ("rows", "bytes", "sha256")}
        listed[here], listed[there] = {**listed[here], **facts}, listed[there]
    _list(copy, list(listed.values()))


def _older_rows(copy: Export, chance: random.Random) -> None:
    """Put a corrected table's former rows in place of those that count, and list them as such."""
    counted = {path.rpartition("-")[0]: path for path in copy.of("data/")}
    former = json.loads((copy.exports.older / "files.json").read_text())
    corrected = [
        (one, counted[stem])
        for one in former
        if (stem := one["path"].rpartition("-")[0]) in counted and counted[stem] != one["path"]
    ]
    one, path = chance.choice(corrected)
    copy.put(path, (copy.exports.older / one["path"]).read_bytes())
    listed = [{**one, "path": path} if entry["path"] == path else entry for entry in copy.listed()]
    _list(copy, listed)


def _list(copy: Export, listed: list[dict]) -> None:
    copy.put("files.json", json.dumps(listed).encode())


def _list_former_rows(copy: Export, chance: random.Random) -> None:
    """List the rows that a table had before it was corrected, whose file is still there, too."""
    former = [
        one
        for one in json.loads((copy.exports.older / "files.json").read_text())
        if one not in copy.listed() and (copy.folder / one["path"]).is_file()
    ]
    _list(copy, [*copy.listed(), chance.choice(former)])


def _list_twice(copy: Export, chance: random.Random) -> None:
    _list(copy, [*copy.listed(), chance.choice(copy.listed())])


def _list_unsigned_rows(copy: Export, chance: random.Random) -> None:
    """Add a file of rows that nobody has signed, named and listed as others are."""
    one = chance.choice(copy.listed())
    path = f"{one['path'].rpartition('-')[0]}-{chance.randbytes(8).hex()}.parquet"
    copy.put(path, copy.read(one["path"]))
    _list(copy, [*copy.listed(), {**one, "path": path}])


def _list_fewer(copy: Export, chance: random.Random) -> None:
    _list(copy, chance.sample(copy.listed(), len(copy.listed()) - 1))


def _list_other_counts(copy: Export, chance: random.Random) -> None:
    listed = copy.listed()
    chance.choice(listed)["rows"] += 1
    _list(copy, listed)


def _rewrite(
    copy: Export, chance: random.Random, edit: Callable[[pa.Table, random.Random], pa.Table]
) -> None:
    """Write a data file anew, one with decimals if there is any, and list what is there now."""
    paths = copy.of("data/")
    path = chance.choice([path for path in paths if _decimals(_rows(copy, path))] or paths)
    sink = pa.BufferOutputStream()
    pq.write_table(edit(_rows(copy, path), chance), sink)
    _put_listed(copy, path, sink.getvalue().to_pybytes())


def _put_listed(copy: Export, path: str, content: bytes) -> None:
    """Put a data file, and list what it is now."""
    facts = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    copy.put(path, content)
    listed = [{**one, **facts} if one["path"] == path else one for one in copy.listed()]
    _list(copy, listed)


def _rows(copy: Export, path: str) -> pa.Table:
    return pq.read_table(copy.folder / path, partitioning=None)


def _decimals(rows: pa.Table) -> list[str]:
    """The columns whose numbers have decimal places."""
    return [one.name for one in rows.schema if pa.types.is_decimal(one.type) and one.type.scale]


def _rescale(rows: pa.Table, chance: random.Random) -> pa.Table:
    """Drop the point of a column's numbers; of a table without any, retype a column."""
    if not _decimals(rows):
        return _retype(rows, chance)
    name = chance.choice(_decimals(rows))
    values = rows[name].combine_chunks()
    whole = pa.decimal128(values.type.precision, 0)
    return _put(rows, name, pa.Array.from_buffers(whole, len(values), values.buffers(), offset=values.offset))


_TWINS = {
    pa.int32(): pa.int64(),
    pa.int64(): pa.timestamp("us", "UTC"),
    pa.timestamp("us", "UTC"): pa.int64(),
    pa.date32(): pa.int32(),
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
}
"""Types of the same bytes in a digest."""


def _retype(rows: pa.Table, chance: random.Random) -> pa.Table:
    """Give a column's values another type."""
    name = chance.choice([one.name for one in rows.schema if one.type in _TWINS])
    return _put(rows, name, rows[name].cast(_TWINS[rows.schema.field(name).type]))


def _put(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, values)


def _added_column(rows: pa.Table, chance: random.Random) -> pa.Table:
    """Add a column that nobody signed, between the others or behind them."""
    values = pa.array([chance.random() for _ in range(len(rows))])
    return rows.add_column(chance.randrange(rows.num_columns + 1), "unsigned", values)


def _older_manifest(copy: Export, chance: random.Random) -> None:
    """Put the manifest that a day had before in place of the one that replaced it."""
    log = read_log(FolderPlace(str(copy.folder)), "log", [public_key()])
    replaced = [one for one in log.entries if log.latest[one.network, one.date] != one]
    entry = chance.choice(replaced)
    path = f"log/{log.latest[entry.network, entry.date].path}"
    copy.put(path, copy.read(f"log/{entry.path}"))


def _older_checkpoint(copy: Export, _: random.Random) -> None:
    copy.put(CHECKPOINT, (copy.exports.older / CHECKPOINT).read_bytes())


def _older_export(copy: Export, _: random.Random) -> None:
    """Go back to the whole export of an older publication."""
    shutil.rmtree(copy.folder)
    shutil.copytree(copy.exports.older, copy.folder, copy_function=os.link)


def _sign_again(copy: Export, key: SignerKey, *, reorder: random.Random | None = None) -> None:
    place = FolderPlace(str(copy.folder))
    log = read_log(place, "log", [public_key()])
    entries = list(log.entries)
    while reorder and entries == list(log.entries):
        reorder.shuffle(entries)
    append(place, "log", None, entries, key=key, origin=log.checkpoint.origin)


def _fork(copy: Export, chance: random.Random) -> None:
    """Show another log under the same name, which its publisher signed."""
    key = keys.signing_key()
    assert key is not None
    _sign_again(copy, key, reorder=chance)


def _another_key(copy: Export, _: random.Random) -> None:
    """Sign the very same days by a key of the same name."""
    _sign_again(copy, SignerKey(public_key().name, Ed25519PrivateKey.generate()))


def _false_bounds(copy: Export, chance: random.Random) -> None:
    """State less than the greatest value of a column in the footer of a file, and list what is there now."""
    stated = [(path, value) for path in copy.of("data/") for value in _greatest(copy, path)]
    path, greatest = chance.choice(stated)
    content = copy.read(path)
    at = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    _put_listed(copy, path, content[:at] + content[at:].replace(greatest, bytes(len(greatest))))


def _greatest(copy: Export, path: str) -> list[bytes]:
    """The greatest values of texts and bytes that the footer of a file states."""
    group = pq.read_metadata(copy.folder / path).row_group(0)
    chunks = [one for at in range(group.num_columns) if "." not in (one := group.column(at)).path_in_schema]
    stated = [one.statistics for one in chunks if one.physical_type == "BYTE_ARRAY" and one.statistics]
    raw = [one.max_raw for one in stated if one.has_min_max]
    return [value for value in raw if len(value) > 7 and any(value)]


UNSEEN_BY_DIGESTS = {"rescale": _rescale, "retype": _retype, "added column": _added_column}
"""Edits of a table after which its rows have the same digest."""
Manipulation = Callable[[Export, random.Random], None]
LISTS: dict[str, Manipulation] = {
    "former rows listed too": _list_former_rows,
    "a file listed twice": _list_twice,
    "unsigned rows listed": _list_unsigned_rows,
    "a file not listed": _list_fewer,
    "another number of rows listed": _list_other_counts,
}
"""Changes of the list, by which others read. A mirror goes by the manifests."""
MANIPULATIONS: dict[str, Manipulation] = {
    "a bit of data": _flip_in("data/"),
    "a bit of a manifest": _flip_in("log/manifests/"),
    "a bit of a tile": _flip_in("log/tile/"),
    "a bit of the checkpoint": _flip_in(CHECKPOINT),
    "a truncated file": _truncate,
    "a missing file": _remove,
    "days of a table swapped": _swap_days,
    "rows of an older publication": _older_rows,
    **{what: partial(_rewrite, edit=edit) for what, edit in UNSEEN_BY_DIGESTS.items()},
    "false bounds in a footer": _false_bounds,
    **LISTS,
    "the manifest of an older publication": _older_manifest,
    "an older checkpoint": _older_checkpoint,
    "an older export": _older_export,
    "a fork of the log": _fork,
    "the same days signed by another key": _another_key,
}
FIXED = ("an older checkpoint", "an older export", "the same days signed by another key")
"""Manipulations that leave nothing to chance: one copy shows all that they do."""
