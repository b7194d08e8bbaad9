"""Source ``files``: VAA documents from JSON Lines and CSV dumps.

Under one path any number of files and folders may lie:

- ``*.jsonl``, ``*.jsonl.gz``: documents as Wormholescan's ``GET /api/v1/vaas`` serves them (``id``, ``vaa``
  in base64, ``timestamp``, and where known ``indexedAt`` and ``txHash``), one a line;
- ``*.csv``, ``*.csv.gz``: ``chain/emitter/sequence,hex`` a line, without a header.

Nothing is refused here: a line that cannot be read becomes a document with a ``fault``, whose bytes are the
line's own (of one that is too long its head), and ends in quarantine. Files that do not decompress are
refused before (``day_input``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.contracts.quarantine import RAW_LIMIT, whole_in_words
from permalake.errors import ConfigError
from permalake.pipeline.line_files import LineRange, files_below
from permalake.pipeline.line_tasks import document_lines

NAME = "files"

_FIELDS = ("id", "vaa", "timestamp", "indexedAt", "txHash")
_JSON_SCHEMA = ", ".join(f"`{name}` string" for name in (*_FIELDS, "_broken"))
_JSON, _CSV = (".jsonl", ".jsonl.gz"), (".csv", ".csv.gz")
_NO_CSV = "the line is not chain/emitter/sequence,hex"
_HEX_PAIRS = r"^(0[xX])?([0-9a-fA-F]{2})*$"


def read(spark: SparkSession, path: Path | str) -> DataFrame:
    """Documents under ``path``: (source, origin, claimed_id, raw, fault, document_time, indexed_at, tx_id).

    ``claimed_id`` is what the document says it is (``chain/emitter/sequence``), ``raw`` the bytes of the VAA,
    ``origin`` the file and the claimed id. Raises :class:`ConfigError` when the path does not exist.
    """
    if not Path(path).exists():
        raise ConfigError(f"wormhole.path: {path} does not exist; point it at the folder with the VAA files")
    return read_files(spark, files_of(Path(path)))


def read_files(spark: SparkSession, files: Sequence[Path | LineRange]) -> DataFrame:
    """Read single files, or ranges of them, like :func:`read`."""
    json, csv = ([file for file in files if file.name.endswith(ends)] for ends in (_JSON, _CSV))
    return json_lines(spark, json, NAME).unionByName(_csv_dump(spark, csv))


def files_of(path: Path) -> list[Path]:
    """Return the files that are read below ``path``: none that a link out of it leads to."""
    return files_below(path, (*_JSON, *_CSV))


def json_lines(spark: SparkSession, files: Sequence[Path | str | LineRange], source: str) -> DataFrame:
    """Documents in files (or objects) of JSON Lines, of a source of that name."""
    return of_json_lines(document_lines(spark, files), source)


def of_json_lines(lines: DataFrame, source: str) -> DataFrame:
    """Documents in lines of JSON (of :func:`~permalake.pipeline.line_tasks.document_lines`)."""
    options = {"columnNameOfCorruptRecord": "_broken"}
    parsed = F.from_json(F.col("value"), _JSON_SCHEMA, options).alias("told")
    names = ("value", "file", "too_long")
    lines = lines.withColumnRenamed("fault", "too_long").select(*names, parsed)
    lines = lines.select(*names, "told.*")
    broken = F.col("_broken").isNotNull() | ~F.ltrim("value").startswith("{")
    # In steps, so that no line is decoded twice.
    lines = lines.select("*", F.try_to_binary(F.col("vaa"), F.lit("base64")).alias("decoded"))
    fault = (
        F.when(F.col("too_long").isNotNull(), F.col("too_long"))
        .when(broken, F.lit("the line is not a JSON object"))
        .when(F.col("vaa").isNull(), F.lit("the document has no field vaa"))
        .when(F.col("decoded").isNull(), F.lit("the field vaa is not base64"))
    )
    lines = lines.select("*", fault.alias("fault"))
    return lines.select(
        *_origin(_field("id"), source),
        F.when(F.col("fault").isNull(), F.col("decoded")).otherwise(_head()).alias("raw"),
        _explained(F.col("fault")).alias("fault"),
        F.try_to_timestamp(_field("timestamp")).alias("document_time"),
        F.try_to_timestamp(_field("indexedAt")).alias("indexed_at"),
        F.nullif(F.trim("txHash"), F.lit("")).alias("tx_id"),
    )


def _field(name: str) -> Column:
    """Return a field of the document; of a broken line whatever of it can still be read."""
    salvaged = F.regexp_extract(F.col("_broken"), f'"{name}"\\s*:\\s*"([^"]*)"', 1)
    return F.when(F.col("_broken").isNull(), F.col(name)).otherwise(F.nullif(salvaged, F.lit("")))


def _csv_dump(spark: SparkSession, files: Sequence[Path | LineRange]) -> DataFrame:
    lines = document_lines(spark, files).withColumnRenamed("fault", "too_long")
    comma = F.instr(F.col("value"), ",")
    hexed = F.trim(F.substring(F.col("value"), comma + 1, F.length("value")))
    readable = (comma > 0) & hexed.rlike(_HEX_PAIRS) & F.col("too_long").isNull()
    never = F.lit(None)
    return lines.select(
        *_origin(F.when(comma > 0, F.trim(F.substring(F.col("value"), F.lit(1), comma - 1))), NAME),
        F.when(readable, F.unhex(F.regexp_replace(hexed, "^0[xX]", ""))).otherwise(_head()).alias("raw"),
        _explained(F.coalesce("too_long", F.when(~readable, F.lit(_NO_CSV)))).alias("fault"),
        never.cast("timestamp").alias("document_time"),
        never.cast("timestamp").alias("indexed_at"),
        never.cast("string").alias("tx_id"),
    )


def _head() -> Column:
    """Return what is kept of a line that cannot be read."""
    return F.substring(F.col("value").cast("binary"), 1, RAW_LIMIT)


def _explained(fault: Column) -> Column:
    """Return a fault, with the length and digest of a line of which only the head is kept."""
    line = F.col("value").cast("binary")
    whole = F.format_string(whole_in_words("%d", "%s"), F.octet_length(line), F.sha2(line, 256))
    return F.when(F.octet_length(line) > RAW_LIMIT, F.concat(fault, F.lit("; "), whole)).otherwise(fault)


def _origin(claimed_id: Column, source: str) -> list[Column]:
    return [
        F.lit(source).alias("source"),
        F.concat_ws("#", "file", claimed_id).alias("origin"),
        claimed_id.alias("claimed_id"),
    ]
