"""Distinct VAAs → judged VAAs: signatures verified, copies weighed, payloads decoded.

Of several copies of one identity with the same digest the one with most valid signatures stays, and of
equals the one whose bytes sort first. Verified copies with different digests cancel each other: all of them
go to quarantine as ``conflicting_digest``. Everything that did not verify goes there too, one row per
distinct bytes.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.contracts.reason_codes import MessageReason
from permalake.wormhole.codec.applications.batches import decode_applications
from permalake.wormhole.codec.bridge_payloads import bridge_kinds, decode_payloads
from permalake.wormhole.codec.guardians import Verification, verify
from permalake.wormhole.codec.vaa import Bool, Vaas, decode_vaas
from permalake.wormhole.reference import Reference
from permalake.wormhole.tables.copies import least, message_places

PUBLISHED = "published"
SURPLUS = "surplus"
CONFLICT: MessageReason = "conflicting_digest"
_MALFORMED: MessageReason = "malformed"
_CONFLICTING = "verified with another digest too"
_HASH = 64
REFUSED = pa.schema(
    [
        ("source", pa.string()),
        ("origin", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("raw", pa.binary()),
        ("date", pa.date32()),
    ]
)
"""Columns of the quarantine's rows, but for their clock."""
ELSEWHERE = pa.schema([("row_key", pa.string()), ("cause", pa.date32()), ("date", pa.date32())])
"""Pairs of days by message: a VAA of ``cause`` conflicts with a verified one of ``date``, out of range."""


@dataclass(frozen=True)
class VaaVerdicts:
    """VAAs of a range of days.

    Attributes:
        vaas: The rows of ``message_publication`` (of bytes without a body null), with raw, source, origin,
            claimed_id, detail and ``outcome``: ``published``, ``surplus`` (another copy was kept), or the
            reason of the quarantine.
        payloads: Structs parallel to ``vaas``, null where there is none: ``transfer``, ``meta`` and ``nft``
            with the columns of the payload tables, ``application``, ``moved`` and ``delivery`` with those of
            the tables of applications.
        elsewhere: See :data:`ELSEWHERE`.
    """

    vaas: pa.Table
    payloads: pa.Table
    elsewhere: pa.Table

    @property
    def published(self) -> pa.Array:
        """Which VAAs are published, bool[n]."""
        return pc.equal(self.vaas["outcome"], PUBLISHED)

    @property
    def refused(self) -> pa.Table:
        """Rows of the quarantine (:data:`REFUSED`)."""
        kept = pc.is_in(self.vaas["outcome"], pa.array([PUBLISHED, SURPLUS]))
        rows = self.vaas.filter(pc.invert(kept))
        return rows.rename_columns({"outcome": "reason"}).select(REFUSED.names).cast(REFUSED)


def verified(candidates: pa.Table, reference: Reference) -> VaaVerdicts:
    """Verify the VAAs of whole messages and judge those ``in_range``.

    ``candidates`` are rows of :func:`~permalake.wormhole.tables.copies.of_days`, ordered by ``message`` and
    ``raw``.
    """
    candidates = candidates.combine_chunks()
    vaas = decode_vaas(candidates["raw"])
    check = verify(vaas, reference.guardian_sets)
    readable = pc.is_null(candidates["fault"]).combine_chunks().to_numpy(zero_copy_only=False)
    ok = check.ok() & readable
    weights = _weigh(candidates, vaas, check, ok)
    inside = candidates["in_range"]
    mine = pa.table(
        {name: candidates[name] for name in ("raw", "source", "origin", "claimed_id", "date")}
        | _columns(vaas)
        | {
            "initiating_tx_id": _transaction_id(weights.told_tx_id, vaas, reference),
            "outcome": _outcomes(check, ok, weights),
            "detail": pc.if_else(
                pa.array(ok), _CONFLICTING, pc.coalesce(candidates["fault"], check.detail(vaas))
            ),
        }
    )
    payloads = decode_payloads(vaas, bridge_kinds(vaas, reference.bridges), select=ok)
    structs = payloads.structs(len(vaas)) | decode_applications(vaas, payloads, reference.contracts(), ok)
    elsewhere = _elsewhere(candidates, mine["row_key"], ok, weights)
    return VaaVerdicts(mine.filter(inside), pa.table(structs).filter(inside), elsewhere)


@dataclass(frozen=True)
class _Weights:
    """The relation of one message's copies to each other, one entry per VAA."""

    message: np.ndarray
    best: Bool
    conflict: Bool
    told_tx_id: pa.Array


def _weigh(candidates: pa.Table, vaas: Vaas, check: Verification, ok: Bool) -> _Weights:
    message = message_places(candidates["message"])
    tx_id = pc.if_else(pa.array(ok), candidates["tx_id"].combine_chunks(), pa.scalar(None, pa.string()))
    size = len(vaas)
    best, conflict = np.ones(size, bool), np.zeros(size, bool)
    least_ids = least(tx_id, message)
    if len(least_ids) < size:
        order = np.lexsort((np.arange(size), -check.valid_signatures, ~ok, message))
        best[order[1:]] = message[order[1:]] != message[order[:-1]]
        conflict = _conflicts(vaas, ok, message)[message]
        least_ids = least_ids.take(pa.array(message))
    return _Weights(message, best, conflict, least_ids)


def _conflicts(vaas: Vaas, ok: Bool, message: np.ndarray) -> Bool:
    """Return which messages have verified copies with different digests."""
    rows = np.flatnonzero(ok)
    apart = np.zeros(int(message[-1]) + 1, bool)
    same = message[rows[1:]] == message[rows[:-1]]
    unlike = (vaas.digest[rows[1:]] != vaas.digest[rows[:-1]]).any(axis=1)
    apart[message[rows[1:]][same & unlike]] = True
    return apart


def _columns(vaas: Vaas) -> dict[str, pa.Array]:
    body = vaas.publication()
    return dict(zip(body.schema.names, body.columns, strict=True))


def _outcomes(check: Verification, ok: Bool, weights: _Weights) -> pa.Array:
    reason = check.reason_text()
    # A line that could not be read is no VAA, whatever its bytes are.
    reason = pc.if_else(pa.array(check.ok() & ~ok), _MALFORMED, reason)
    kept = pc.if_else(pa.array(weights.best), PUBLISHED, SURPLUS)
    return pc.if_else(pa.array(ok), pc.if_else(pa.array(weights.conflict), CONFLICT, kept), reason)


def _transaction_id(reported: pa.Array, vaas: Vaas, reference: Reference) -> pa.Array:
    """Return the transactions as reported, on EVM chains in one form."""
    evm = [chain.id for chain in reference.chains.values() if chain.family == "evm"]
    on_evm = pa.array(np.isin(vaas.emitter_chain, evm) & vaas.has_body)
    hashed = pc.match_substring_regex(reported, "^(0[xX])?[0-9a-fA-F]{64}$")
    digits = pc.utf8_lower(pc.utf8_slice_codeunits(reported, start=-_HASH))
    written = pc.binary_join_element_wise("0x", digits, "")
    return pc.if_else(pc.fill_null(pc.and_(on_evm, hashed), False), written, reported)


def _elsewhere(candidates: pa.Table, row_key: pa.ChunkedArray, ok: Bool, weights: _Weights) -> pa.Table:
    """Return pairs of days of conflicting copies, one within the range and one out of it."""
    inside = candidates["in_range"].combine_chunks().to_numpy(zero_copy_only=False)
    here = np.flatnonzero(weights.conflict & inside)
    far: dict[int, set[dt.date]] = {}
    for row in np.flatnonzero(weights.conflict & ok & ~inside).tolist():
        far.setdefault(int(weights.message[row]), set()).add(candidates["date"][row].as_py())
    pairs = [(row, day) for row in here.tolist() for day in sorted(far.get(int(weights.message[row]), ()))]
    rows = pa.array([row for row, _ in pairs], pa.int64())
    days = pa.array([day for _, day in pairs], pa.date32())
    columns = [row_key.take(rows), candidates["date"].take(rows), days]
    return pa.table(columns, names=ELSEWHERE.names).cast(ELSEWHERE)


def conflicts_elsewhere(elsewhere: DataFrame, publications: DataFrame) -> list[tuple[dt.date, dt.date]]:
    """Return pairs of days on which verified VAAs of one message have different digests.

    The second day is out of the range and still published. ``elsewhere`` are such pairs by message
    (:data:`ELSEWHERE`), ``publications`` is the whole table ``message_publication``. There are at most as
    many rows as days.
    """
    others = [row["date"] for row in elsewhere.select("date").distinct().collect()]
    published_there = publications.where(F.col("date").isin(others)).select("row_key", "date")
    pairs = elsewhere.join(published_there, ["row_key", "date"]).select("cause", "date").distinct()
    return [(row["cause"], row["date"]) for row in pairs.orderBy("cause", "date").collect()]
