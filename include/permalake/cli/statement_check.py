"""The proofs of a statement as ``permalake verify`` checks them: every row rests on one that holds."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from permalake.cli.inclusion_proofs import report_inclusion
from permalake.config import Settings
from permalake.errors import ConfigError
from permalake.transparency.proofs import InvalidProofError
from permalake.transparency.report import PROVEN, RESTS_ON

_FOLDER = "proofs/"
_ROWS = "statement.csv"
_LARGEST = 64 << 20
"""Bytes of a file of the archive: a proof has some thousands."""


def check_statement(settings: Settings, network: str | None, archive: Path) -> Iterator[str]:
    """Yield in words what the proofs of a statement show (``permalake statement --proofs``).

    ``network``: the network whose coordinator keys count; without it, the only one of the proofs' protocol.

    Raises:
        ConfigError: if the file is no such archive, or it is not clear whose keys count.
        InvalidProofError: if a proof does not hold; it is named.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            files = {member.filename: _content(opened, member) for member in opened.infolist()}
    except (OSError, zipfile.BadZipFile) as error:
        raise ConfigError(f"{archive}: no archive of `permalake statement --proofs`: {error}") from None
    if _ROWS not in files:
        raise ConfigError(f"{archive}: {_ROWS} is missing: no archive of `permalake statement --proofs`")
    proofs = {name: content for name, content in files.items() if name.startswith(_FOLDER) and content}
    rows = list(csv.DictReader(io.StringIO(files[_ROWS].decode("utf-8"))))
    blocks = {name: content for name, content in proofs.items() if name.endswith(".json")}
    keys = {_inclusion(settings, network, name, content) for name, content in blocks.items()}
    messages = {name: content for name, content in proofs.items() if name.endswith(".vaa")}
    if messages:
        _check_vaas(settings, messages)
        keys.add("the guardian sets in the reference data: compare them with Wormhole's core contract.")
    yield f"{archive}: {len(rows)} rows; {len(proofs)} proofs, each of them holds."
    if proofs:
        yield PROVEN
        yield "  the messages behind the statement are part of the ledger, or signed by Wormhole's guardians."
        yield RESTS_ON
        yield from (f"  {key}" for key in sorted(keys))
    yield "Not covered:"
    yield "  that the rows say what the messages say, and that none is left out: compare them with a lake's."


def _content(opened: zipfile.ZipFile, file: zipfile.ZipInfo) -> bytes:
    if file.file_size > _LARGEST:
        raise InvalidProofError(f"{file.filename}: {file.file_size:,} bytes are too many")
    return opened.read(file)


def _inclusion(settings: Settings, network: str | None, name: str, content: bytes) -> str:
    """Check a proof that a milestone applied a block; return on whose keys it rests."""
    try:
        proof = json.loads(content)
        lines = list(report_inclusion(settings, network, proof))
    except InvalidProofError as error:
        raise InvalidProofError(f"{name}: {error}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidProofError(f"{name}: the proof is damaged: {error}") from None
    if not any("applied" in line for line in lines):
        raise InvalidProofError(
            f"{name}: it shows a block in the Tangle, not that its transaction was applied"
        )
    return lines[-1].strip()


def _check_vaas(settings: Settings, files: Mapping[str, bytes]) -> None:
    """Check the guardians' signatures of messages.

    Raises:
        InvalidProofError: if a message lacks a quorum of valid signatures.
    """
    import pyarrow as pa

    from permalake.wormhole.codec.guardians import verify
    from permalake.wormhole.codec.vaa import decode_vaas
    from permalake.wormhole.reference import load_reference

    section = settings.wormhole
    names: Sequence[str] = sorted(files)
    vaas = decode_vaas(pa.array([files[name] for name in names], pa.binary()))
    held = verify(vaas, load_reference(section.reference if section else None).guardian_sets).ok().tolist()
    for name, holds in zip(names, held, strict=True):
        if not holds:
            raise InvalidProofError(f"{name}: too few valid signatures of guardians that are known here")
