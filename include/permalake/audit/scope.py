"""The rows and the configuration that laws read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.config import PRICE_WINDOW_HOURS, PricesSettings
from permalake.spark.sizes import ONE_PARTITION_ROWS


@dataclass(frozen=True)
class Scope:
    """The audited days, callable with a table's name, and the configuration of their network.

    Attributes:
        table: Returns the audited days of a table.
        protocol: Protocol of the network, where it has one.
        chunk_size: Milestones per ``ms_range_id``.
        reference: Folder with the reference data of the configuration.
        window_hours: Greatest distance in time between a quote and what it prices.
        max_missing: Greatest share of transfers of listed tokens without a price.
        rows: Number of rows by table, where known. Empty tables are then not read, and few rows are read
            once and kept in one partition: every task of a query receives the plan of all laws, so tasks
            without work would cost more than the work.
        history: Returns a table's rows of the latest day before the audited ones, or None.
    """

    table: Callable[[str], DataFrame]
    protocol: str | None = None
    chunk_size: int | None = None
    reference: Path | None = None
    window_hours: float = PRICE_WINDOW_HOURS
    max_missing: float = PricesSettings().max_missing
    rows: Mapping[str, int] | None = None
    history: Callable[[str], DataFrame | None] | None = None
    _shared: dict[str, DataFrame] = field(default_factory=dict, repr=False)

    def __call__(self, name: str) -> DataFrame:
        """Return the audited rows of a table."""
        if self.is_empty(name):
            # Spark folds away whatever an empty local relation takes part in.
            frame = self.table(name)
            return frame.sparkSession.createDataFrame([], frame.schema)
        if self.is_small:
            return self.shared(f"table {name}", lambda: self.table(name).coalesce(1))
        return self.table(name)

    @property
    def is_small(self) -> bool:
        """Whether all rows are known to fit one partition in memory."""
        return self.rows is not None and sum(self.rows.values()) <= ONE_PARTITION_ROWS

    def before(self, name: str) -> DataFrame | None:
        """Return a table's rows of the latest day before the audited ones; None when not known."""
        return self.history(name) if self.history else None

    def is_empty(self, name: str) -> bool:
        """Return whether the table is known to have no rows."""
        return self.rows is not None and name in self.rows and not self.rows[name]

    def shared(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """Return a frame that several laws read: computed once, kept until :meth:`release`.

        Few rows are kept by a checkpoint: Spark compiles code for the columns of each frame that it caches.
        """
        if name not in self._shared:
            frame = make()
            kept = frame.localCheckpoint(eager=False) if self.is_small else frame.persist()
            self._shared.setdefault(name, kept)
        return self._shared[name]

    def release(self) -> None:
        """Drop the shared frames."""
        while self._shared:
            self._shared.popitem()[1].unpersist()

    def narrowed(self, start: date, end: date) -> Scope:
        """Return the same scope for ``start`` to ``end`` only, both inclusive."""

        def table(name: str) -> DataFrame:
            return self.table(name).where(F.col("date").between(F.lit(start), F.lit(end)))

        return Scope(
            table, self.protocol, self.chunk_size, self.reference, self.window_hours, self.max_missing
        )
