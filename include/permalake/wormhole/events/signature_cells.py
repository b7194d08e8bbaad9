"""Lake tables → rows of the Bigtable event table v1: who signed a message, and when each was seen.

``Signatures`` has a cell per guardian: at the time of its observation, or at the VAA's time where a signer of
the VAA was not observed. ``VAAState`` has a cell per time at which a guardian was observed: the signatures
seen by then, in their order. Where a signer was not observed, the VAA's own list is the last cell. No other
time and no other order is known. Bigtable counts milliseconds: guardians of the same one share a cell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.contracts.rows import Row
from permalake.spark.frames import of_rows
from permalake.wormhole.codec.vaa import Vaas, decode_vaas
from permalake.wormhole.contracts import tables
from permalake.wormhole.events.event_cells import cells_of, vaa_time
from permalake.wormhole.events.families import FAMILIES, FAMILIES_V1, SIGNATURES, VAA_STATE
from permalake.wormhole.reference import load_reference

_MILLISECOND = 1000
_KEPT = [family for family in FAMILIES if family.name in FAMILIES_V1]
_OBSERVED = "struct<guardian:string,signature:string,micros:bigint>"
_CELLS = "row_key string, cells array<struct<family:string,qualifier:string,value:string,micros:bigint>>"
_CELL = pa.struct(
    [("family", pa.string()), ("qualifier", pa.string()), ("value", pa.string()), ("micros", pa.int64())]
)
_SEEN = pa.list_(pa.struct([("guardian", pa.string()), ("signature", pa.string()), ("micros", pa.int64())]))


class DatedCell(NamedTuple):
    """A cell whose qualifier or time is data; the time in microseconds."""

    family: str
    qualifier: str
    value: str
    micros: int


@dataclass(frozen=True, slots=True)
class TimedSignature:
    """A guardian's signature of a message, hex; ``index`` is the guardian's in the message's set."""

    index: int
    guardian: str
    signature: str
    micros: int
    """When it was observed; of a signer that was not, the time of the VAA."""


def event_rows_v1(lake: Mapping[str, DataFrame], reference: Path | None) -> DataFrame:
    """Return the rows of the v1 table, one per published VAA.

    ``reference`` is the directory of additional guardian sets.
    """
    publication, quorum = (lake[family.table.name] for family in _KEPT)
    observed = lake.get(tables.OBSERVATIONS.name)
    if observed is None:
        observed = of_rows(publication.sparkSession, [], f"row_key string, observed array<{_OBSERVED}>")
    else:
        seen = F.struct("guardian_address", "signature", F.unix_micros("observed_at"))
        observed = observed.groupBy("row_key").agg(F.collect_list(seen).cast(f"array<{_OBSERVED}>"))
        observed = observed.toDF("row_key", "observed")
    events = publication.join(quorum.select("row_key", "signed_vaa"), "row_key")
    inputs = events.join(observed, "row_key", "left").select("row_key", vaa_time(), "signed_vaa", "observed")
    cells = inputs.mapInArrow(_cells(reference), _CELLS)
    return events.join(cells, "row_key").select(
        row_key_v1().alias("row_key"),
        vaa_time(),
        "cells",
        *(cell for family in _KEPT for cell in cells_of(family)),
    )


def rows_v1(events: pa.Table, observations: pa.Table, reference: Path | None) -> pa.Table:
    """Return the rows of the v1 table from those of the v2 table and rows of ``observations``."""
    observed: dict[str, list[Row]] = defaultdict(list)
    names = ("row_key", "guardian_address", "signature")
    micros = observations["observed_at"].cast(pa.int64()).to_pylist()
    for key, guardian, signature, at in zip(
        *(observations[name].to_pylist() for name in names), micros, strict=True
    ):
        observed[key].append({"guardian": guardian, "signature": signature, "micros": at})
    seen = pa.array([observed.get(key) for key in events["row_key"].to_pylist()], _SEEN)
    inputs = {
        "row_key": events["row_key"].combine_chunks(),
        "micros": events["micros"].combine_chunks(),
        "signed_vaa": events["QuorumState:SignedVAA"].combine_chunks(),
        "observed": seen,
    }
    [cells] = _cells(reference)([pa.RecordBatch.from_pydict(inputs)])
    kept = [name for name in events.schema.names if name.partition(":")[0] in FAMILIES_V1]
    keys = pa.array(map(key_v1, events["row_key"].to_pylist()), pa.string())
    return (
        events.select(["micros", *kept]).append_column("row_key", keys).append_column("cells", cells["cells"])
    )


def key_v1(row_key: str) -> str:
    """Return the v1 row key of a v2 one, whose sequence has zeros before it."""
    start, _, sequence = row_key.rpartition(":")
    return f"{start}:{int(sequence)}"


def row_key_v1() -> Column:
    """Return the v1 row key, from the columns of ``message_publication``."""
    return F.concat_ws(":", "emitter_chain", "emitter_address", F.col("sequence").cast("string"))


def message_cells(
    guardian_set: int, time: int, signers: Sequence[TimedSignature], observed: Sequence[TimedSignature]
) -> Iterator[DatedCell]:
    """Yield the cells of one message, from the VAA's signatures and from those that were observed.

    ``time`` is the VAA's, in microseconds; ``signers`` are ordered by index.
    """
    seen = sorted(observed, key=lambda observation: (observation.micros, observation.index))
    guardians = {observation.guardian for observation in seen}
    unseen = [signer for signer in signers if signer.guardian not in guardians]
    for signature in (*seen, *unseen):
        yield DatedCell(SIGNATURES, f"0x{signature.guardian}", signature.signature, signature.micros)
    states = {observation.micros: seen[:count] for count, observation in enumerate(seen, start=1)}
    if unseen:
        states[max((time, *states))] = list(signers)
    for micros, signatures in states.items():
        items = ", ".join(
            f'{{"index": {signature.index}, "signature": "{signature.signature}"}}'
            for signature in signatures
        )
        yield DatedCell(VAA_STATE, f"Signatures:{guardian_set}", f"[{items}]", micros)


def _cells(reference: Path | None) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sets = load_reference(reference).guardian_sets
        places = {
            number: {guardian.hex(): index for index, guardian in enumerate(guardians)}
            for number, guardians in sets.items()
        }
        for batch in batches:
            vaas = decode_vaas(batch["signed_vaa"])
            signatures = _signatures(vaas)
            numbers = vaas.guardian_set_index.tolist()
            rows = zip(numbers, batch["micros"].to_pylist(), batch["observed"].to_pylist(), strict=True)
            cells = []
            for number, time, observed in rows:
                signers = [
                    TimedSignature(index, sets[number][index].hex(), signature, time)
                    for index, signature in next(signatures)
                ]
                seen = _seen(observed or (), places[number])
                cells.append(list(message_cells(number, time, signers, seen)))
            yield pa.RecordBatch.from_arrays(
                [batch["row_key"], pa.array(cells, pa.list_(_CELL))], ["row_key", "cells"]
            )

    return work


def _signatures(vaas: Vaas) -> Iterator[list[tuple[int, str]]]:
    """Yield the signatures of each VAA with the guardians' indices, ordered by these."""
    indices, signatures = vaas.guardian_index.tolist(), vaas.signature
    for start, end in pairwise(vaas.signature_offset.tolist()):
        yield [(indices[at], signatures[at].tobytes().hex()) for at in range(start, end)]


def _seen(observed: Iterable[Mapping[str, Any]], places: Mapping[str, int]) -> list[TimedSignature]:
    return [
        TimedSignature(
            places[observation["guardian"]],
            observation["guardian"],
            observation["signature"],
            observation["micros"] - observation["micros"] % _MILLISECOND,
        )
        for observation in observed
    ]
