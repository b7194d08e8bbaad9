"""Contracts of the Cassandra tables of the Chrysalis permanode, and where each table of a network lives.

Tables whose name the Stardust schema has too live in a second keyspace ``NETWORK_v1``.
"""

from __future__ import annotations

from permalake.contracts.cql import Order, StoreTable, create_keyspace
from permalake.iota.permanode.stardust_schema import STARDUST_TABLES

_LOOKUP: tuple[Order, ...] = (("milestone_index", "DESC"), ("message_id", "ASC"))


def _lookup(name: str, doc: str, key: str, second: bool = False) -> StoreTable:
    """Return a partitioned look-up table of messages."""
    columns = {
        key: "text",
        "partition_id": "smallint",
        "milestone_index": "int",
        "message_id": "text",
        "inclusion_state": "blob",
        "updated_at": "timestamp",
    }
    return StoreTable(name, doc, columns, (key, "partition_id"), _LOOKUP, second=second)


MESSAGES = StoreTable(
    "messages",
    "Referenced messages with their metadata.",
    {"message_id": "blob", "message": "blob", "metadata": "blob", "proof": "blob"},
    ("message_id",),
    second=True,
)
ADDRESSES = StoreTable(
    "addresses",
    "Outputs by address.",
    {
        "address": "text",
        "partition_id": "smallint",
        "milestone_index": "int",
        "output_type": "tinyint",
        "transaction_id": "text",
        "idx": "smallint",
        "amount": "bigint",
        "address_type": "tinyint",
        "inclusion_state": "blob",
        "updated_at": "timestamp",
    },
    ("address", "partition_id"),
    (("milestone_index", "DESC"), ("output_type", "DESC"), ("transaction_id", "DESC"), ("idx", "DESC")),
)
INDEXES = _lookup("indexes", "Messages by indexation key.", "indexation")
PARENTS = _lookup("parents", "Children of a message.", "parent_id", second=True)
TRANSACTIONS = StoreTable(
    "transactions",
    "Inputs, outputs and unlocks, one row each.",
    {
        "transaction_id": "text",
        "idx": "smallint",
        "variant": "text",
        "message_id": "text",
        "data": "blob",
        "inclusion_state": "blob",
        "milestone_index": "int",
    },
    ("transaction_id",),
    (("idx", "ASC"), ("variant", "ASC"), ("message_id", "ASC"), ("data", "ASC")),
    second=True,
)
HINTS = StoreTable(
    "hints",
    "Partitions of a key, newest first.",
    {"hint": "text", "variant": "text", "partition_id": "smallint", "milestone_index": "int"},
    ("hint",),
    (("variant", "DESC"), ("partition_id", "DESC")),
)
MILESTONES = StoreTable(
    "milestones",
    "Milestones.",
    {"milestone_index": "int", "message_id": "text", "timestamp": "bigint", "payload": "blob"},
    ("milestone_index",),
    (("message_id", "ASC"),),
    second=True,
)
SYNC = StoreTable(
    "sync",
    "Milestones that are complete here; written last.",
    {"key": "text", "milestone_index": "int", "synced_by": "tinyint", "logged_by": "tinyint"},
    ("key",),
    (("milestone_index", "DESC"),),
    second=True,
)

PLACES = StoreTable(
    "places",
    "How far the partitions of a key are filled: an index of the lake's placement, of our own.",
    {"variant": "text", "hint": "text", "taken": "bigint"},
    ("variant", "hint"),
    second=True,
)

CHRYSALIS_TABLES = (MESSAGES, ADDRESSES, INDEXES, PARENTS, TRANSACTIONS, HINTS, MILESTONES, SYNC)
"""The schema of the Chrysalis permanode, served for Chrysalis networks; ``sync`` last, as it is written."""


def keyspace_of(network: str) -> str:
    """Return the keyspace of a network."""
    return network.replace("-", "_")


def second_keyspace(network: str) -> str:
    """Return the keyspace of tables whose names clash, and of our own tables."""
    return f"{keyspace_of(network)}_v1"


def placed(network: str, protocol: str) -> list[tuple[str, StoreTable]]:
    """Return every table of a network with its keyspace, in the order in which they are written."""
    first = keyspace_of(network)
    tables = [(first, table) for table in STARDUST_TABLES]
    if protocol == "chrysalis":
        second = second_keyspace(network)
        tables += [(second if table.second else first, table) for table in (*CHRYSALIS_TABLES, PLACES)]
    return sorted(tables, key=lambda pair: pair[1].name == "sync")


def schema(network: str, protocol: str, datacenter: str, replication: int) -> list[str]:
    """Return all statements that create the missing parts of a network's schema."""
    tables = placed(network, protocol)
    keyspaces = sorted({keyspace for keyspace, _ in tables})
    return [
        *(create_keyspace(keyspace, datacenter, replication) for keyspace in keyspaces),
        *(statement for keyspace, table in tables for statement in table.ddl(keyspace)),
    ]
