"""Tables of a lake that an earlier version made."""

from __future__ import annotations

from dataclasses import replace

from permalake.contracts import schema
from permalake.domains import domain_of
from permalake.lake import catalog
from permalake.lake.catalog import open_catalog, open_table
from permalake.lake.state import PUBLISHED
from support.lakes import NETWORK


def test_a_table_of_an_earlier_version_gets_the_columns_of_its_contract_in_order(settings, lake) -> None:
    """The audit compares columns in order; what an upgrade adds may stand anywhere in the contract."""
    contract = domain_of(NETWORK).tables["daily_activity"]
    later = {"milestones", "moved_tokens", "nft_created_count"}
    old = [column for column in contract.columns if column.name not in later]
    old.append(schema.Column("colour", "int", "What the contract has no more."))
    former = replace(contract, body=(*old[1:], old[0]))
    catalog.ensure(settings, lake.database, NETWORK, {"daily_activity": former})
    lake.ensure(NETWORK)
    table = open_table(lake.reader.locations(NETWORK)["daily_activity"])
    assert [field.name for field in table.schema().fields] == [*contract.names, "colour"]
    before = lake.reader.locations(NETWORK)
    lake.ensure(NETWORK)
    assert lake.reader.locations(NETWORK) == before


def test_a_table_of_an_earlier_version_gets_the_row_groups_of_its_contract(settings, lake) -> None:
    tables = domain_of(NETWORK).tables
    lake.ensure(NETWORK)
    published = open_catalog(settings, PUBLISHED)
    table = published.load_table((NETWORK, "messages"))
    with table.transaction() as transaction:
        transaction.remove_properties("write.parquet.row-group-size-bytes")
    lake.ensure(NETWORK)
    found = {
        name: open_table(location).properties for name, location in lake.reader.locations(NETWORK).items()
    }
    sizes = {name: int(one["write.parquet.row-group-size-bytes"]) for name, one in found.items()}
    assert sizes == {name: tables[name].row_group_bytes for name in sizes}
    # Single messages are looked up, figures are scanned.
    assert sizes["messages"] < sizes["ms_analytics"]
