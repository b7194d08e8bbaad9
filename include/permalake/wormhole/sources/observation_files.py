"""Observations of guardians: JSON Lines of the documents of Wormholescan's ``GET /api/v1/observations``.

An observation says which guardian signed which message when: ``emitterChain``, ``emitterAddr``, ``sequence``,
``guardianAddr``, ``signature`` (base64) and ``indexedAt``. It only puts in order who signed a VAA that is
published anyway, so lines that cannot be read are left out.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.errors import ConfigError
from permalake.pipeline.line_files import files_below, refuse_damaged
from permalake.pipeline.line_tasks import json_documents

_FIELDS = ("emitterChain", "emitterAddr", "sequence", "guardianAddr", "signature", "indexedAt")


def read(spark: SparkSession, path: Path) -> DataFrame:
    """Read every ``*.jsonl`` and ``*.jsonl.gz`` below the path.

    Columns: row_key, guardian [20 bytes hex], signature [65 bytes], observed_at.

    Raises:
        ConfigError: The path does not exist.
        InvalidInputError: A gzip file is damaged.
    """
    if not path.exists():
        raise ConfigError(
            f"wormhole.observations: {path} does not exist; point it at a folder or leave it out"
        )
    files = files_below(path, (".jsonl", ".jsonl.gz"))
    refuse_damaged(files, "wormhole.observations")
    schema = ", ".join(f"{name} string" for name in _FIELDS)
    found = json_documents(spark, files, schema)
    sequence = F.when(F.length("sequence") < 16, F.lpad("sequence", 16, "0")).otherwise(F.col("sequence"))
    known = found.select(
        F.concat_ws(":", "emitterChain", F.lower("emitterAddr"), sequence).alias("row_key"),
        F.regexp_replace(F.lower("guardianAddr"), "^0x", "").alias("guardian"),
        F.try_to_binary(F.col("signature"), F.lit("base64")).alias("signature"),
        F.try_to_timestamp(F.col("indexedAt")).alias("observed_at"),
    )
    complete = F.col("observed_at").isNotNull() & F.col("guardian").rlike("^[0-9a-f]{40}$")
    return known.where(complete & (F.length("signature") == 65))
