"""Contract of the placement: which partitions of the Chrysalis permanode's look-ups hold which rows."""

from __future__ import annotations

from permalake.contracts.schema import Column, Table

PERMANODE_PARTITIONS = Table(
    "permanode_partitions",
    "iota",
    "Where rows of the partitioned look-ups went, so that a day published again lands where it was. Rows are "
    "only ever added.",
    (
        Column("variant", "string", "Look-up table.", values=("address", "index", "parent")),
        Column("hint", "string", "Key: address, tag in hex, or message id."),
        Column("partition_id", "int", "Partition of the key.", minimum=0, maximum=32767),
        Column("first", "long", "Place within the partition of the first of these rows.", minimum=0),
        Column("rows", "long", "How many places the rows of this day take from there.", minimum=1),
    ),
    key=("variant", "hint", "partition_id", "first"),
    sort=("variant", "hint", "partition_id"),
)
