"""Proofs to hand on: that a day's manifest is in a signed log, and that a row belongs to that day.

``docs/digests.md`` specifies their form. Whoever checks one needs the publisher's key and nothing else.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from permalake.errors import PermalakeError
from permalake.transparency import merkle
from permalake.transparency.block_decoding import decoded_row
from permalake.transparency.block_encoding import BLOCK_ROWS
from permalake.transparency.copies import Copy, read_manifest
from permalake.transparency.digest import PlacedRow, canonical_json
from permalake.transparency.documents import DayProof, DigestParts, Manifest, RowProof
from permalake.transparency.log import Entry
from permalake.transparency.notes import VerifierKey, open_note, read_checkpoint
from permalake.transparency.served import ServedLog

FORMAT = "permalake-proof-1"


class InvalidProofError(PermalakeError):
    """Raised if a proof does not hold; it says where."""


def day_proof(copy: Copy, signed: ServedLog, entry: Entry) -> DayProof:
    """Return the proof that the manifest of a day is in the log, with manifest, checkpoint and key."""
    index = signed.places[entry]
    return {
        "format": FORMAT,
        "key": str(signed.key),
        "checkpoint": signed.log.note.decode(),
        "index": index,
        "path": [node.hex() for node in merkle.inclusion_proof(signed.log.leaves, index)],
        "publication": entry.publication,
        "manifest": read_manifest(copy, entry),
    }


def row_proof(table: str, placed: PlacedRow) -> RowProof:
    """Return the proof that a row belongs to its table's day, to stand as ``row`` in a day's proof."""
    return {
        "table": table,
        "block": base64.b64encode(placed.block).decode(),
        "row": placed.row,
        "index": placed.index,
        "path": [node.hex() for node in placed.path],
    }


@dataclass(frozen=True)
class ProvenRow:
    """The result of a proof's check.

    Attributes:
        origin: Name of the log.
        size: Entries of the log at the checkpoint.
        key: The key that signed it.
        manifest: The day's manifest.
        table: The row's table; None where the proof is of a day alone.
        row: The row's values by column.
    """

    origin: str
    size: int
    key: VerifierKey
    manifest: Manifest
    table: str | None
    row: Mapping[str, Any]


def read_proof(file: Path) -> dict[str, Any]:
    """Read a proof, of a day or of inclusion, from a file."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InvalidProofError(f"{file} cannot be read: {error.strerror}") from None
    try:
        document = json.loads(content)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise InvalidProofError(f"{file} is no proof: it is no JSON object")
    return document


def check_proof(proof: DayProof, key: VerifierKey | None) -> ProvenRow:
    """Check a proof; ``key``: the publisher's, without it the one that the proof names.

    Raises:
        InvalidProofError: if something of it does not hold.
    """
    try:
        if proof["format"] != FORMAT:
            raise InvalidProofError(f"the proof is no {FORMAT}")
        signer = key or VerifierKey.parse(proof["key"])
        checkpoint = read_checkpoint(open_note(proof["checkpoint"].encode(), {signer.name: signer}))
        manifest = proof["manifest"]
        entry = Entry(
            manifest["network"],
            manifest["date"],
            proof["publication"],
            hashlib.sha256(canonical_json(manifest)).hexdigest(),
        )
        leaf = merkle.leaf_hash(entry.content)
        root = merkle.root_of_inclusion(leaf, proof["index"], checkpoint.size, _nodes(proof["path"]))
        if root != checkpoint.root:
            raise InvalidProofError("the manifest is not in the log that the checkpoint signs")
        table, row = _check_row(proof["row"], manifest) if "row" in proof else (None, {})
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise InvalidProofError(f"the proof is damaged: {type(error).__name__} {error}") from None
    return ProvenRow(checkpoint.origin, checkpoint.size, signer, manifest, table, row)


def _check_row(proof: RowProof, manifest: Manifest) -> tuple[str, Mapping[str, Any]]:
    said = manifest["tables"][proof["table"]]
    parts: DigestParts = {
        "block": said["block"],
        "columns": said["columns"],
        "order": said["order"],
        "root": said["root"],
        "rows": said["rows"],
    }
    if hashlib.sha256(canonical_json(parts)).hexdigest() != said["digest"] or said["block"] != BLOCK_ROWS:
        raise InvalidProofError(f"the manifest's digest of {proof['table']} does not fit its parts")
    block = _from_base64(proof["block"])
    leaves = -(-said["rows"] // BLOCK_ROWS)
    root = merkle.root_of_inclusion(merkle.leaf_hash(block), proof["index"], leaves, _nodes(proof["path"]))
    if root is None or root.hex() != said["root"]:
        raise InvalidProofError(f"the row is not among the {said['rows']:,} that the manifest has signed")
    return proof["table"], decoded_row(block, [(name, kind) for name, kind in said["columns"]], proof["row"])


def _nodes(path: list[str]) -> list[bytes]:
    return [bytes.fromhex(node) for node in path]


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise InvalidProofError("the proof's block is no base64") from None
