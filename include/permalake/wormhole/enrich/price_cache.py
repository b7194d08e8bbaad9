"""The lake as the cache of prices, as an attempt sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from permalake.engine.rows import Relation
from permalake.wormhole.enrich.price_service import RequestMemory


@dataclass(frozen=True)
class LakeCache:
    """The cache of a :class:`~permalake.wormhole.enrich.price_service.CachedPriceService`.

    It is made of a job's functions. They read days of ``token_prices``, add to it, give the memory of a
    provider, and take remarks.
    """

    read: Callable[[date, date], Relation]
    add: Callable[[pa.Table], int]
    memory: Callable[[str], RequestMemory]
    remark: Callable[[str], None]

    def quotes(self, first: date, last: date) -> Relation:
        """Return the rows of ``token_prices`` of the days ``first..last``."""
        return self.read(first, last)

    def keep(self, rows: pa.Table) -> int:
        """Add new quotes, seen by readers at once."""
        return self.add(rows)

    def asked(self, provider: str) -> RequestMemory:
        """Return the memory of requests to a provider."""
        return self.memory(provider)

    def note(self, text: str) -> None:
        """Note a remark on every day of the attempt."""
        self.remark(text)
