"""The configured source of VAA documents."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from permalake.config import Settings, WormholeSettings
from permalake.errors import ConfigError
from permalake.sources import vaa_files


def section(settings: Settings) -> WormholeSettings:
    """The section ``[wormhole]``; :class:`ConfigError` when there is none."""
    if settings.wormhole is None:
        raise ConfigError("wormhole: not configured; add a [wormhole] section with source and path")
    return settings.wormhole


def documents(spark: SparkSession, section: WormholeSettings) -> DataFrame:
    """Documents of the configured source; their columns are those of ``vaa_files.read``."""
    if section.source != vaa_files.NAME:
        raise ConfigError(
            f'wormhole.source: {section.source} cannot be read yet; use source = "files" and path'
        )
    if section.path is None:
        raise ConfigError("wormhole.path: missing; point it at the folder with the VAA files")
    return vaa_files.read(spark, section.path)
