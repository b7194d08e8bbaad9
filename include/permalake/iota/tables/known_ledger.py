"""A ledger that is known from outside (from a node's snapshot, say), as the day before the first one.

The file is JSON Lines, one unspent output a line, with its raw bytes as hex in ``rawOutput``, as in an
archive's ``created_outputs``. Figures that continue from it are absolute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.json as pj

from permalake.arrays.hexa import from_hex
from permalake.errors import PermalakeError
from permalake.iota.codec.bech32 import encode_addresses
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.outputs import Protocol
from permalake.iota.cone.ledger_proof import owners
from permalake.iota.contracts.ledger_changes import SIDES
from permalake.iota.tables.carried_sums import CONTINUED, Chained
from permalake.iota.tables.day_sums import LEDGER_SUMS, ledger_sums_of
from permalake.iota.tables.output_tables import kind_names

# No day of a network lies in that month, so the first day that goes on from the ledger is a checkpoint.
BEGINNING = date(1970, 1, 1)
_BLOCK = 8 << 20
OUTPUTS = pa.schema(
    [
        ("kind", pa.string()),
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
    return Chained(BEGINNING, milestone, CONTINUED, None, BEGINNING)


BALANCES = """
SELECT owner AS address, CAST(sum(amount) AS BIGINT) AS balance
FROM known_outputs WHERE owner IS NOT NULL GROUP BY owner
"""
"""The query of what each address holds of ``known_outputs``, which have the columns :data:`OUTPUTS`."""
_KEYS = ("date", "kind", "side")
_MEASURES = (f"CAST(sum({name}) AS BIGINT) AS {name}" for name in LEDGER_SUMS.names if name not in _KEYS)
CHANGES = f"SELECT {', '.join((*_KEYS, *_MEASURES))} FROM known_sums GROUP BY {', '.join(_KEYS)}"
"""The query of what ``ledger_changes`` would hold of them, from :class:`LedgerSums`."""


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """The outputs in a file or folder of JSON Lines, plain or gzip: the ledger after ``milestone``.

    Reading them raises :class:`PermalakeError` where there is no such file, or a line holds no output.
    """

    path: Path
    protocol: Protocol
    hrp: str
    milestone: int

    schema = OUTPUTS

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the outputs."""
        self._check()
        lines = pa.schema([("rawOutput", pa.string())])
        given = pj.ParseOptions(explicit_schema=lines, unexpected_field_behavior="ignore")
        kind = ds.JsonFileFormat(parse_options=given, read_options=pj.ReadOptions(block_size=_BLOCK))
        stored = ds.dataset(str(self.path), schema=lines, format=kind).to_batches()
        while True:
            try:
                batch = next(stored, None)
            except pa.ArrowInvalid as error:
                raise PermalakeError(f"{self.path}: {error}") from error
            if batch is None:
                return
            yield self._decoded(from_hex(batch["rawOutput"]))

    def _check(self) -> None:
        if not self.path.exists():
            raise PermalakeError(f"{self.path}: no ledger there; set networks.NAME.ledger")

    def _decoded(self, raw: pa.BinaryArray) -> pa.RecordBatch:
        outputs = decode_outputs(raw, self.protocol)
        if raw.null_count or outputs.error.any():
            raise PermalakeError(
                f"{self.path}: a line holds no output of {self.protocol}; each needs rawOutput"
            )
        return _rows(outputs, self.hrp)


@dataclass(frozen=True, slots=True)
class LedgerSums:
    """Adds up batches of ``known_outputs`` by date, kind and side.

    ``v_byte_cost``: rent per weighted byte in base tokens; ``deposit`` is null without it.
    """

    v_byte_cost: int | None

    schema = LEDGER_SUMS

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the sums of each batch."""
        for batch in batches:
            named = pa.Table.from_batches([batch]).append_column("side", pa.repeat(SIDES[0], batch.num_rows))
            yield from ledger_sums_of(named, self.v_byte_cost).to_batches()


def _rows(outputs, hrp: str) -> pa.RecordBatch:  # type: ignore[no-untyped-def]
    rows, holder = len(outputs), owners(outputs)
    owned = np.flatnonzero(holder.kind >= 0)
    texts = encode_addresses(hrp, holder.kind[owned], holder.value[owned])
    place = np.zeros(rows, np.int64)
    place[owned] = np.arange(len(owned))
    columns = {
        "kind": kind_names(pa.array(outputs.kind.astype(np.int8))),
        "amount": outputs.amount,
        "length": outputs.length.astype(np.int32),
        "owner": texts.take(pa.array(place, mask=holder.kind < 0)),
        "timelock_time": outputs.timelock_time,
        "expiration_time": outputs.expiration_time,
        "storage_return_amount": outputs.storage_return_amount,
        "date": pa.array([BEGINNING] * rows, pa.date32()),
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name], field.type) for field in OUTPUTS], schema=OUTPUTS
    )
