"""The table contracts hold together, and their schemas agree with each other."""

from __future__ import annotations

import re

import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyspark.sql.pandas.types import from_arrow_schema

from permalake.domains import domain_of
from permalake.iota.contracts import IOTA_TABLES
from permalake.wormhole.contracts import WORMHOLE_TABLES

EVERY = {**IOTA_TABLES, **WORMHOLE_TABLES}

# The tables and columns that the outside relies on (order included), besides `date`.
SETTLED = {
    "milestones": "milestone_index message_id timestamp payload milestone_id",
    "messages": "message_id version message milestone_index white_flag_index inclusion_state "
    "conflict_reason proof",
    "parents": "parent_id message_id milestone_index inclusion_state",
    "tags": "tag ms_range_id milestone_index ms_timestamp message_id inclusion_state",
    "transactions": "transaction_id idx variant message_id data inclusion_state milestone_index",
    "consumed_outputs": "output_id kind address amount transaction_id message_id milestone_index "
    "ms_timestamp data",
    "ms_analytics": "ms_range_id milestone_index message_count transaction_count transferred_tokens",
    "address_analytics": "address milestone_index sent_tokens recv_tokens",
    "quarantine": "source origin reason detail raw seen_at",
    "chain_details": "row_key sender_address receiver_address resulting_token_address "
    "resulting_token_symbol resulting_token_name",
}


@pytest.mark.parametrize("table", EVERY.values(), ids=EVERY)
def test_every_table_is_whole(table) -> None:
    assert table.names.count("date") == 1
    assert len(set(table.names)) == len(table.names)
    assert set(table.key) <= set(table.names)
    assert set(table.sort) <= set(table.names)
    assert {*table.first_value, *filter(None, [table.time_column])} <= set(table.names)
    assert not table.first_value or table.commit == "side", "a day's own tables are rebuilt as a whole"
    assert table.doc.endswith(".")
    for column in table.columns:
        assert column.doc.strip(), f"{table.name}.{column.name} has no meaning"
        if column.pattern:
            re.compile(column.pattern)
    assert all(table.column(name).required or name == "raw" for name in table.key), (
        "a key column may be null only where the quarantined bytes are absent"
    )


def test_roles_of_tables() -> None:
    """Side tables, carried tables, tables dated by a milestone's time: the lake, the audit and the API
    read these roles."""
    assert {name for name, table in EVERY.items() if table.commit == "side"} == {
        *("quarantine", "token_prices", "chain_answers", "redemptions", "token_custody")
    }
    assert {name for name, table in EVERY.items() if table.commit == "carried"} == {
        *("ledger_totals", "ledger_outputs", "unlock_conditions", "active_addresses"),
        *("address_balances", "token_distribution", "richest_addresses", "attested_tokens", "tvl_daily"),
    }
    timed = {name for name, table in IOTA_TABLES.items() if "ms_timestamp" in table.names}
    assert {name for name, table in EVERY.items() if table.time_column} == timed | {"milestones"}


@pytest.mark.parametrize("table", EVERY.values(), ids=EVERY)
def test_schemas_agree(table) -> None:
    plain = schema_to_pyarrow(table.iceberg, include_field_ids=False)
    assert plain.names == table.arrow.names
    assert [field.nullable for field in plain] == [field.nullable for field in table.arrow]
    assert from_arrow_schema(table.arrow, prefer_timestamp_ntz=False).names == table.spark.names
    spark = {field.name: field.dataType for field in from_arrow_schema(table.arrow)}
    for field in table.spark:
        assert spark[field.name].typeName() == field.dataType.typeName(), field.name


@pytest.mark.parametrize(("name", "columns"), SETTLED.items(), ids=SETTLED)
def test_settled_columns(name, columns) -> None:
    assert [column for column in EVERY[name].names if column != "date"] == columns.split()


def test_quarantine_is_in_every_namespace() -> None:
    assert "quarantine" in domain_of("wormhole").tables
    assert "quarantine" in domain_of("shimmer").tables
    assert not set(IOTA_TABLES) & set(WORMHOLE_TABLES) - {"quarantine"}
