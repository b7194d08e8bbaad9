"""The tables that follow from decoded rows alone, milestone by milestone; in Arrow, inside Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from permalake.iota.cone.decoded import Row
from permalake.iota.cone.source_records import InclusionState
from permalake.iota.contracts.analytics import ADDRESS_ANALYTICS
from permalake.iota.tables import message_tables, movements, output_tables
from permalake.iota.tables.decoded_columns import DecodedRange, DecodedRows
from permalake.iota.tables.milestone_activity import milestone_activity
from permalake.iota.tables.protocol_parameters import protocol_parameters

BASE_TABLES = (
    *("messages", "parents", "tags", "transactions"),
    *("basic_outputs", "alias_outputs", "foundry_outputs", "nft_outputs", "legacy_outputs"),
    *("treasury_outputs", "receipts", "protocol_parameters", "consumed_outputs"),
    *("native_tokens", "ledger_updates", "conflicting_transactions", "address_analytics"),
    *("ms_analytics", "ms_activity"),
)


def base_tables(rows: DecodedRange) -> Iterator[tuple[str, pa.Table]]:
    """Yield rows of tables, by name, from decoded rows of whole milestones; tables without rows are left out.

    Conflicting messages may come apart from the others of their milestone, once their reasons are known.
    """
    for name, made in _every_table(rows):
        if made.num_rows:
            yield name, made


def _every_table(rows: DecodedRange) -> Iterator[tuple[str, pa.Table]]:
    addresses = ADDRESS_ANALYTICS.arrow.empty_table()
    if len(rows.blocks):
        yield from _of_messages(rows.blocks)
        if len(included := rows.included):
            updates = movements.ledger_updates(included)
            addresses = movements.address_analytics(updates)
            yield "ledger_updates", updates
            yield "address_analytics", addresses
            yield from _of_included(included)
    if len(milestones := rows.milestones):
        is_message = pc.is_in(rows.every["kind"], pa.array([Row.BLOCK, Row.PENDING], pa.int8()))
        messages = rows.every.where(is_message)
        yield from milestone_activity(milestones, messages, addresses)
        yield "protocol_parameters", protocol_parameters(milestones)
        if len(rows.receipts):
            yield from _of_receipts(rows.receipts)


def _of_messages(blocks: DecodedRows) -> Iterator[tuple[str, pa.Table]]:
    yield "messages", message_tables.messages(blocks)
    yield "parents", message_tables.parents(blocks)
    yield "tags", message_tables.tags(blocks)
    yield "transactions", message_tables.transactions(blocks)
    yield (
        "conflicting_transactions",
        movements.conflicting_transactions(blocks.in_state(InclusionState.CONFLICTING)),
    )


def _of_included(included: DecodedRows) -> Iterator[tuple[str, pa.Table]]:
    yield from output_tables.created_outputs(included)
    yield "consumed_outputs", output_tables.consumed_outputs(included)
    yield "native_tokens", movements.native_tokens(included)


def _of_receipts(receipts: DecodedRows) -> Iterator[tuple[str, pa.Table]]:
    yield from output_tables.migrated_outputs(receipts)
    yield "treasury_outputs", output_tables.treasury_outputs(receipts)
    yield "receipts", output_tables.receipts_table(receipts)
    yield "consumed_outputs", output_tables.treasury_spent(receipts)
    yield "ledger_updates", movements.ledger_updates_of_receipts(receipts)
