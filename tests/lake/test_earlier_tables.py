"""Tables of a lake that an earlier version made."""

from __future__ import annotations

from dataclasses import replace

from permalake.contracts import schema
from permalake.domains import domain_of
from permalake.lake import catalog
from permalake.lake.catalog import open_table
from support.lakes import NETWORK


def test_a_table_of_an_earlier_version_gets_the_columns_of_its_contract_in_order(settings, lake):
    """The audit compares columns in order; what an upgrade adds may stand anywhere in the contract."""
    contract = domain_of(NETWORK).tables["daily_activity"]
    later = {"milestones", "moved_tokens", "nft_created_count"}
    old = [column for column in contract.columns if column.name not in later]
    old.append(schema.Column("milestone_count", "int", "Milestones, by the former name."))
    former = replace(contract, body=(*old[1:], old[0]))
    catalog.ensure(settings, lake.database, NETWORK, {"daily_activity": former})
    lake.ensure(NETWORK)
    table = open_table(lake.reader.locations(NETWORK)["daily_activity"])
    assert [field.name for field in table.schema().fields] == list(contract.names)
    before = lake.reader.locations(NETWORK)
    lake.ensure(NETWORK)
    assert lake.reader.locations(NETWORK) == before
