"""VaaVerdicts VAAs → the tables of events, and what ``messages_daily`` counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from permalake.contracts import Table
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.tables.governance_actions import governance_actions
from permalake.wormhole.tables.verified_vaas import PUBLISHED, SURPLUS, VaaVerdicts

_PAYLOADS = {
    "token_transfer_payload": "transfer",
    "asset_meta_payload": "meta",
    "nft_transfer_payload": "nft",
    "application_messages": "application",
    "application_transfers": "moved",
    "relayer_deliveries": "delivery",
}
EVENT_TABLES: Mapping[str, Table] = {
    name: WORMHOLE_TABLES[name]
    for name in ("message_publication", "quorum_state", *_PAYLOADS, "governance_actions")
}
"""Tables of which every published VAA has at most one row."""
CHAIN_MESSAGES = pa.schema(
    [
        ("date", pa.date32()),
        ("emitter_chain", pa.int32()),
        ("messages", pa.int64()),
        ("verified", pa.int64()),
    ]
)
"""Columns of :func:`chain_messages`."""
MESSAGES_DAILY = """
SELECT date, emitter_chain, SUM(messages) AS messages, SUM(verified) AS verified,
       SUM(messages) - SUM(verified) AS quarantined
FROM chain_messages
GROUP BY date, emitter_chain
"""
"""Query of ``messages_daily`` over the sums of all tasks."""


def event_tables(verdicts: VaaVerdicts) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of the tables of events, by name."""
    published = verdicts.published
    vaas, payloads = verdicts.vaas.filter(published), verdicts.payloads.filter(published)
    yield "message_publication", vaas.select(WORMHOLE_TABLES["message_publication"].names)
    yield "quorum_state", vaas.select(["row_key", "raw", "date"]).rename_columns({"raw": "signed_vaa"})
    for table, payload in _PAYLOADS.items():
        yield table, _of(vaas, payloads[payload])
    yield "governance_actions", governance_actions(vaas)


def _of(vaas: pa.Table, structs: pa.ChunkedArray) -> pa.Table:
    """Return the rows that have a struct, with its fields."""
    there = structs.is_valid()
    rows = vaas.select(["row_key", "date"]).filter(there)
    present = structs.filter(there).combine_chunks()
    for at in range(present.type.num_fields):
        rows = rows.append_column(present.type.field(at).name, pc.struct_field(present, at))
    return rows


def chain_messages(verdicts: VaaVerdicts) -> pa.Table:
    """Count messages per day and emitter chain: all (distinct bytes, but surplus copies) and verified ones.

    Bytes that show no emitter count for the chain that their document claims; without such a claim they count
    nowhere, as the table has no row for them.
    """
    rows = verdicts.vaas.filter(pc.not_equal(verdicts.vaas["outcome"], SURPLUS))
    claimed = pc.extract_regex(rows["claimed_id"], r"^\s*(?P<chain>\d{1,5})\s*(?:/|$)")
    number = pc.struct_field(claimed, "chain").cast(pa.int32())
    number = pc.if_else(pc.less_equal(number, 65_535), number, None)
    counted = pa.table(
        {
            "date": rows["date"],
            "emitter_chain": pc.coalesce(rows["emitter_chain"], number),
            "verified": pc.equal(rows["outcome"], PUBLISHED).cast(pa.int64()),
        }
    )
    counted = counted.filter(pc.is_valid(counted["emitter_chain"]))
    sums = counted.group_by(["date", "emitter_chain"], use_threads=False).aggregate(
        [("verified", "count"), ("verified", "sum")]
    )
    renamed = sums.rename_columns({"verified_count": "messages", "verified_sum": "verified"})
    return renamed.select(CHAIN_MESSAGES.names).cast(CHAIN_MESSAGES)
