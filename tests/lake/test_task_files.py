"""Files that tasks write themselves: what Iceberg knows of them, and what becomes of a table's days."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from permalake.contracts import Table
from permalake.errors import PermalakeError
from permalake.iota.contracts import IOTA_TABLES
from permalake.lake.catalog import open_table
from permalake.lake.counts import day_of, files
from permalake.lake.task_files import TaskFiles, WrittenFile
from support.lakes import DAY1, DAY2, DAY3, NETWORK, build, messages, put, state

CONTRACT: Table = IOTA_TABLES["messages"]


def written(attempt, *rows, contract=CONTRACT):
    found = TaskFiles(attempt.targets([contract]), {})
    for some in rows:
        found.add(contract.name, pa.Table.from_pylist(some, contract.arrow))
    return found.complete()


def test_a_file_for_each_day_sorted_as_the_contract_says(lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY2, "run")
    rows = [*messages(DAY2, 8, 3), *messages(DAY1, 7, 4)]
    told = [file.to_text() for file in written(attempt, rows[::-1])]
    attempt.stage_files(map(WrittenFile.from_text, told), [CONTRACT])
    assert attempt.staged.counts()["messages"] == {DAY1: 4, DAY2: 3}
    staged = open_table(attempt.staged.locations()["messages"])
    assert sorted(day_of(file) for file in files(staged)) == [DAY1, DAY2]
    of_day = staged.scan(row_filter=f"date = '{DAY1}'").to_arrow()
    assert of_day["white_flag_index"].to_pylist() == [0, 1, 2, 3]


def test_statistics_let_a_reader_skip_files(lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    for milestone in (7, 8):
        attempt.stage_files(written(attempt, messages(DAY1, milestone, 2)), [CONTRACT])
    staged = open_table(attempt.staged.locations()["messages"])
    (file,) = files(staged)
    names = {field.name: field.field_id for field in staged.schema().fields}
    assert file.value_counts[names["message_id"]] == 2
    assert file.null_value_counts[names["proof"]] == 2
    assert file.lower_bounds[names["milestone_index"]] == (8).to_bytes(4, "little")
    assert list(staged.scan(row_filter="milestone_index = 9").plan_files()) == []


def test_row_groups_are_as_large_as_the_table_wants_them(lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    (target,) = attempt.targets([CONTRACT])
    small = replace(target, properties={**target.properties, "write.parquet.row-group-size-bytes": "1"})
    tasks = TaskFiles([small], {})
    for milestone in (7, 8, 9):
        tasks.add("messages", pa.Table.from_pylist(messages(DAY1, milestone, 2), CONTRACT.arrow))
    (file,) = tasks.complete()
    assert len(file.facts["split_offsets"]) == 3
    attempt.stage_files([file], [CONTRACT])
    staged = open_table(attempt.staged.locations()["messages"])
    assert staged.scan().to_arrow()["milestone_index"].to_pylist() == [7, 7, 8, 8, 9, 9]


def test_a_table_without_files_loses_its_days_and_no_other(settings, lake) -> None:
    build(settings, lake, DAY1, 1, 5, "one")
    build(settings, lake, DAY2, 2, 7, "two")
    attempt = lake.begin(NETWORK, DAY2, DAY2, "again")
    attempt.stage_files([], [CONTRACT])
    assert attempt.staged.counts()["messages"] == {}
    assert open_table(attempt.staged.locations()["messages"]).scan().to_arrow().num_rows == 5
    assert state(lake) == {DAY1: (5, 5), DAY2: (7, 7)}


def test_rows_of_another_day_are_refused(settings, lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    stray = written(attempt, messages(DAY3, 7, 1))
    with pytest.raises(PermalakeError, match=f"messages: rows of {DAY3} do not belong to {DAY1}"):
        attempt.stage_files(stray, [CONTRACT])
    put(settings, attempt, "messages", messages(DAY1, 7, 1))
    assert attempt.staged.counts()["messages"] == {DAY1: 1}


def test_nothing_is_staged_once_the_block_has_ended(lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    found = written(attempt, messages(DAY1, 7, 1))
    lake.leave()
    with pytest.raises(PermalakeError, match="the block of run run has ended"):
        attempt.stage_files(found, [CONTRACT])
