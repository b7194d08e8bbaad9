"""Candidates → judged VAAs: signatures verified, copies weighed, payloads decoded.

Of several copies of one identity with the same digest the one with most valid signatures stays, and of
equals the one whose bytes sort first. Verified copies with different digests cancel each other: all of them
go to quarantine as ``conflicting_digest``. Everything that did not verify goes there too, one row per
distinct bytes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from permalake.wormhole.codec.applications.batches import application_struct_types, decode_applications
from permalake.wormhole.codec.bridge_payloads import bridge_kinds, decode_payloads, payload_struct_types
from permalake.wormhole.codec.guardians import verify
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.reference import load_reference

PUBLISHED = "published"
SURPLUS = "surplus"
CONFLICT = "conflicting_digest"
_TASKS_PER_CORE = 2
_KEPT = ("raw", "source", "origin", "claimed_id", "fault", "tx_id", "date", "in_range")


def judged(candidates: DataFrame, reference: Path | None) -> DataFrame:
    """Verify the VAAs of the range and give each an ``outcome``.

    ``published``, ``surplus`` (another copy was kept), or the reason of its quarantine. Other columns: those
    of ``message_publication``, ``raw``, ``source``, ``origin``, ``claimed_id``, ``detail``, ``elsewhere`` (of
    conflicting ones: days of verified copies out of the range), and the nullable structs ``transfer``,
    ``meta`` and ``nft`` with the columns of the payload tables, ``application``, ``moved`` and ``delivery``
    with those of the tables of applications.

    ``reference`` is the directory of additional reference data.
    """
    evm_chains = [chain.id for chain in load_reference(reference).chains.values() if chain.family == "evm"]
    # Signatures are most of the work, and few rows at once are much of it.
    tasks = _TASKS_PER_CORE * candidates.sparkSession.sparkContext.defaultParallelism
    spread = candidates.select(*_KEPT).repartition(tasks, "raw")
    verified = spread.mapInArrow(_verifier(reference), _verified_schema(candidates))
    copies = Window.partitionBy(F.coalesce("row_key", F.sha2("raw", 256)))
    best = copies.orderBy(F.col("ok").desc(), F.col("valid_signatures").desc(), F.col("raw"))
    sound = F.when(F.col("ok"), F.col("digest"))
    weighed = verified.select(
        "*",
        (F.min(sound).over(copies) != F.max(sound).over(copies)).alias("conflict"),
        F.min(F.when(F.col("ok"), F.col("tx_id"))).over(copies).alias("told_tx_id"),
        F.row_number().over(best).alias("place"),
        F.collect_set(F.when(F.col("ok") & ~F.col("in_range"), F.col("date"))).over(copies).alias("far"),
    )
    conflicting = F.lit("verified with another digest too")
    return weighed.where("in_range").select(
        *(
            name
            for name in verified.columns
            if name not in {"tx_id", "in_range", "ok", "reason", "detail", "fault"}
        ),
        _transaction_id(F.col("told_tx_id"), evm_chains).alias("initiating_tx_id"),
        F.when(~F.col("ok"), F.col("reason"))
        .when(F.col("conflict"), F.lit(CONFLICT))
        .when(F.col("place") == 1, F.lit(PUBLISHED))
        .otherwise(F.lit(SURPLUS))
        .alias("outcome"),
        F.when(F.col("ok"), conflicting).otherwise(F.coalesce("fault", "detail")).alias("detail"),
        F.when(F.col("conflict"), F.col("far")).alias("elsewhere"),
    )


def conflicts_elsewhere(vaas: DataFrame, publications: DataFrame) -> list[tuple[dt.date, dt.date]]:
    """Return pairs of days on which verified VAAs of one message have different digests.

    The second day is out of the range and still published. ``publications`` is the whole table
    ``message_publication``. There are at most as many rows as days.
    """
    apart = vaas.where(F.size("elsewhere") > 0).select(
        "row_key", F.col("date").alias("cause"), F.explode("elsewhere").alias("date")
    )
    others = [row["date"] for row in apart.select("date").distinct().collect()]
    if not others:
        return []
    published_there = publications.where(F.col("date").isin(others)).select("row_key", "date")
    pairs = apart.distinct().join(published_there, ["row_key", "date"]).select("cause", "date").distinct()
    return [(row["cause"], row["date"]) for row in pairs.orderBy("cause", "date").collect()]


def of_bridges(vaas: DataFrame) -> DataFrame:
    """(row_key, date) of the published transfers of the token and NFT bridges."""
    transfer = F.col("transfer").isNotNull() | F.col("nft").isNotNull()
    return published(vaas).where(transfer).select("row_key", "date")


def published(vaas: DataFrame) -> DataFrame:
    """Return the rows of ``message_publication``."""
    return vaas.where(F.col("outcome") == PUBLISHED)


def quorum_state(vaas: DataFrame) -> DataFrame:
    """Return the rows of ``quorum_state``."""
    return published(vaas).select("row_key", F.col("raw").alias("signed_vaa"), "date")


def refused(vaas: DataFrame) -> DataFrame:
    """Judged VAAs that go to quarantine."""
    return vaas.where(~F.col("outcome").isin(PUBLISHED, SURPLUS))


def quarantine(vaas: DataFrame) -> DataFrame:
    """Return the rows of ``quarantine``."""
    return refused(vaas).select(
        "source",
        "origin",
        F.col("outcome").alias("reason"),
        "detail",
        "raw",
        F.current_timestamp().alias("seen_at"),
        "date",
    )


def _transaction_id(tx_id: Column, evm_chains: Sequence[int]) -> Column:
    on_evm = F.col("emitter_chain").isin(*evm_chains) & tx_id.rlike("^(0[xX])?[0-9a-fA-F]{64}$")
    return F.when(on_evm, F.concat(F.lit("0x"), F.lower(F.right(tx_id, F.lit(64))))).otherwise(tx_id)


def _verified_schema(candidates: DataFrame):  # type: ignore[no-untyped-def]
    schema = candidates.select(*_KEPT).schema
    own = {"ok": pa.bool_(), "reason": pa.string(), "detail": pa.string(), "valid_signatures": pa.int64()}
    body = decode_vaas(pa.array([], pa.binary())).publication().schema
    fields = [*(pa.field(*pair) for pair in own.items()), *body]
    structs = {**payload_struct_types(), **application_struct_types()}
    fields += [pa.field(name, kind) for name, kind in structs.items()]
    for field in from_arrow_schema(pa.schema([field.with_nullable(True) for field in fields])):
        schema = schema.add(field)
    return schema


def _verifier(reference: Path | None) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = load_reference(reference)
        contracts = known.contracts()
        for batch in batches:
            vaas = decode_vaas(batch["raw"])
            check = verify(vaas, known.guardian_sets)
            payloads = decode_payloads(vaas, bridge_kinds(vaas, known.bridges), select=check.ok())
            body = vaas.publication()
            columns = {name: batch[name] for name in _KEPT}
            columns |= {
                "ok": pa.array(check.ok()),
                "reason": check.reason_text(),
                "detail": check.detail(vaas),
                "valid_signatures": pa.array(check.valid_signatures, pa.int64()),
            }
            columns |= dict(zip(body.schema.names, body.columns, strict=True))
            columns |= payloads.structs(len(vaas))
            columns |= decode_applications(vaas, payloads, contracts, check.ok())
            yield pa.RecordBatch.from_pydict(columns)

    return work
