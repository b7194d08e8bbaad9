"""The configured source of VAA documents."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from permalake.config import Settings
from permalake.errors import ConfigError
from permalake.sources import vaa_files


def documents(spark: SparkSession, settings: Settings) -> DataFrame:
    """Documents of the source in ``[wormhole]``; their columns are those of ``vaa_files.read``."""
    section = settings.wormhole
    if section is None:
        raise ConfigError("wormhole: not configured; add a [wormhole] section with source and path")
    if section.source != vaa_files.NAME:
        raise ConfigError(
            f'wormhole.source: {section.source} cannot be read yet; use source = "files" and path'
        )
    if section.path is None:
        raise ConfigError("wormhole.path: missing; point it at the folder with the VAA files")
    return vaa_files.read(spark, section.path)
