"""Observations of guardians: JSON Lines of the documents of Wormholescan's ``GET /api/v1/observations``.

An observation says which guardian signed which message when: ``emitterChain``, ``emitterAddr``, ``sequence``,
``guardianAddr``, ``signature`` (base64) and ``indexedAt``. Lines that name no message belong to no day and
are left out; the others are verified by :mod:`permalake.wormhole.tables.observations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.contracts.quarantine import RAW_LIMIT
from permalake.errors import ConfigError
from permalake.pipeline.line_files import LineRange, files_below, refuse_damaged
from permalake.pipeline.line_tasks import document_lines, documents_in
from permalake.wormhole.sources.operation_documents import row_key

NAME = "observations"
FIELDS = ("emitterChain", "emitterAddr", "sequence", "guardianAddr", "signature", "indexedAt")
"""Fields of a document that are read."""
_LONGEST_CLAIM = 400


def files_of(path: Path) -> list[Path]:
    """Return every ``*.jsonl`` and ``*.jsonl.gz`` below a path.

    Raises:
        ConfigError: The path does not exist.
        InvalidInputError: A gzip file is damaged.
    """
    if not path.exists():
        raise ConfigError(
            f"wormhole.observations: {path} does not exist; point it at a folder or leave it out"
        )
    files = listed(path)
    refuse_damaged(files, "wormhole.observations")
    return files


def listed(path: Path) -> list[Path]:
    """Return every ``*.jsonl`` and ``*.jsonl.gz`` below a path, whether or not it can be read."""
    return files_below(path, (".jsonl", ".jsonl.gz"))


def read(spark: SparkSession, files: Sequence[Path | str | LineRange], source: str) -> DataFrame:
    """Return the documents in files that name a message, as :func:`of_lines` does."""
    return of_lines(document_lines(spark, files), source)


def of_lines(lines: DataFrame, source: str) -> DataFrame:
    """Return the documents in lines that name a message; what cannot be read of one is null.

    Columns: row_key, guardian [20 bytes hex], signature [bytes], observed_at, source, origin, raw.
    """
    documents = documents_in(lines, ", ".join(f"{name} string" for name in FIELDS))
    named = documents.where("emitterChain IS NOT NULL AND emitterAddr IS NOT NULL AND sequence IS NOT NULL")
    return named.select(
        row_key(F.col("emitterChain"), F.col("emitterAddr"), F.col("sequence")).alias("row_key"),
        F.regexp_replace(F.lower("guardianAddr"), "^0x", "").alias("guardian"),
        F.try_to_binary(F.col("signature"), F.lit("base64")).alias("signature"),
        F.try_to_timestamp(F.col("indexedAt")).alias("observed_at"),
        F.lit(source).alias("source"),
        F.concat_ws("#", "file", F.substring(F.concat_ws("/", *FIELDS[:4]), 1, _LONGEST_CLAIM)).alias(
            "origin"
        ),
        F.substring(F.to_json(F.struct(*FIELDS)).cast("binary"), 1, RAW_LIMIT).alias("raw"),
    )
