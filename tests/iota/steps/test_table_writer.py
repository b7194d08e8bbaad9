"""What a task makes of decoded rows: also when our code stumbles on one milestone."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from permalake.iota.cone.decoded import ARROW, Row
from permalake.iota.steps import table_writer
from permalake.iota.steps.table_writer import PROBLEMS
from support import pure_archive
from support.iota_days import SYNTHETIC
from support.made_tables import MadeTables

FIRST, BAD = 249_992, 249_995


@pytest.fixture(scope="module")
def decoded():
    root = SYNTHETIC / "stardust" / "archive"
    days, first = pure_archive.days(root)
    rows, problems = pure_archive.prove(pure_archive.records(root), "stardust", days, first)
    assert problems == []
    return pa.Table.from_pylist(rows, ARROW)


def made(decoded, folder):
    """(milestones of messages, rows of problems)."""
    tables = MadeTables(folder)
    for batch in tables.writer([decoded]):
        tables.written.add(batch.to_pylist())
    paths = [file.facts["path"] for file in tables.written.files if file.table == "messages"]
    messages = pa.concat_tables(pq.read_table(path, columns=["milestone_index"]) for path in paths)
    return set(messages["milestone_index"].to_pylist()), tables.written.dataset(PROBLEMS).to_table()


def test_a_milestone_without_rows_refuses_its_day_and_the_others_are_written(
    decoded, tmp_path, monkeypatch
) -> None:
    whole, problems = made(decoded, str(tmp_path / "sound"))
    assert problems.num_rows == 0
    base_tables = table_writer.base_tables

    def stumbling(rows):
        if pc.any(pc.equal(rows.every["milestone_index"], BAD)).as_py():
            raise OverflowError("Python int too large to convert to C long")
        yield from base_tables(rows)

    monkeypatch.setattr(table_writer, "base_tables", stumbling)
    others, problems = made(decoded, str(tmp_path / "bad"))
    assert others == whole - {BAD}
    [problem] = problems.to_pylist()
    assert (problem["kind"], problem["milestone_index"], problem["reason"]) == (
        Row.PROBLEM,
        BAD,
        "undecodable",
    )
    assert (problem["breaks"], problem["date"]) == (True, date(2022, 9, 28))
    assert problem["detail"] == "OverflowError: Python int too large to convert to C long"
