"""Observations of published messages → ``observations``: signers of a message, and when each was seen.

An observation counts when its guardian is of the message's set and its signature is that guardian's over the
message's digest; of several of one guardian the earliest. Others go to quarantine, with the first reason that
applies of malformed, unknown_guardian, bad_signature.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.contracts.reason_codes import MessageReason
from permalake.wormhole.codec.guardians import GuardianSets, recover_addresses
from permalake.wormhole.codec.vaa import GENESIS_TIME
from permalake.wormhole.contracts.tables import OBSERVATIONS
from permalake.wormhole.tables.documents import signature_count
from permalake.wormhole.tables.verified_vaas import REFUSED

_SIGNATURE, _DIGEST = 65, 32
# In a VAA a signature follows the guardian's index.
_SIGNED = 1 + _SIGNATURE
_ORDER = ("message", "guardian", "observed_at", "signature")
_FAULTS: dict[MessageReason, str] = {
    "malformed": "no guardian of 20 bytes, no signature of 65 bytes in base64, or no time since 2020-08-01",
    "unknown_guardian": "the guardian is not of the message's guardian set",
    "bad_signature": "the signature is not this guardian's over this message",
}


def of_messages(observed: DataFrame, publications: DataFrame, quorum: DataFrame) -> DataFrame:
    """Return the observations of some messages, those of a message side by side.

    ``observed`` are rows of ``observation_files.read``, ``publications`` of ``message_publication``,
    ``quorum`` of ``quorum_state``.
    """
    signed = quorum.select("row_key", _signers())
    digest = F.unhex("digest").alias("digest")
    messages = publications.select("row_key", "date", "guardian_set_index", digest).join(signed, "row_key")
    joined = observed.join(messages, "row_key").withColumnRenamed("row_key", "message")
    return joined.repartition("message").sortWithinPartitions("message")


def _signers() -> Column:
    """Return the indices of the guardians that signed a VAA, a byte each."""
    indices = F.transform(
        F.sequence(F.lit(0), signature_count(F.col("signed_vaa")) - 1),
        lambda at: F.hex(F.substring(F.col("signed_vaa"), F.lit(7) + at * _SIGNED, F.lit(1))),
    )
    return F.unhex(F.array_join(indices, "")).alias("signers")


def signed_messages(publication: pa.Table, quorum_state: pa.Table) -> pa.Table:
    """Return messages as :func:`of_messages` joins them, of rows of both tables in Arrow."""
    vaas = zip(quorum_state["row_key"].to_pylist(), quorum_state["signed_vaa"].to_pylist(), strict=True)
    signers = {key: vaa[6 : 6 + _SIGNED * vaa[5] : _SIGNED] for key, vaa in vaas}
    digests = [bytes.fromhex(digest) for digest in publication["digest"].to_pylist()]
    return (
        publication.select(["row_key", "date", "guardian_set_index"])
        .append_column("digest", pa.array(digests, pa.binary()))
        .append_column(
            "signers", pa.array([signers[key] for key in publication["row_key"].to_pylist()], pa.binary())
        )
    )


def judged_observations(observed: pa.Table, sets: GuardianSets) -> tuple[pa.Table, pa.Table]:
    """Return the rows of ``observations``, and those of the quarantine without their clock.

    ``observed`` are rows of :func:`of_messages`, all of a message together.
    """
    reason = _reasons(observed, sets)
    held = observed.append_column("reason", reason)
    refused = held.filter(pc.is_valid(reason))
    detail = [_FAULTS[reason] for reason in refused["reason"].to_pylist()]
    refused = refused.append_column("detail", pa.array(detail, pa.string()))
    kept = held.filter(pc.is_null(reason)).sort_by([(name, "ascending") for name in _ORDER])
    return _first_of_each(kept, sets), refused.select(REFUSED.names).cast(REFUSED)


def _reasons(observed: pa.Table, sets: GuardianSets) -> pa.Array:
    """Return why each observation does not count; null where it does."""
    number, guardian = observed["guardian_set_index"], observed["guardian"]
    readable = pc.and_(
        pc.fill_null(pc.match_substring_regex(guardian, "^[0-9a-f]{40}$"), False),
        pc.and_(
            pc.fill_null(pc.equal(pc.binary_length(observed["signature"]), _SIGNATURE), False),
            pc.fill_null(pc.greater_equal(observed["observed_at"], pa.scalar(GENESIS_TIME)), False),
        ),
    )
    members = [f"{at}:{guardian.hex()}" for at, guardians in sets.items() for guardian in guardians]
    named = pc.binary_join_element_wise(number.cast(pa.string()), guardian, ":")
    is_guardian = pc.is_in(named, pa.array(members, pa.string()))
    signed = _signed(observed, pc.and_(readable, is_guardian))
    reason = pc.case_when(
        pc.make_struct(pc.invert(readable), pc.invert(is_guardian), pc.invert(signed)),
        *(pa.scalar(fault) for fault in _FAULTS),
    )
    return reason.combine_chunks() if isinstance(reason, pa.ChunkedArray) else reason


def _signed(observed: pa.Table, worth: pa.ChunkedArray) -> pa.Array:
    """Return which of the observations that are worth a look recover to their guardian."""
    some = observed.filter(worth)
    rows = np.arange(some.num_rows)
    digests = _flat(some["digest"]).reshape(-1, _DIGEST)
    signers = recover_addresses(_flat(some["signature"]), rows * _SIGNATURE, digests, rows)
    claimed = np.frombuffer(bytes.fromhex("".join(some["guardian"].to_pylist())), np.uint8)
    genuine = np.zeros(observed.num_rows, bool)
    genuine[worth.to_numpy()] = (signers == claimed.reshape(signers.shape)).all(axis=1)
    return pa.array(genuine)


def _first_of_each(kept: pa.Table, sets: GuardianSets) -> pa.Table:
    """Return the first observation of each guardian and message, in the columns of ``observations``."""
    keys = pc.binary_join_element_wise(kept["message"], kept["guardian"], "/").combine_chunks()
    repeated = np.zeros(len(keys), bool)
    if len(keys) > 1:
        repeated[1:] = pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
    first = kept.filter(pa.array(~repeated))
    written = pa.array([signature.hex() for signature in first["signature"].to_pylist()], pa.string())
    columns = {
        "row_key": first["message"],
        "guardian_address": first["guardian"],
        "signature": written,
        "observed_at": first["observed_at"],
        "in_vaa": _in_vaa(first, sets),
        "date": first["date"],
    }
    return pa.table(columns).select(OBSERVATIONS.names)


def _in_vaa(rows: pa.Table, sets: GuardianSets) -> pa.Array:
    """Return 1 where the guardian's index is among the signers, else 0."""
    places = {
        number: {guardian.hex(): index for index, guardian in enumerate(sets[number])}
        for number in pc.unique(rows["guardian_set_index"]).to_pylist()
    }
    facts = (rows[name].to_pylist() for name in ("guardian_set_index", "guardian", "signers"))
    present = [places[number][guardian] in signers for number, guardian, signers in zip(*facts, strict=True)]
    return pa.array(present, pa.bool_()).cast(pa.int32())


def _flat(values: pa.ChunkedArray) -> np.ndarray:
    """Values of equal length, one after the other, u8."""
    return np.frombuffer(b"".join(values.to_pylist()), np.uint8)
