"""Work in Spark's tasks: results in order, errors as they were raised, and what a task may use."""

from __future__ import annotations

import os

import pytest

from permalake.errors import InvalidInputError
from permalake.spark.submit import mebibytes
from permalake.spark.tasks import TaskShare, in_task, in_tasks


def test_results_come_in_the_order_of_the_subjects_from_other_processes(spark) -> None:
    found = in_tasks(spark, lambda number, share: (number, share.threads, os.getpid()), [30, 1, 2])
    assert [number for number, _, _ in found] == [30, 1, 2]
    cores = spark.sparkContext.defaultParallelism
    assert {threads for _, threads, _ in found} == {max(1, cores // 3)}
    assert os.getpid() not in {process for _, _, process in found}
    assert in_tasks(spark, lambda *_: 1, []) == []


def test_an_error_of_this_program_is_raised_as_it_was(spark) -> None:
    def work(_):
        raise InvalidInputError("milestone 7 has no root")

    with pytest.raises(InvalidInputError, match=r"^milestone 7 has no root$"):
        in_task(spark, work)


def test_another_error_fails_the_task(spark) -> None:
    with pytest.raises(Exception, match="by zero"):
        in_task(spark, lambda _: 1 // 0)


def test_tasks_share_a_machine_and_have_their_own_on_a_cluster(spark, monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_SPARK_DRIVER_MEMORY", "4g")
    cores = spark.sparkContext.defaultParallelism
    assert TaskShare.of(spark, 1) == TaskShare("4096m", cores)
    assert TaskShare.of(spark, 1000) == TaskShare(f"{4096 // cores}m", 1)
    monkeypatch.setenv("PERMALAKE_SPARK_MASTER", "spark://elsewhere:7077")
    assert TaskShare.of(spark, 1) == TaskShare("1g", 1)


@pytest.mark.parametrize(
    ("size", "expected"), [("8g", 8192), ("512m", 512), ("1048576k", 1024), ("1.5g", 1536), ("2097152", 2)]
)
def test_sizes_are_as_java_spells_them(size, expected) -> None:
    assert mebibytes(size) == expected
