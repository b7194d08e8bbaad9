"""VAAs and observations as Wormholescan's documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa
from sha3 import keccak_256

from permalake.contracts.quarantine import RAW_LIMIT
from permalake.contracts.rows import Row
from permalake.lake.serving import Scan
from permalake.web.table_pages import json_value
from permalake.wormhole.codec.native_addresses import native_addresses, native_tokens
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.reference import Reference
from permalake.wormhole.rest.identifiers import MessageId, of_row_key
from permalake.wormhole.rest.payloads import bridge_payload
from permalake.wormhole.rest.rows import Rows, base64_text, utc_text
from permalake.wormhole.rest.wormholescan_answers import Observation, VaaDocument

VAA_TABLES = ("message_publication", "quorum_state")
PARSED_TABLES = (*VAA_TABLES, "token_transfer_payload", "asset_meta_payload", "nft_transfer_payload")
Tables = Mapping[str, list[Row]]
"""The rows of a message, by table."""


def first_row(tables: Tables, name: str) -> Row:
    """Return the row that a message has in a table; an empty one where it has none."""
    return (tables.get(name) or [{}])[0]


def native_address(reference: Reference, chain: int, address: str) -> str | None:
    """Return an account of 32 bytes (hex) in its chain's own form; None where it is unknown."""
    return _native(native_addresses, reference, chain, address)


def native_token(reference: Reference, chain: int, address: str) -> str | None:
    """Return a token of 32 bytes (hex) in its chain's own form; None where the bytes are a hash alone."""
    return _native(native_tokens, reference, chain, address)


def _native(
    form: Callable[..., pa.StringArray], reference: Reference, chain: int, address: str
) -> str | None:
    native: str | None = form(pa.array([chain], pa.int32()), pa.array([address]), reference.chains)[0].as_py()
    return native


def vaa_document(tables: Tables, reference: Reference, *, parsed: bool = False) -> VaaDocument:
    """Return a VAA as a document of ``/api/v1/vaas``; ``digest`` is the single Keccak-256 of the body."""
    published = tables["message_publication"][0]
    raw: bytes = tables["quorum_state"][0]["signed_vaa"]
    message = of_row_key(published["row_key"])
    document = _document(message, published, raw, reference)
    if published["initiating_tx_id"]:
        document["txHash"] = published["initiating_tx_id"]
    if parsed and (payload := bridge_payload(tables)):
        document["payload"] = payload
    return document


def _document(message: MessageId, header: Mapping[str, Any], raw: bytes, reference: Reference) -> VaaDocument:
    seen = utc_text(header["timestamp"])
    document: VaaDocument = {
        "sequence": message.sequence,
        "id": message.text,
        "version": header["version"],
        "emitterChain": message.chain,
        "emitterAddr": message.emitter,
        "guardianSetIndex": header["guardian_set_index"],
        "vaa": base64_text(raw),
        "timestamp": seen,
        # The lake keeps no times of indexing; the VAA's own is a lower bound.
        "updatedAt": seen,
        "indexedAt": seen,
        "digest": single_digest(raw),
        "isDuplicated": False,
    }
    if (native := native_address(reference, message.chain, message.emitter)) is not None:
        document["emitterNativeAddr"] = native
    return document


def single_digest(raw: bytes) -> str:
    """Return the single Keccak-256 of a VAA's body in hex: the "hash" of Wormholescan and the SDKs."""
    vaas = decode_vaas(pa.array([raw]))
    start, length = int(vaas.body_start[0]), int(vaas.body_length[0])
    return str(keccak_256(vaas.data[start : start + length].tobytes()).hexdigest())


def duplicates(rows: Rows, message: MessageId, reference: Reference) -> list[VaaDocument]:
    """Return the quarantined VAAs of a message that were verified with different bodies."""
    identity = (
        message.chain.to_bytes(2, "big")
        + bytes.fromhex(message.emitter)
        + message.sequence.to_bytes(8, "big")
    )
    copies = rows(
        "SELECT DISTINCT raw FROM quarantine WHERE reason = $reason AND contains(hex(raw), $identity) "
        "AND octet_length(raw) < $limit ORDER BY raw",  # of more bytes only the head is kept
        {"reason": "conflicting_digest", "identity": identity.hex().upper(), "limit": RAW_LIMIT},
        quarantine=Scan(),
    )
    documents = []
    for row in copies:
        header = decode_vaas(pa.array([row["raw"]]))
        # The bytes may also occur inside a payload.
        if header.error[0] == 0 and header.row_key()[0].as_py() == message.row_key:
            facts = header.publication().to_pylist()[0]
            document = _document(message, facts, row["raw"], reference)
            document["isDuplicated"] = True
            documents.append(document)
    return documents


class GuardianSignature(NamedTuple):
    """A guardian (20 bytes), its signature of a message (65 bytes), and what is known of when.

    ``observed_at`` is None where nobody recorded it; ``is_signer``: the published VAA has a signature of the
    guardian.
    """

    guardian: bytes
    signature: bytes
    observed_at: datetime | None
    is_signer: bool


def signatures(tables: Tables, reference: Reference) -> list[GuardianSignature]:
    """Return the known signatures of a message: observed ones in order of time, then the VAA's other ones."""
    signed = dict(_signers(tables["quorum_state"][0]["signed_vaa"], reference))
    seen = [
        GuardianSignature(guardian, bytes.fromhex(row["signature"]), row["observed_at"], guardian in signed)
        for row in sorted(tables.get("observations") or (), key=itemgetter("observed_at", "guardian_address"))
        for guardian in [bytes.fromhex(row["guardian_address"])]
    ]
    for observation in seen:
        signed.pop(observation.guardian, None)
    return [*seen, *(GuardianSignature(*signature, None, True) for signature in signed.items())]


def observations(tables: Tables, reference: Reference) -> list[Observation]:
    """Return who signed a message and when, newest first.

    A signer of the VAA whose observation nobody recorded has the time of the VAA.
    """
    published = tables["message_publication"][0]
    message = of_row_key(published["row_key"])
    signed = [
        (signature.observed_at or published["timestamp"], signature.guardian, signature.signature)
        for signature in signatures(tables, reference)
    ]
    return [
        {
            "sequence": message.sequence,
            "id": f"{message.text}/{guardian.hex()}/{published['digest']}",
            "emitterChain": message.chain,
            "emitterAddr": message.emitter,
            "hash": base64_text(bytes.fromhex(published["digest"])),
            "txHash": published["initiating_tx_id"] or "",
            "guardianAddr": f"0x{guardian.hex()}",
            "signature": base64_text(signature),
            "updatedAt": json_value(moment),
            "indexedAt": json_value(moment),
        }
        for moment, guardian, signature in sorted(signed, reverse=True)
    ]


def _signers(raw: bytes, reference: Reference) -> list[tuple[bytes, bytes]]:
    """Return guardian (20 bytes) and signature (65 bytes) of each signature of a published VAA."""
    vaas = decode_vaas(pa.array([raw]))
    guardians = reference.guardian_sets.get(int(vaas.guardian_set_index[0]), ())
    return [
        (guardians[index], signature.tobytes())
        for index, signature in zip(vaas.guardian_index.tolist(), vaas.signature, strict=True)
        if index < len(guardians)
    ]
