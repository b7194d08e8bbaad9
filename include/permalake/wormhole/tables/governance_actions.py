"""Published messages → ``governance_actions``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.codec.governance import GOVERNANCE_CHAIN, GOVERNANCE_EMITTER, decode_governance

_ROWS = (
    "row_key string, module string, action int, action_name string, target_chain int, fields string, "
    "date date"
)


def governance_actions(publications: DataFrame) -> DataFrame:
    """Return the rows of ``governance_actions``, one per governance message.

    ``publications`` are rows of ``message_publication``. There are a few hundred messages in all of history.
    """
    governing = (F.col("emitter_chain") == GOVERNANCE_CHAIN) & (
        F.col("emitter_address") == GOVERNANCE_EMITTER.hex()
    )
    return publications.where(governing).select("row_key", "payload", "date").mapInArrow(_decode, _ROWS)


def _decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    names = ("module", "action", "action_name", "target_chain")
    for batch in batches:
        decoded = [decode_governance(payload or b"") for payload in batch["payload"].to_pylist()]
        kept = [place for place, one in enumerate(decoded) if one is not None]
        told = [one for one in decoded if one is not None]
        fields = [json.dumps(one.fields) if one.action_name else None for one in told]
        kinds = (pa.string(), pa.int32(), pa.string(), pa.int32())
        yield pa.RecordBatch.from_arrays(
            [
                batch["row_key"].take(pa.array(kept, pa.int64())),
                *(
                    pa.array([getattr(one, name) for one in told], kind)
                    for name, kind in zip(names, kinds, strict=True)
                ),
                pa.array(fields, pa.string()),
                batch["date"].take(pa.array(kept, pa.int64())),
            ],
            ["row_key", *names, "fields", "date"],
        )
