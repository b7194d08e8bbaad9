"""The JSON shapes of an ``archive_rest`` directory, and the record columns that follow from them.

Bodies are those of the REST API of a node (TIP-13 for Chrysalis, TIP-25 for Stardust), with raw bytes as hex.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.iota.cone.source_records import InclusionState, Record

_SPOILT = "_corrupt_record"
_SCHEMAS = {
    Record.MILESTONE: "index int, milestoneId string, messageId string, rawPayload string, coneSize int",
    Record.BLOCK: "milestone int, raw string, metadata struct<blockId:string, messageId:string, "
    "ledgerInclusionState:string, conflictReason:int, whiteFlagIndex:int>",
    Record.CONSUMED: "milestone int, outputId string, transactionIdSpent string, rawOutput string",
    Record.CHANGES: "index int, createdOutputs array<string>, consumedOutputs array<string>",
}
_STATES = {
    "conflicting": InclusionState.CONFLICTING,
    "included": InclusionState.INCLUDED,
    "noTransaction": InclusionState.NO_TRANSACTION,
}


def read(spark: SparkSession, files: Iterable[Path], kind: Record) -> DataFrame:
    """The lines of ``files`` in the shape of ``kind``, with ``file``; what is no JSON of that shape is kept
    as text."""
    reader = spark.read.schema(f"{_SCHEMAS[kind]}, {_SPOILT} string").option("mode", "PERMISSIVE")
    return reader.json([str(file.resolve()) for file in files]).select(
        "*", F.col("_metadata.file_path").alias("file")
    )


def milestone_times(spark: SparkSession, files: Iterable[Path]) -> DataFrame:
    """(file, milestone_index, timestamp [unix s]) as the milestone payloads themselves have them."""
    payload = _plain(F.col("rawPayload"))
    return (
        read(spark, files, Record.MILESTONE)
        .select("file", _u32(payload, 4).alias("milestone_index"), _u32(payload, 8).alias("timestamp"))
        .where("milestone_index is not null and timestamp is not null")
    )


def is_sound(kind: Record) -> Column:
    """Whether a line has the shape that its file promises."""
    needs = {
        Record.MILESTONE: ("index", "rawPayload"),
        Record.BLOCK: ("milestone", "raw"),
        Record.CONSUMED: ("milestone", "outputId", "rawOutput"),
        Record.CHANGES: ("index",),
    }
    sound = F.col(_SPOILT).isNull()
    for name in needs[kind]:
        value = F.col(name)
        sound = sound & (_hex(name) if name.startswith("raw") or name == "outputId" else value).isNotNull()
    return sound


def columns(kind: Record) -> dict[str, Column]:
    """The record columns of a sound line."""
    return {**dict.fromkeys(("id", "raw", "link", "state", "conflict", "number"), F.lit(None)), **_own(kind)}


def _own(kind: Record) -> dict[str, Column]:
    shared = {"kind": F.lit(int(kind))}
    if kind is Record.MILESTONE:
        return shared | {
            # The payload's own index counts; the JSON one is only where to look for it.
            "milestone": F.coalesce(_u32(_plain(F.col("rawPayload")), 4), F.col("index")),
            "id": _hex("milestoneId"),
            "raw": _hex("rawPayload"),
            "link": _hex("messageId"),
            "number": F.col("coneSize"),
        }
    if kind is Record.BLOCK:
        state = F.col("metadata.ledgerInclusionState")
        states = [F.when(state == name, int(code)) for name, code in _STATES.items()]
        return shared | {
            "milestone": F.col("milestone"),
            "id": F.coalesce(_hex("metadata.blockId"), _hex("metadata.messageId")),
            "raw": _hex("raw"),
            "state": F.coalesce(*states),
            "conflict": F.col("metadata.conflictReason"),
            "number": F.col("metadata.whiteFlagIndex"),
        }
    if kind is Record.CONSUMED:
        return shared | {
            "milestone": F.col("milestone"),
            "id": _hex("outputId"),
            "raw": _hex("rawOutput"),
            "link": _hex("transactionIdSpent"),
        }
    return shared | {
        "milestone": F.col("index"),
        "raw": _joined("createdOutputs"),
        "link": _joined("consumedOutputs"),
    }


def malformed(fallback: int) -> dict[str, Column]:
    """The record columns of a line without that shape. Its milestone is read off the text where it tells
    one; otherwise it belongs to milestone ``fallback``."""
    text = F.coalesce(F.col(_SPOILT), F.to_json(F.struct("*")))
    told = F.expr(
        f"try_cast(regexp_extract({_SPOILT}, '\"(?:milestone|index)\"\\\\s*:\\\\s*([0-9]+)', 1) as int)"
    )
    return {
        "kind": F.lit(int(Record.MALFORMED)),
        "milestone": F.coalesce(told, F.lit(fallback)),
        "raw": F.encode(text, "UTF-8"),
        **dict.fromkeys(("id", "link", "state", "conflict", "number"), F.lit(None)),
    }


def _plain(text: Column) -> Column:
    return F.regexp_replace(text, "^0x", "")


def _hex(name: str) -> Column:
    return F.unhex(_plain(F.col(name)))


def _joined(name: str) -> Column:
    ids = F.transform(F.coalesce(F.col(name), F.array().cast("array<string>")), _plain)
    return F.unhex(F.array_join(ids, ""))


def _u32(payload: Column, offset: int) -> Column:
    """The little-endian u32 at a byte offset of a hex payload; null when it is no number."""
    bytes_ = [F.substring(payload, 2 * (offset + i) + 1, 2) for i in (3, 2, 1, 0)]
    number = F.conv(F.concat(*bytes_), 16, 10).cast("long")
    return F.when(F.length(payload) >= 2 * (offset + 4), number)
