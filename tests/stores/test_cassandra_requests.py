"""Rows of a head in requests: few enough of a size that no server warns of, and none refuses."""

from __future__ import annotations

from cassandra.cqltypes import BytesType, UTF8Type
from cassandra.protocol import ProtocolVersion
from cassandra.query import BatchStatement, BoundStatement, PreparedStatement

from permalake.stores import cassandra

WARNED_BYTES, WARNED_PARTITIONS = 5120, 10
"""Above these a server of its own defaults warns of a batch."""


class Column:
    """A bound column, as a server describes it."""

    keyspace_name, table_name = "k", "t"

    def __init__(self, name, kind):
        self.name, self.type = name, kind


def prepared():
    columns = [Column("id", UTF8Type), Column("raw", BytesType)]
    return PreparedStatement(columns, b"", None, "", "k", ProtocolVersion.V5, None, None)


def requests(sizes):
    rows = [(f"{number:064}", bytes(size)) for number, size in enumerate(sizes)]
    made = list(cassandra._requests(prepared(), rows))
    sent = [
        [values for _, _, values in request._statements_and_parameters]
        if isinstance(request, BatchStatement)
        else [request.values]
        for request in made
    ]
    assert [values[0].decode() for request in sent for values in request] == [key for key, _ in rows]
    return made, sent


def test_ten_small_rows_share_a_request() -> None:
    made, sent = requests([50] * 25)
    assert [len(values) for values in sent] == [10, 10, 5]
    assert all(isinstance(request, BatchStatement) for request in made)


def test_a_large_row_goes_alone_and_not_as_a_batch() -> None:
    made, sent = requests([50, 60_000, 50, 3000, 3000, 900])
    assert [len(values) for values in sent] == [1, 1, 2, 2]
    assert isinstance(made[1], BoundStatement)
    for values in sent:
        if len(values) > 1:
            assert sum(len(value) for row in values for value in row) < WARNED_BYTES
            assert len(values) <= WARNED_PARTITIONS
