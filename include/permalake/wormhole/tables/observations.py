"""Observations and published messages → ``observations``: signers of a message, and when each was seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.codec.guardians import recover_addresses
from permalake.wormhole.reference import load_reference

_SIGNATURE, _DIGEST = 65, 32
_ROWS = "row_key string, guardian string, signature string, observed_at timestamp, date date"


def observations(observed: DataFrame, publications: DataFrame, reference: Path | None) -> DataFrame:
    """Return the rows of ``observations``: those whose signature recovers to the guardian they name.

    The guardian must be of the message's guardian set; of several observations of one guardian the earliest
    counts.

    ``observed`` is the result of ``observation_files.read``, ``publications`` are rows of
    ``message_publication``, ``reference`` is the directory of additional guardian sets.
    """
    of_message = publications.select(
        "row_key", "date", "guardian_set_index", F.unhex("digest").alias("digest")
    )
    joined = observed.join(of_message, "row_key").mapInArrow(_genuine(reference), _ROWS)
    first = F.min(F.struct("observed_at", "signature")).alias("first")
    return (
        joined.groupBy("row_key", "guardian", "date")
        .agg(first)
        .select(
            "row_key",
            F.col("guardian").alias("guardian_address"),
            "first.signature",
            "first.observed_at",
            "date",
        )
    )


def _genuine(reference: Path | None) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sets = load_reference(reference).guardian_sets
        members = pa.array(
            [f"{number}:{one.hex()}" for number, guardians in sets.items() for one in guardians], pa.string()
        )
        for batch in batches:
            signatures, digests = _flat(batch["signature"]), _flat(batch["digest"]).reshape(-1, _DIGEST)
            rows = np.arange(batch.num_rows)
            found = recover_addresses(signatures, rows * _SIGNATURE, digests, rows)
            signers = pa.array([one.tobytes().hex() for one in found], pa.string())
            named = pc.binary_join_element_wise(
                batch["guardian_set_index"].cast(pa.string()), batch["guardian"], ":"
            )
            kept = batch.filter(pc.and_(pc.equal(signers, batch["guardian"]), pc.is_in(named, members)))
            written = pa.array([one.hex() for one in kept["signature"].to_pylist()], pa.string())
            yield pa.RecordBatch.from_arrays(
                [kept["row_key"], kept["guardian"], written, kept["observed_at"], kept["date"]],
                ["row_key", "guardian", "signature", "observed_at", "date"],
            )

    return work


def _flat(values: pa.Array) -> np.ndarray:
    """Values of equal length, one after the other, u8."""
    return np.frombuffer(b"".join(values.to_pylist()), np.uint8)
