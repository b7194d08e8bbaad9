"""The lake as the cache of prices, as an attempt sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from permalake.wormhole.enrich.price_service import Asked


@dataclass(frozen=True)
class LakeCache:
    """The cache of a :class:`~permalake.wormhole.enrich.price_service.Market`, made of a job's functions: how
    to read ``token_prices``, how to add to it, the memory of a provider, and where remarks go."""

    read: Callable[[SparkSession], DataFrame]
    add: Callable[[DataFrame], int]
    memory: Callable[[str], Asked]
    remark: Callable[[str], None]

    def quotes(self, spark: SparkSession) -> DataFrame:
        """All of ``token_prices``."""
        return self.read(spark)

    def keep(self, frame: DataFrame) -> int:
        """Add new quotes, seen by readers at once."""
        return self.add(frame)

    def asked(self, provider: str) -> Asked:
        """What a provider was asked for."""
        return self.memory(provider)

    def note(self, text: str) -> None:
        """A remark on every day of the attempt."""
        self.remark(text)
