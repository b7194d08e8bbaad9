"""A ledger that is known from outside (from a node's snapshot, say), as the day before the first one.

The file is JSON Lines, one unspent output a line, with its raw bytes as hex in ``rawOutput``, as in an
archive's ``created_outputs``. Figures that continue from it are absolute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from permalake.errors import PermalakeError
from permalake.iota.codec.bech32 import encode_addresses
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.outputs import Protocol
from permalake.iota.cone.ledger_proof import owners
from permalake.iota.tables.carried_sums import GOES_ON, Chained

# No day of a network lies in that month, so the first day that goes on from the ledger is a checkpoint.
BEGINNING = date(1970, 1, 1)
_OUTPUTS = pa.schema(
    [
        ("kind", pa.int8()),
        ("amount", pa.int64()),
        ("length", pa.int32()),
        ("owner", pa.string()),
        ("timelock_time", pa.int64()),
        ("expiration_time", pa.int64()),
        ("storage_return_amount", pa.int64()),
        ("date", pa.date32()),
    ]
)


def beginning(milestone: int) -> Chained:
    """Return a day that ends with the whole ledger as it is after ``milestone``."""
    return Chained(BEGINNING, milestone, GOES_ON, None, BEGINNING)


def read(spark: SparkSession, path: Path, protocol: Protocol, hrp: str) -> DataFrame:
    """Return the outputs of a file or folder of JSON Lines, plain or gzip, as created at the beginning.

    Raises:
        PermalakeError: There is no such file, or a line holds no output.
    """
    if not path.exists():
        raise PermalakeError(f"{path}: no ledger there; set networks.NAME.ledger")
    lines = spark.read.schema("rawOutput string").json(str(path))
    raw = lines.select(F.unhex(F.regexp_replace("rawOutput", "^0x", "")).alias("raw"))
    return raw.mapInArrow(_decoder(str(path), protocol, hrp), from_arrow_schema(_OUTPUTS))


def _decoder(path: str, protocol: Protocol, hrp: str):  # type: ignore[no-untyped-def]
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            raw = batch.column("raw")
            outputs = decode_outputs(raw, protocol)
            if raw.null_count or outputs.error.any():
                raise PermalakeError(f"{path}: a line holds no output of {protocol}; each needs rawOutput")
            yield _rows(outputs, hrp)

    return run


def _rows(outputs, hrp: str) -> pa.RecordBatch:  # type: ignore[no-untyped-def]
    rows, holder = len(outputs), owners(outputs)
    owned = np.flatnonzero(holder.kind >= 0)
    texts = encode_addresses(hrp, holder.kind[owned], holder.value[owned])
    place = np.zeros(rows, np.int64)
    place[owned] = np.arange(len(owned))
    columns = {
        "kind": outputs.kind.astype(np.int8),
        "amount": outputs.amount,
        "length": outputs.length.astype(np.int32),
        "owner": texts.take(pa.array(place, mask=holder.kind < 0)),
        "timelock_time": outputs.timelock_time,
        "expiration_time": outputs.expiration_time,
        "storage_return_amount": outputs.storage_return_amount,
        "date": pa.array([BEGINNING] * rows, pa.date32()),
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name], field.type) for field in _OUTPUTS], schema=_OUTPUTS
    )
