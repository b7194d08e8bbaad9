"""The ledger of earlier days, from the published tables: outputs created and consumed before a day."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import reduce
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.arrays.cursor import load
from permalake.arrays.hexa import from_hex, hex_slices
from permalake.iota.codec.outputs import Protocol
from permalake.iota.cone.touched_outputs import TOUCHED

Tables = Callable[[str], DataFrame]
_KINDS: dict[Protocol, tuple[str, ...]] = {
    "chrysalis": ("legacy",),
    "stardust": ("basic", "alias", "foundry", "nft"),
}


@dataclass(frozen=True)
class EarlierOutputs:
    """Outputs of published days: the tables of those created, and ``consumed_outputs``."""

    created: tuple[ds.Dataset, ...]
    consumed: ds.Dataset

    @classmethod
    def of(cls, published: Callable[[str], ds.Dataset], protocol: Protocol) -> Self:
        """Return those of a network, whose ``published`` tables are given by name."""
        created = tuple(published(f"{kind}_outputs") for kind in _KINDS[protocol])
        return cls(created, published("consumed_outputs"))

    def rows(self, output_ids: pa.BinaryArray) -> Iterator[pa.Table]:
        """Yield what created and consumed some outputs, as rows of touched outputs (:data:`TOUCHED`).

        They stand at the beginning of their milestone: the tables have no place within it.
        """
        with_these_ids = pc.field("output_id").isin(hex_slices(*load(output_ids)))
        for table in self.created:
            yield _touched(table.to_table(["output_id", "milestone_index", "data"], with_these_ids))
        included = pc.field("transaction_id").is_valid()  # a receipt consumes what no transaction may
        yield _touched(self.consumed.to_table(["output_id", "milestone_index"], with_these_ids & included))


def _touched(rows: pa.Table) -> pa.Table:
    is_spent = "data" not in rows.column_names
    columns = {
        "output_id": from_hex(rows["output_id"].combine_chunks()),
        "data": pa.nulls(len(rows), pa.binary()) if is_spent else rows["data"],
        "is_spent": pa.array(np.full(len(rows), is_spent)),
        "milestone_index": rows["milestone_index"],
        "white_flag_index": pa.array(np.zeros(len(rows), np.int32)),
    }
    return pa.table([columns[name] for name in TOUCHED.names], names=TOUCHED.names).cast(TOUCHED)


def created_before(table: Tables, protocol: Protocol, day: date) -> DataFrame:
    """Return every output that a published day before ``day`` created.

    Columns: output_id binary, data binary, created int. ``table`` gives a network's published table by name.
    """
    frames = (
        table(f"{kind}_outputs")
        .where(F.col("date") < F.lit(day))
        .select(F.unhex("output_id").alias("output_id"), "data", F.col("milestone_index").alias("created"))
        for kind in _KINDS[protocol]
    )
    return reduce(DataFrame.unionByName, frames)


def treasuries_before(table: Tables, day: date) -> dict[bytes, int]:
    """Return what every receipt of a published day before ``day`` left in the treasury, by milestone id."""
    rows = table("treasury_outputs").where(F.col("date") < F.lit(day)).select("output_id", "amount")
    return {bytes.fromhex(row["output_id"]): row["amount"] for row in rows.collect()}
