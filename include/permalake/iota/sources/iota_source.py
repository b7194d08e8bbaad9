"""The source of an IOTA network, as configured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from permalake.config.networks import NetworkSettings
from permalake.errors import ConfigError
from permalake.intervals import dates
from permalake.iota.cone.ledger_history import Tables, treasuries_before
from permalake.iota.cone.packs import AS_RECORDS, Packing
from permalake.iota.cone.prove import AsRows, Sink, decoded
from permalake.iota.cone.rules import ConeRules
from permalake.iota.cone.source_records import MilestoneDay
from permalake.iota.sources.archive_rest import ArchiveRest
from permalake.iota.sources.chronicle import Chronicle, PublishedLedger
from permalake.iota.sources.node import NodeSource
from permalake.iota.sources.published_days import PublishedDays
from permalake.iota.sources.source_ends import END_NOTE
from permalake.spark.frames import of_rows
from permalake.transparency.landed import LandedDays


class IotaSource(Protocol):
    """Gives the records of a network's days."""

    name: str

    @property
    def first_milestone(self) -> int:
        """Index of the first milestone that the source holds."""

    @property
    def last_milestone(self) -> int:
        """Index of the last milestone that the source holds."""

    def days(self, start: date, end: date) -> list[MilestoneDay]:
        """Return the dates of ``start``..``end`` that have milestones, in order."""

    def records(self, days: Sequence[MilestoneDay], packing: Packing = AS_RECORDS) -> DataFrame:
        """Return records of the days' milestones, with those before that their cones may refer to.

        They come as ``packing`` returns them: a row each when it is left out.
        """

    def distrust(self, refused: Mapping[date, str], days: Sequence[MilestoneDay]) -> None:
        """Days that did not hold, with the reason: what the source keeps of them is not used again."""


def open_source(
    spark: SparkSession,
    name: str,
    network: NetworkSettings,
    published: PublishedLedger,
    landed: LandedDays | None = None,
    *,
    force: bool = False,
) -> IotaSource:
    """Return the source that is configured for network ``name``.

    ``landed``: where the days of its publishers are landed, if it has any; ``force`` takes those too that did
    not hold before.

    Raises:
        ConfigError: if it cannot be read.
    """
    if landed is not None:
        return PublishedDays(spark, landed, network.look_back, force=force)
    if network.source == "node":
        return NodeSource(spark, name, network)
    if network.path is None or not network.path.is_dir():
        raise ConfigError(f"networks.{name}.path: {network.path} is no directory")
    if network.source == "archive_rest":
        return ArchiveRest(spark, network.path, network.look_back)
    if network.protocol != "chrysalis":
        raise ConfigError(f"networks.{name}.source: chronicle is for chrysalis; take archive_rest or node")
    return Chronicle(spark, network.path, published, network.look_back)


def day_notes(
    source: IotaSource, days: Sequence[MilestoneDay], start: date, end: date
) -> Iterator[tuple[date, str]]:
    """Yield what there is to note of ``start``..``end``, of which ``days`` have milestones.

    That is whose a copied day is, and that files end inside a day or before it: more of it may come later.
    """
    if isinstance(source, PublishedDays):
        yield from source.notes
        return
    last = source.last_milestone
    note = END_NOTE.format(last)
    yield from ((day.date, note) for day in days if day.has_milestones and day.last == last)
    if isinstance(source, ArchiveRest | Chronicle):  # a node refuses days that it has not reached
        ended = source.last_date
        yield from ((day, note) for day in dates(start, end) if day > ended)


def decoded_days(
    source: IotaSource,
    days: Sequence[MilestoneDay],
    network: NetworkSettings,
    published: Tables | None = None,
    *,
    sink: Sink = AsRows(),  # noqa: B008
) -> DataFrame:
    """Return what ``sink`` makes of the proven, decoded rows of some days of a source.

    ``published`` gives the network's published tables: receipts must agree with the treasury of days before.
    """
    readable = [day for day in days if day.has_milestones]
    if not readable:
        return of_rows(SparkSession.active(), [], sink.schema)
    treasuries: dict[bytes, int] = {}
    if published and network.protocol == "chrysalis":
        treasuries = treasuries_before(published, readable[0].date)
    rules = ConeRules(
        protocol=network.protocol,
        bech32_hrp=network.bech32_hrp,
        days=tuple(readable),
        source_first=source.first_milestone,
        keys=network.coordinator_public_keys,
        threshold=network.coordinator_threshold,
        transaction_signatures=network.transaction_signatures,
        look_back=network.look_back,
        treasuries=treasuries,
    )
    return decoded(partial(source.records, readable), rules, sink)


def has_no_reasons(network: NetworkSettings) -> bool:
    """Return whether the source gives no conflict reasons, so that published tables have to help."""
    return network.source == "chronicle"
