"""Lake tables → rows of the Bigtable event table v1: signers, and the order of their signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.codec.vaa import Vaas, decode_vaas
from permalake.wormhole.contracts import tables
from permalake.wormhole.events.event_cells import cells_of, vaa_time
from permalake.wormhole.events.families import FAMILIES, FAMILIES_V1, SIGNATURES, VAA_STATE
from permalake.wormhole.reference import load_reference

# Between two observations of unknown time.
_STEP_MICROS = 1000
_KEPT = [family for family in FAMILIES if family.name in FAMILIES_V1]
_SIGNED = "row_key string, signatures array<struct<index:int,guardian:string,signature:string>>"


def event_rows_v1(lake: Mapping[str, DataFrame], reference: Path | None) -> DataFrame:
    """Return the rows of the v1 table, one per published VAA.

    ``reference`` is the directory of additional guardian sets.
    """
    publication, quorum = (lake[family.table.name] for family in _KEPT)
    signed = quorum.select("row_key", "signed_vaa").mapInArrow(_signatures(reference), _SIGNED)
    observed = lake.get(tables.OBSERVATIONS.name)
    if observed is not None:
        signed = _in_order(signed, observed)
    events = (
        publication.join(quorum.select("row_key", "signed_vaa"), "row_key")
        .join(signed, "row_key")
        .select(
            row_key_v1().alias("row_key"),
            vaa_time(),
            F.col("guardian_set_index").cast("string").alias("set"),
            "signatures",
            *(cell for family in _KEPT for cell in cells_of(family)),
        )
    )
    cells = F.concat(_signature_cells(), _state_cells())
    return events.withColumn("cells", cells).drop("set", "signatures")


def _in_order(signed: DataFrame, observed: DataFrame) -> DataFrame:
    """Order the signatures as they were observed; those never observed come last, by guardian index."""
    seen = F.struct("guardian_address", F.unix_micros("observed_at"))
    times = observed.groupBy("row_key").agg(F.map_from_entries(F.collect_list(seen)).alias("times"))
    last = F.lit(2**63 - 1)
    placed = F.transform(
        "signatures",
        lambda one: F.struct(
            F.coalesce(F.try_element_at(F.col("times"), one["guardian"]), last),
            one["index"].alias("index"),
            one.alias("one"),
        ),
    )
    ordered = F.transform(F.array_sort(placed), lambda one: one["one"])
    return signed.join(times, "row_key", "left").select(
        "row_key", F.coalesce(ordered, F.col("signatures")).alias("signatures")
    )


def row_key_v1() -> Column:
    """Return the v1 row key, from the columns of ``message_publication``."""
    return F.concat_ws(":", "emitter_chain", "emitter_address", F.col("sequence").cast("string"))


def _signature_cells() -> Column:
    return F.transform(
        "signatures",
        lambda one: _cell(
            SIGNATURES, F.concat(F.lit("0x"), one["guardian"]), one["signature"], F.col("micros")
        ),
    )


def _state_cells() -> Column:
    """Return a cell per signature, each list one longer than the last, the longest at the VAA's time.

    Cells before 1970 are left out: Bigtable has no such time.
    """
    items = F.transform(
        "signatures",
        lambda one: F.format_string('{"index": %d, "signature": "%s"}', one["index"], one["signature"]),
    )
    count = F.size("signatures")

    def state(item: Column, place: Column) -> Column:  # noqa: ARG001
        listed = F.array_join(F.slice(items, F.lit(1), place + 1), ", ")
        micros = F.col("micros") - (count - 1 - place) * _STEP_MICROS
        qualifier = F.concat(F.lit("Signatures:"), F.col("set"))
        return _cell(VAA_STATE, qualifier, F.concat(F.lit("["), listed, F.lit("]")), micros)

    return F.filter(F.transform(items, state), lambda one: one["micros"] >= 0)


def _cell(family: str, qualifier: Column, value: Column, micros: Column) -> Column:
    return F.struct(
        F.lit(family).alias("family"),
        qualifier.alias("qualifier"),
        value.alias("value"),
        micros.alias("micros"),
    )


def _signatures(
    reference: Path | None,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sets = load_reference(reference).guardian_sets
        for batch in batches:
            vaas = decode_vaas(batch["signed_vaa"])
            yield pa.RecordBatch.from_arrays(
                [batch["row_key"], _signature_lists(vaas, sets)], ["row_key", "signatures"]
            )

    return decode


def _signature_lists(vaas: Vaas, sets: Mapping[int, tuple[bytes, ...]]) -> pa.ListArray:
    """Return each VAA's signatures in order of guardian index, with the guardian's address."""
    row = vaas.signature_row
    named = vaas.guardian_set_index[row].astype(np.int64) << 8 | vaas.guardian_index
    guardians, place = np.unique(named, return_inverse=True)
    addresses = pa.array([sets[int(key) >> 8][int(key) & 0xFF].hex() for key in guardians], pa.string())
    members = pa.StructArray.from_arrays(
        [
            pa.array(vaas.guardian_index.astype(np.int32)),
            addresses.take(pa.array(place.astype(np.int64))),
            pa.array([signature.tobytes().hex() for signature in vaas.signature], pa.string()),
        ],
        ["index", "guardian", "signature"],
    )
    return pa.ListArray.from_arrays(pa.array(vaas.signature_offset.astype(np.int32)), members)


WRITTEN = (tables.MESSAGE_PUBLICATION, tables.QUORUM_STATE, tables.OBSERVATIONS)
"""Lake tables from which v1 is written."""
