"""The lake as the cache of prices, as an attempt sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from permalake.wormhole.enrich.price_service import RequestMemory


@dataclass(frozen=True)
class LakeCache:
    """The cache of a :class:`~permalake.wormhole.enrich.price_service.Market`, made of a job's functions.

    They read ``token_prices``, add to it, give the memory of a provider, and take remarks.
    """

    read: Callable[[SparkSession], DataFrame]
    add: Callable[[DataFrame], int]
    memory: Callable[[str], RequestMemory]
    remark: Callable[[str], None]

    def quotes(self, spark: SparkSession) -> DataFrame:
        """Return all of ``token_prices``."""
        return self.read(spark)

    def keep(self, frame: DataFrame) -> int:
        """Add new quotes, seen by readers at once."""
        return self.add(frame)

    def asked(self, provider: str) -> RequestMemory:
        """Return the memory of requests to a provider."""
        return self.memory(provider)

    def note(self, text: str) -> None:
        """Note a remark on every day of the attempt."""
        self.remark(text)
