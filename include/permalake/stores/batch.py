"""Stores, and the batches that are written into them. Loads nothing heavy before it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Protocol

from permalake.config import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from permalake.stores.served import DueDay, State


NoteLoss = Callable[[], None]
"""Records that a store has lost what it had."""


@dataclass(frozen=True)
class StoreBatch:
    """Days that are written together: ``state`` is the lake as published, ``micros`` the write time."""

    network: str
    days: list[DueDay]
    state: State
    micros: int

    @property
    def dates(self) -> list[date]:
        """The days."""
        return [due_day.day for due_day in self.days]

    def before(self) -> list[tuple[State, list[date]]]:
        """Other states of the lake whose rows may be in the store, with the days concerned."""
        earlier: list[tuple[State, list[date]]] = []
        for due_day in self.days:
            for state in due_day.states:
                if state == self.state:  # the same rows: a publish that was cut off
                    continue
                recorded_dates = next((dates for other, dates in earlier if other == state), None)
                if recorded_dates is None:
                    earlier.append((state, [due_day.day]))
                else:
                    recorded_dates.append(due_day.day)
        return earlier


class StoreWriter(Protocol):
    """Writes the days of one network into one store."""

    def recover(self, begun: Sequence[date], micros: int) -> None:
        """Repair what an interrupted write of these days left behind."""

    def write(self, batch: StoreBatch) -> None:
        """Write the days whole and delete the rows of earlier builds."""


class Store(Protocol):
    """A store that published days are written into."""

    @property
    def name(self) -> str:
        """Its name in the state tables."""

    def configured(self, settings: Settings) -> bool:
        """Return whether days are published into it."""

    def ensure(self, settings: Settings, network: str, note_loss: NoteLoss) -> None:
        """Create what is missing. ``note_loss`` is called before, if a table is missing and with it its rows.

        Only their absence shows the loss: created first, they would hide it if what follows failed.
        """

    def dataset(self, settings: Settings, network: str) -> tuple[str, str]:
        """Return namespace and name of the store's dataset by OpenLineage's rules."""

    def jars(self) -> tuple[str, ...]:
        """Return the Maven coordinates that writing needs beside Spark's and the lake's."""

    def writer(self, spark: SparkSession, settings: Settings, network: str) -> StoreWriter:
        """Return the writer of a network's days."""
