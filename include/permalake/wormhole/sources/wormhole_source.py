"""The configured source of VAA documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.config import Settings
from permalake.config.networks import WormholeSettings
from permalake.errors import ConfigError
from permalake.intervals import ranges
from permalake.pipeline.line_files import TOO_LONG
from permalake.pipeline.line_tasks import json_documents
from permalake.spark.frames import of_rows
from permalake.wormhole.sources import guardian, vaa_files, wormholescan
from permalake.wormhole.sources.document_cache import DocumentCache, NoteNews
from permalake.wormhole.sources.operation_documents import files_of, reported_sides, row_key_of

_SEEN = "seen.json"
_DOCUMENT = (
    "source string, origin string, claimed_id string, raw binary, fault string, document_time timestamp, "
    "indexed_at timestamp, tx_id string"
)
_OPERATION = (
    "id string, vaa string, sourceChain struct<`from`: string, `transaction`: struct<txHash: string>>"
)


@dataclass(frozen=True)
class Days:
    """Days to build, inclusive; ``force``: ask live sources anew for what they have answered already."""

    start: date
    end: date
    force: bool = False

    @property
    def around(self) -> tuple[date, date]:
        """The days whose documents are read: copies of one message may lie some days apart."""
        reach = timedelta(wormholescan.LOOK_BACK)
        return self.start - reach, self.end + reach


def section(settings: Settings) -> WormholeSettings:
    """Return the section ``[wormhole]``; raise :class:`ConfigError` when there is none."""
    if settings.wormhole is None:
        raise ConfigError("wormhole: not configured; add a [wormhole] section with source and path")
    return settings.wormhole


def is_live(section: WormholeSettings) -> bool:
    """Whether the source is a service."""
    return section.source == wormholescan.NAME


def fetch(settings: Settings, section: WormholeSettings, days: Days, note_news: NoteNews) -> Counter[date]:
    """Land a live source's documents (see :func:`wormholescan.fetch`); return new VAAs by day."""
    if not is_live(section):
        return Counter()
    return wormholescan.fetch(settings, section, days.start, days.end, note_news=note_news, force=days.force)


def documents(spark: SparkSession, settings: Settings, section: WormholeSettings, days: Days) -> DataFrame:
    """Documents of the configured source that the days need; their columns are those of ``vaa_files.read``.

    ``files`` are read whole, of a live source the landed days around; with them what a guardian added.
    """
    dated = _dated(_own_documents(spark, settings, section, days), days.start)
    if section.guardian_url is not None:
        from_guardian = landed_documents(spark, guardian.landing(settings, section), guardian.NAME, days)
        dated = dated.unionByName(from_guardian)
    if not has_operations(section):
        return dated
    operations = _operations(spark, _operation_files(settings, section, days))
    if is_live(section):  # What carries a VAA is a document of its own and brings its transaction along.
        operations = operations.where(F.col("vaa").isNull())
    return _with_transactions(dated, operations)


def _own_documents(
    spark: SparkSession, settings: Settings, section: WormholeSettings, days: Days
) -> DataFrame:
    if is_live(section):
        landed = wormholescan.landing(settings, section)
        return landed_documents(spark, landed, wormholescan.NAME, days).unionByName(
            _of_operations(_operations(spark, _operation_files(settings, section, days)))
        )
    if section.path is None:
        raise ConfigError("wormhole.path: missing; point it at the folder with the VAA files")
    return vaa_files.read(spark, section.path)


def _dated(documents: DataFrame, first: date) -> DataFrame:
    """Date lines too long for their time to be read: the first day that is built has them in quarantine."""
    begin = F.lit(datetime.combine(first, time(), UTC)).cast("timestamp")
    undated = F.col("fault").startswith(TOO_LONG) & F.col("indexed_at").isNull()
    return documents.withColumn("document_time", F.coalesce("document_time", F.when(undated, begin)))


def _with_transactions(documents: DataFrame, operations: DataFrame) -> DataFrame:
    """Documents, with the transactions that operations name where a document names none."""
    identified = operations.where(F.col("id").isNotNull())
    transactions = identified.groupBy(F.lower("id").alias("operation")).agg(
        F.min(_tx_id()).alias("operation_tx_id")
    )
    return documents.join(transactions, F.lower("claimed_id") == F.col("operation"), "left").select(
        *(name for name in documents.columns if name != "tx_id"),
        F.coalesce("tx_id", "operation_tx_id").alias("tx_id"),
    )


def landed_documents(spark: SparkSession, landed: DocumentCache, source: str, days: Days) -> DataFrame:
    """Landed VAA documents of the days around."""
    paths = landed.paths("vaas", *days.around)
    return vaa_files.json_lines(spark, paths, source) if paths else of_rows(spark, [], _DOCUMENT)


def reported(spark: SparkSession, settings: Settings, section: WormholeSettings, days: Days) -> DataFrame:
    """Return what operations report of transactions, one row per operation with a sender.

    Columns: row_key, sender, which is ``sourceChain.from`` as the service writes it.
    """
    operations = _operations(spark, _operation_files(settings, section, days))
    senders = operations.select(
        row_key_of(F.col("id")).alias("row_key"), F.col("sourceChain.from").alias("sender")
    )
    return senders.where(F.col("row_key").isNotNull() & (F.trim("sender") != ""))


def redemptions(
    spark: SparkSession, settings: Settings, section: WormholeSettings, days: Days
) -> DataFrame | None:
    """Return what operations report of redemptions; None where the source has none.

    Columns: see :func:`permalake.wormhole.sources.operation_documents.reported_sides`.
    """
    if not has_operations(section):
        return None
    return reported_sides(spark, _operation_files(settings, section, days))


def ask_again(
    settings: Settings, section: WormholeSettings, days: Sequence[date], note_news: NoteNews
) -> Counter[date]:
    """Land the operations of some days anew; return new VAAs by day. ``note_news``: as of the cache.

    Raises:
        PermalakeError: See :func:`wormholescan.fetch`.
    """
    news: Counter[date] = Counter()
    for start, end in ranges(days) if is_live(section) else ():
        news += wormholescan.fetch_operations(settings, section, start, end, note_news)
    return news


def has_operations(section: WormholeSettings) -> bool:
    """Whether somebody reports what became of a message: a live source, or files of operations."""
    return is_live(section) or section.operations is not None


def _operation_files(settings: Settings, section: WormholeSettings, days: Days) -> Sequence[Path | str]:
    if is_live(section):
        return wormholescan.landing(settings, section).paths("operations", *days.around)
    return files_of(section.operations) if section.operations else []


def _operations(spark: SparkSession, files: Sequence[Path | str]) -> DataFrame:
    return json_documents(spark, files, _OPERATION)


def _of_operations(operations: DataFrame) -> DataFrame:
    """Return documents of the VAAs that operations carry.

    Their time is that of the transaction, so it dates a VAA without a real time only where no document of the
    VAA itself does.
    """
    vaa = F.try_to_binary(F.col("vaa"), F.lit("base64"))
    never = F.lit(None).cast("timestamp")
    return operations.where(F.col("vaa").isNotNull()).select(
        F.lit(wormholescan.NAME).alias("source"),
        F.concat_ws("#", "file", "id").alias("origin"),
        F.col("id").alias("claimed_id"),
        F.coalesce(vaa, F.encode("vaa", "UTF-8")).alias("raw"),
        F.when(vaa.isNull(), F.lit("the field vaa is not base64")).alias("fault"),
        never.alias("document_time"),
        never.alias("indexed_at"),
        _tx_id().alias("tx_id"),
    )


def _tx_id() -> Column:
    return F.nullif(F.trim("sourceChain.transaction.txHash"), F.lit(""))


def new_files(settings: Settings, section: WormholeSettings) -> dict[str, list[int]]:
    """Return files of the source ``files`` that are new or changed since :func:`saw`: their size and time."""
    if is_live(section) or section.path is None or not section.path.exists():
        return {}
    before = _seen(settings, section).read(_SEEN) or {}
    return {name: facts for name, facts in _listing(section.path).items() if before.get(name) != facts}


def saw(settings: Settings, section: WormholeSettings, files: dict[str, list[int]]) -> None:
    """Do not report these files again."""
    seen = _seen(settings, section)
    seen.write(_SEEN, (seen.read(_SEEN) or {}) | files)


def _seen(settings: Settings, section: WormholeSettings) -> DocumentCache:
    return DocumentCache(settings, vaa_files.NAME, str(section.path))


def _listing(root: Path) -> dict[str, list[int]]:
    return {str(file): [file.stat().st_size, file.stat().st_mtime_ns] for file in vaa_files.files_of(root)}
