"""A second verifier of Permalake's exports, written from docs/digests.md alone.

    python docs/verify.py EXPORT KEY

EXPORT is a folder; KEY is the publisher's line NAME+HASH+KEY. It needs PyArrow and cryptography, nothing of
Permalake's. It prints what it checked, or the first difference, and then ends with exit code 1.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import sys
from decimal import Context
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

BLOCK = 256
EXACT = Context(prec=60)
TILE = 256
KINDS = {"int32": "int", "int64": "long", "date32[day]": "date", "timestamp[us, tz=UTC]": "timestamptz"}


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def merkle(hashes: list[bytes]) -> bytes:
    if not hashes:
        return sha256()
    if len(hashes) == 1:
        return hashes[0]
    split = 1
    while split * 2 < len(hashes):
        split *= 2
    return sha256(b"\1", merkle(hashes[:split]), merkle(hashes[split:]))


def checkpoint(export: Path, key: str) -> tuple[int, bytes]:
    """Return the size and the root that the key has signed."""
    name, stated, encoded = key.split("+", 2)
    public = base64.b64decode(encoded)
    number = sha256(name.encode(), b"\n", public)[:4]
    if number.hex() != stated:
        raise SystemExit("the key's hash does not fit the key")
    text, signatures = (export / "log/checkpoint").read_text().rsplit("\n\n", 1)
    text += "\n"
    for line in signatures.splitlines():
        dash, signer, signature = line.split(" ")
        content = base64.b64decode(signature)
        if (dash, signer, content[:4]) != ("\u2014", name, number):
            continue
        try:
            Ed25519PublicKey.from_public_bytes(public[1:]).verify(content[4:], text.encode())
        except InvalidSignature:
            raise SystemExit("log/checkpoint: the signature is wrong") from None
        _, size, root = text.rstrip("\n").split("\n")
        return int(size), base64.b64decode(root)
    raise SystemExit("log/checkpoint: not signed by this key")


def tile_path(number: int) -> str:
    groups = [f"{number % 1000:03d}"]
    while number := number // 1000:
        groups.insert(0, f"x{number % 1000:03d}")
    return "/".join(groups)


def entries(export: Path, size: int) -> list[bytes]:
    """Return the entries of the log, from its tiles of 256."""
    found: list[bytes] = []
    for first in range(0, size, TILE):
        path, width = tile_path(first // TILE), min(TILE, size - first)
        content = (
            export / "log/tile/entries" / (path if width == TILE else f"{path}.p/{width}")
        ).read_bytes()
        while content:
            length = int.from_bytes(content[:2], "big")
            found.append(content[2 : 2 + length])
            content = content[2 + length :]
    return found


def kind_of(held: pa.DataType) -> str:
    """Return the type of a file's column as a manifest names it."""
    if pa.types.is_list(held) or pa.types.is_large_list(held):
        return f"list<{kind_of(held.value_type)}>"
    text = str(held).removeprefix("large_")
    return KINDS.get(text, text.replace("decimal128", "decimal").replace(" ", ""))


def encoded(values: pa.Array, kind: str) -> bytes:
    """Return presence and values of a column of one block, row by row: slow, and easy to compare."""
    rows = values.to_pylist()
    present = sum(1 << at for at, row in enumerate(rows) if row is not None)
    out = [present.to_bytes((len(rows) + 7) // 8, "little")]
    if kind in ("string", "binary"):
        texts = [b"" if row is None else row.encode() if isinstance(row, str) else row for row in rows]
        out += [struct.pack("<I", len(text)) for text in texts] + texts
    elif kind == "list<int>":
        lists = [row or [] for row in rows]
        out += [struct.pack("<I", len(row)) for row in lists]
        out += [struct.pack("<q", value) for row in lists for value in row]
    elif kind.startswith("decimal"):
        scale = int(kind.rstrip(")").split(",")[1])
        whole = [0 if row is None else int(row.scaleb(scale, EXACT)) for row in rows]
        out += [value.to_bytes(16, "little", signed=True) for value in whole]
    elif kind == "double":
        out += [struct.pack("<d", (row or 0.0) + 0.0) for row in rows]
    elif kind in ("date", "timestamptz"):
        narrow = pa.int32() if kind == "date" else pa.int64()
        whole = values.cast(pa.timestamp("us", "UTC")) if kind == "timestamptz" else values
        out += [struct.pack("<q", row or 0) for row in whole.cast(narrow).to_pylist()]
    else:
        out += [struct.pack("<q", row or 0) for row in rows]
    return b"".join(out)


def root_of(rows: pa.Table, columns: list[list[str]], order: list[str]) -> bytes:
    by = [(name, "ascending", "at_start") for name in order]
    rows = rows.take(pc.sort_indices(rows, sort_keys=by))
    leaves = []
    for start in range(0, len(rows), BLOCK):
        block = rows.slice(start, BLOCK)
        parts = [encoded(block[name].combine_chunks(), kind) for name, kind in columns]
        leaves.append(sha256(b"\0", struct.pack("<I", len(block)), *parts))
    return merkle(leaves)


def canonical(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def check_bounds(path: Path) -> None:
    """Check the bounds of columns without lists in a footer: readers that filter go by them."""
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            group, rows = file.metadata.row_group(number), file.read_row_group(number)
            for chunk in map(group.column, range(group.num_columns)):
                name, said = chunk.path_in_schema, chunk.statistics
                if name in rows.column_names and said is not None and said.has_min_max:
                    least, most = pc.min_max(rows[name]).as_py().values()
                    if least is not None and not said.min <= least <= most <= said.max:
                        raise SystemExit(f"{path}: its footer states other bounds of {name} than its rows")


def check_table(export: Path, path: str, said: dict) -> int:
    try:
        rows = pq.read_table(export / path, partitioning=None)
        if [[field.name, kind_of(field.type)] for field in rows.schema] != said["columns"]:
            raise SystemExit(f"{path}: not the columns and types of the manifest")
        root = root_of(rows, said["columns"], said["order"])
        check_bounds(export / path)
    except (OSError, KeyError, struct.error, pa.ArrowException) as error:
        raise SystemExit(f"{path}: {type(error).__name__}: it is missing or damaged") from None
    parts = {key: said[key] for key in ("block", "columns", "order")}
    parts |= {"root": root.hex(), "rows": len(rows)}
    if sha256(canonical(parts)).hex() != said["digest"]:
        raise SystemExit(f"{path}: {len(rows)} rows with root {root.hex()}, the manifest says {said['rows']}")
    return len(rows)


def main(export: Path, key: str) -> None:
    size, root = checkpoint(export, key)
    log = entries(export, size)
    if len(log) != size or merkle([sha256(b"\0", entry) for entry in log]) != root:
        raise SystemExit("log/tile/entries: not the entries that the checkpoint signs")
    latest: dict[tuple[str, str], dict] = {}
    for content in log:
        entry = json.loads(content)
        latest[entry["network"], entry["date"]] = entry
    rows, files = 0, []
    for entry in latest.values():
        path = f"log/manifests/{entry['network']}/{entry['date']}/{entry['publication']:09d}.json"
        manifest = (export / path).read_bytes()
        if sha256(manifest).hex() != entry["manifest"]:
            raise SystemExit(f"{path}: not the manifest of the log")
        for name, said in json.loads(manifest)["tables"].items():
            day = f"data/{entry['network']}/{name}/{entry['date']}"
            path = f"{day}-{said['digest'][:16]}.parquet"
            files.append((path, check_table(export, path, said)))
            rows += files[-1][1]
    listed = json.loads((export / "files.json").read_text())
    if sorted((file["path"], file["rows"]) for file in listed) != sorted(files):
        raise SystemExit("files.json: not a list of the files that are signed")
    print(f"{len(latest)} days, {len(files)} tables of days, {rows} rows: all as they were signed")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2])
