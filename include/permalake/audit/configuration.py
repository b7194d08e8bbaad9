"""The configuration that laws read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from permalake.config.services import PRICE_WINDOW_HOURS, PricesSettings


@dataclass(frozen=True)
class Configuration:
    """The configuration of a network, as far as laws read it.

    Attributes:
        protocol: Protocol of the network, where it has one.
        chunk_size: Milestones per ``ms_range_id``.
        reference: Folder with the reference data of the configuration.
        window_hours: Greatest distance in time between a quote and what it prices.
        max_missing: Greatest share of transfers of listed tokens without a price.
        max_factor: Factor by which a quote may differ from others of the token.
        min_confidence: Confidence from which on a provider's quote counts.
        is_copy: Whether the days are copied from a publisher, with its counts of what it refused.
    """

    protocol: str | None = None
    chunk_size: int | None = None
    reference: Path | None = None
    window_hours: float = PRICE_WINDOW_HOURS
    max_missing: float = PricesSettings().max_missing
    max_factor: float = PricesSettings().max_factor
    min_confidence: float = PricesSettings().min_confidence
    is_copy: bool = False

    def row(self) -> pa.Table:
        """Return the numbers as a table with one row."""
        return pa.table(
            {
                "chunk_size": pa.array([self.chunk_size], pa.int64()),
                "window_seconds": pa.array([round(self.window_hours * 3600)], pa.int64()),
                "max_missing": pa.array([self.max_missing], pa.float64()),
                "max_factor": pa.array([self.max_factor], pa.float64()),
                "min_confidence": pa.array([self.min_confidence], pa.float64()),
                "is_copy": pa.array([self.is_copy], pa.bool_()),
            }
        )
