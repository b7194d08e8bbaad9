"""The proofs of a statement as ``permalake verify`` checks them: every row rests on one that holds."""

from __future__ import annotations

import csv
import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from permalake.cli.inclusion_proofs import only_network, report_inclusion
from permalake.config import Settings
from permalake.errors import ConfigError
from permalake.transparency.proofs import InvalidProofError
from permalake.transparency.report import PROVEN, REST, RESTS_ON

_FOLDER = "proofs/"
_ROWS = "statement.csv"
_LARGEST = 256 << 20
"""Bytes of rows and proofs together; a proof has some thousands."""
_DAMAGED = (OSError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error, csv.Error)
"""Errors of a zip that is damaged, encrypted, or packed as no statement is, and of rows that are no CSV."""


def check_statement(settings: Settings, network: str | None, archive: Path) -> Iterator[str]:
    """Yield in words what the proofs of a statement show (``permalake statement --proofs``).

    ``network``: the network whose coordinator keys count; without it, the only one of the proofs' protocol.

    Raises:
        ConfigError: if the file is no such archive, or it is not clear whose keys count.
        InvalidProofError: if a proof does not hold, or a row has none; it is named.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            files = _files(opened)
        rows = list(csv.DictReader(io.StringIO(files.pop(_ROWS).decode())))
    except KeyError:
        raise ConfigError(
            f"{archive}: {_ROWS} is missing: no archive of `permalake statement --proofs`"
        ) from None
    except _DAMAGED as error:
        raise ConfigError(f"{archive}: no archive of `permalake statement --proofs`: {error}") from None
    blocks = {name: content for name, content in files.items() if name.endswith(".json")}
    messages = {name: content for name, content in files.items() if name.endswith(".vaa")}
    if other := files.keys() - blocks.keys() - messages.keys():
        raise InvalidProofError(f"{min(other)}: it is no proof that is known here")
    shown = [_inclusion(settings, network, name, content) for name, content in blocks.items()]
    proven, keys = {transaction for transaction, _ in shown}, {key for _, key in shown}
    if messages:
        proven |= _check_vaas(settings, messages)
        keys.add("the guardian sets in the reference data: compare them with Wormhole's core contract.")
    receipts = _check_rows(rows, proven)
    yield f"{archive}: {len(rows)} rows; {len(files)} proofs, each of them holds."
    if files:
        yield PROVEN
        yield "  the messages behind the statement are part of the ledger, or signed by Wormhole's guardians."
        yield RESTS_ON
        yield from (f"  {key}" for key in sorted(keys))
    yield REST
    yield "  that the rows say what the messages say, and that none is left out: compare them with a lake's."
    if receipts:
        yield f"  {receipts} rows without a transaction, as those of receipts are: nothing here proves them."


def _files(opened: zipfile.ZipFile) -> dict[str, bytes]:
    """Read rows and proofs, and nothing else."""
    members = [
        member
        for member in opened.infolist()
        if member.filename == _ROWS or (member.filename.startswith(_FOLDER) and not member.is_dir())
    ]
    size = sum(member.file_size for member in members)
    if size > _LARGEST:
        raise InvalidProofError(f"rows and proofs have {size:,} bytes, which are too many")
    if len({member.filename for member in members}) < len(members):
        raise InvalidProofError("the archive has a file twice")
    return {member.filename: opened.read(member) for member in members}


def _check_rows(rows: Sequence[Mapping[str, str]], proven: set[str]) -> int:
    """Check that the message or transaction of each row is proven; return how many rows have none.

    Raises:
        InvalidProofError: if one is not.
    """
    receipts = 0
    for number, row in enumerate(rows, 1):
        is_message = "row_key" in row
        named = row.get("row_key" if is_message else "transaction_id")
        if not named and not is_message:
            receipts += 1
        elif named not in proven:
            raise InvalidProofError(f"{_ROWS}, row {number}: there is no proof of {named or 'its message'}")
    return receipts


def _inclusion(settings: Settings, network: str | None, name: str, content: bytes) -> tuple[str, str]:
    """Check a proof that a milestone applied a block; return the transaction, and on whose keys it rests."""
    from permalake.iota.codec.inclusion_proof import proven_transaction

    try:
        proof = json.loads(content)
        lines = list(report_inclusion(settings, network, proof))
        protocol = settings.network(network or only_network(settings, proof)).protocol
        transaction = proven_transaction(proof, protocol)
    except InvalidProofError as error:
        raise InvalidProofError(f"{name}: {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidProofError(f"{name}: the proof is damaged: {error}") from None
    if not any("applied" in line for line in lines):
        raise InvalidProofError(
            f"{name}: it shows a block in the Tangle, not that its transaction was applied"
        )
    return transaction, lines[-1].strip()


def _check_vaas(settings: Settings, files: Mapping[str, bytes]) -> set[str]:
    """Check the guardians' signatures of messages; return their ids, as rows name them.

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
    return set(vaas.row_key().to_pylist())
