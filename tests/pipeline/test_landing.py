"""What tasks land, and how later tasks share it."""

import pyarrow as pa

from permalake.pipeline.landing import TaskOutput, Written

SCHEMAS = {"numbers": pa.schema({"n": pa.int64()})}


def test_parts_are_whole_files_in_order(tmp_path) -> None:
    written = Written(SCHEMAS)
    assert written.parts("numbers", 10) == []
    for first, count in ((0, 4), (4, 3), (7, 1), (8, 6)):
        output = TaskOutput([], str(tmp_path), SCHEMAS, {})
        output.land("numbers", pa.table({"n": range(first, first + count)}, SCHEMAS["numbers"]))
        written.add(output.close().to_pylist())

    def numbers(rows):
        return [part.to_table()["n"].to_pylist() for part in written.parts("numbers", rows)]

    assert numbers(5) == [[*range(7)], [*range(7, 14)]]
    assert numbers(1) == [[*range(4)], [*range(4, 7)], [7], [*range(8, 14)]]
    assert numbers(100) == [[*range(14)]]
