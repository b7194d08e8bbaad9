"""The source of an IOTA network, as configured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from permalake.config import NetworkSettings
from permalake.errors import ConfigError
from permalake.sources.archive_rest import ArchiveRest
from permalake.transforms.cone import ConeRules, decoded
from permalake.transforms.records import MilestoneDay


class IotaSource(Protocol):
    """Gives the records of a network's days."""

    name: str

    @property
    def first_milestone(self) -> int:
        """Index of the first milestone that the source holds."""

    def days(self, start: date, end: date) -> list[MilestoneDay]:
        """The dates of ``start``..``end`` that have milestones, in order."""

    def records(self, days: Sequence[MilestoneDay]) -> DataFrame:
        """Records of the days' milestones, with those before them that their cones may refer to."""


def open_source(spark: SparkSession, name: str, network: NetworkSettings) -> IotaSource:
    """The configured source; :class:`ConfigError` when there is none of that name."""
    if network.source == "archive_rest" and network.path:
        return ArchiveRest(spark, network.path)
    raise ConfigError(f"networks.{name}.source: {network.source} cannot be read; use archive_rest")


def decoded_days(source: IotaSource, days: Sequence[MilestoneDay], network: NetworkSettings) -> DataFrame:
    """Proven, decoded rows of some days of a source."""
    rules = ConeRules(
        protocol=network.protocol,
        bech32_hrp=network.bech32_hrp,
        days=tuple(days),
        source_first=source.first_milestone,
        keys=network.coordinator_public_keys,
        threshold=network.coordinator_threshold,
    )
    return decoded(source.records(days), rules)
