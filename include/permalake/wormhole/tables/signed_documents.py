"""VAAs that a lake has verified already → documents of a source, to be judged beside others."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

DOCUMENT = pa.schema(
    [
        ("raw", pa.binary()),
        *((name, pa.string()) for name in ("source", "origin", "claimed_id", "fault", "tx_id")),
        *((name, pa.timestamp("us", "UTC")) for name in ("document_time", "indexed_at")),
    ]
)
"""Columns of both."""


def signed_documents(quorum_state: pa.Table, publication: pa.Table, source: str) -> pa.Table:
    """Return rows of ``quorum_state`` as documents; their day is given where a body has no time.

    ``publication``: rows of ``message_publication``, whose transactions they name.
    """
    at = pc.index_in(quorum_state["row_key"], value_set=publication["row_key"].combine_chunks())
    tx_id = publication["initiating_tx_id"].combine_chunks().take(at.combine_chunks())
    return _documents(quorum_state.rename_columns({"row_key": "origin", "signed_vaa": "raw"}), source, tx_id)


def quarantined_documents(quarantine: pa.Table) -> pa.Table:
    """Return rows of the quarantine as documents."""
    return _documents(quarantine, None, pa.nulls(len(quarantine), pa.string()))


def _documents(rows: pa.Table, source: str | None, tx_id: pa.Array) -> pa.Table:
    moment = rows["date"].cast(pa.timestamp("us", "UTC"))
    nothing = pa.nulls(len(rows), pa.string())
    columns = {
        "raw": rows["raw"],
        "source": rows["source"] if source is None else pa.repeat(source, len(rows)),
        "origin": rows["origin"],
        "claimed_id": nothing,
        "fault": nothing,
        "tx_id": tx_id,
        "document_time": moment,
        "indexed_at": moment,
    }
    return pa.table(columns).cast(DOCUMENT).combine_chunks()
