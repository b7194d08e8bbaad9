"""Guardian signatures: the signers of a VAA, and whether they are a quorum.

A VAA counts when every signature recovers to the guardian it names and at least ``floor(2n/3) + 1`` of the
``n`` guardians of its set signed (wormhole-foundation/wormhole, ``Messages.sol``). Sets do not expire here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import pyarrow as pa
from coincurve import GLOBAL_CONTEXT, PublicKey
from coincurve._libsecp256k1 import ffi, lib
from numpy.typing import NDArray
from sha3 import keccak_256

from permalake.arrays.cursor import I64, U8
from permalake.contracts.reason_codes import MessageReason
from permalake.wormhole.codec.known_signer import MANY, signed_by
from permalake.wormhole.codec.vaa import ERRORS, SIGNATURE_SIZE, Bool, Vaas, gather

GuardianSets = Mapping[int, Sequence[bytes]]
_Count = TypeVar("_Count", int, I64)

REASONS: tuple[Literal["ok"] | MessageReason, ...] = (
    "ok",
    "malformed",
    "unknown_guardian_set",
    "duplicate_guardian",
    "bad_signature",
    "no_quorum",
)
OK, MALFORMED, UNKNOWN_SET, DUPLICATE, BAD_SIGNATURE, NO_QUORUM = range(6)

_ADDRESS_SIZE = 20
_UNCOMPRESSED_SIZE = 65
# Guardians write 0 or 1; the verifying contracts add 27 and accept no other.
_RECOVERY_IDS = 2
_TRIED = 20


@dataclass(frozen=True, eq=False)
class Verification:
    """The result of :func:`verify`, one entry per VAA.

    ``reason`` u8[n] indexes REASONS; ``valid_signatures`` i64[n] counts signatures that recover to their
    guardian (0 where none was checked); ``quorum`` i64[n] is the number that the set requires (0: unknown).
    """

    reason: U8
    valid_signatures: I64
    quorum: I64

    def ok(self) -> Bool:
        """Return which VAAs may be published."""
        fine: Bool = self.reason == OK
        return fine

    def reason_text(self) -> pa.StringArray:
        """Return the reasons as words."""
        return pa.array(REASONS).take(pa.array(self.reason))

    def detail(self, vaas: Vaas) -> pa.StringArray:
        """Return the fault of each VAA on one line; null where it has none."""
        lines: list[str | None] = [None] * len(vaas)
        for row in np.flatnonzero(self.reason).tolist():
            valid, signed = self.valid_signatures[row], vaas.signature_count[row]
            lines[row] = {
                MALFORMED: ERRORS[vaas.error[row]],
                UNKNOWN_SET: f"guardian set {vaas.guardian_set_index[row]} is not known",
                DUPLICATE: "a guardian signs twice",
                BAD_SIGNATURE: f"{valid} of {signed} signatures are valid",
                NO_QUORUM: f"{valid} valid signatures, {self.quorum[row]} are needed",
            }[int(self.reason[row])]
        return pa.array(lines, pa.string())


def quorum(guardians: _Count) -> _Count:
    """Return the signatures that a set of so many guardians requires (one number, or i64[n])."""
    return guardians * 2 // 3 + 1


def verify(vaas: Vaas, guardian_sets: GuardianSets) -> Verification:
    """Check every VAA against its guardian set; the reason is the first in REASONS' order that applies."""
    addresses, sizes = _tables(vaas.guardian_set_index, guardian_sets)
    size = sizes[:, 1]
    has_set = size > 0
    needed = np.where(has_set, quorum(size), 0)
    reason = np.zeros(len(vaas), np.uint8)
    row = vaas.signature_row
    twice = (row[1:] == row[:-1]) & (vaas.guardian_index[1:] == vaas.guardian_index[:-1])
    reason[row[1:][twice]] = DUPLICATE
    reason[~has_set] = UNKNOWN_SET
    reason[vaas.error != 0] = MALFORMED

    check = np.flatnonzero((reason[row] == OK) & (vaas.guardian_index < size[row]))
    signer = sizes[row[check], 0] + vaas.guardian_index[check]
    theirs = _signed(vaas, check, signer, addresses)
    valid = np.bincount(row[check][theirs], minlength=len(vaas)).astype(np.int64)

    fine = reason == OK
    reason[fine & (valid < needed)] = NO_QUORUM
    reason[fine & (valid < vaas.signature_count)] = BAD_SIGNATURE
    return Verification(reason, valid, needed)


def _signed(vaas: Vaas, check: I64, signer: I64, addresses: U8) -> Bool:
    """Return which of the signatures at ``check`` recover to ``addresses[signer]``, bool[k]."""
    signed = np.zeros(len(check), bool)
    counts = np.bincount(signer, minlength=len(addresses))
    rest = counts[signer] < MANY
    for guardian in np.flatnonzero(counts >= MANY).tolist():
        mine = np.flatnonzero(signer == guardian)
        signature, digest = _signatures(vaas, check[mine])
        key = _key_behind(addresses[guardian].tobytes(), signature, digest)
        if key is None:
            rest[mine] = True
        else:
            signed[mine] = signed_by(key, signature, digest)
    parts = check[rest]
    recovered = recover_addresses(
        vaas.data, vaas.signature_start[parts], vaas.digest, vaas.signature_row[parts]
    )
    # A signature that does not recover is invalid even if its set holds the zero address.
    signed[rest] = (recovered == addresses[signer[rest]]).all(axis=1) & recovered.any(axis=1)
    return signed


def _signatures(vaas: Vaas, at: I64) -> tuple[U8, U8]:
    """Return signatures, u8[k, 65], and the digests that they sign, u8[k, 32]."""
    return gather(vaas.data, vaas.signature_start[at], SIGNATURE_SIZE), vaas.digest[vaas.signature_row[at]]


def _key_behind(address: bytes, signatures: U8, digests: U8) -> bytes | None:
    """Return the public key of an address, if one of the first signatures recovers to it."""
    for signature, digest in zip(signatures[:_TRIED], digests[:_TRIED], strict=True):
        if recover_address(digest.tobytes(), signature.tobytes()) == address:
            key: bytes = PublicKey.from_signature_and_message(
                signature.tobytes(), digest.tobytes(), hasher=None
            ).format()
            return key
    return None


def recover_addresses(data: U8, signature_start: I64, digest: U8, digest_row: I64) -> U8:
    """Return the address behind each signature, u8[k, 20]; zeros where it does not recover.

    ``signature_start`` points into ``data``, ``digest_row`` into ``digest``. Calls libsecp256k1 without
    coincurve's objects, and without copying signature or digest.
    """
    parse, recover = lib.secp256k1_ecdsa_recoverable_signature_parse_compact, lib.secp256k1_ecdsa_recover
    serialize, context = lib.secp256k1_ec_pubkey_serialize, GLOBAL_CONTEXT.ctx
    signature = ffi.new("secp256k1_ecdsa_recoverable_signature *")
    key = ffi.new("secp256k1_pubkey *")
    size = ffi.new("size_t *", _UNCOMPRESSED_SIZE)
    public = ffi.new("unsigned char[]", _UNCOMPRESSED_SIZE)
    point = memoryview(ffi.buffer(public))[1:]
    first_signature = ffi.from_buffer("unsigned char[]", data)
    first_digest = ffi.from_buffer("unsigned char[]", digest)
    recovery_id = data[signature_start + SIGNATURE_SIZE - 1]
    nobody = bytes(_ADDRESS_SIZE)
    addresses = []
    for start, hashed, parity in zip(
        signature_start.tolist(), (digest_row * 32).tolist(), recovery_id.tolist(), strict=True
    ):
        if (
            parity < _RECOVERY_IDS
            and parse(context, signature, first_signature + start, parity)
            and recover(context, key, signature, first_digest + hashed)
        ):
            serialize(context, public, size, key, lib.SECP256K1_EC_UNCOMPRESSED)
            addresses.append(keccak_256(point).digest()[12:])
        else:
            addresses.append(nobody)
    return np.frombuffer(b"".join(addresses), np.uint8).reshape(-1, _ADDRESS_SIZE)


def recover_address(digest: bytes, signature: bytes) -> bytes | None:
    """Return the address that made one 65-byte signature; None where it does not recover."""
    data = np.frombuffer(signature, np.uint8)
    hashed = np.frombuffer(digest, np.uint8).reshape(1, 32)
    zero = np.zeros(1, np.int64)
    address = recover_addresses(data, zero, hashed, zero).tobytes()
    return address if any(address) else None


def _tables(index: NDArray[np.uint32], guardian_sets: GuardianSets) -> tuple[U8, I64]:
    """Return the guardians in use, u8[g, 20], and per row start and size of its set, i64[n, 2]."""
    used, of_row = np.unique(index, return_inverse=True)
    guardians: list[bytes] = []
    spans = np.zeros((len(used), 2), np.int64)
    for position, number in enumerate(used.tolist()):
        members = guardian_sets.get(number, ())
        spans[position] = len(guardians), len(members)
        guardians.extend(members)
    table = np.frombuffer(b"".join(guardians), np.uint8).reshape(-1, _ADDRESS_SIZE)
    return table, spans[of_row]
