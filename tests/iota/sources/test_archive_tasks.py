"""How ranges of an archive's files are shared out among tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from permalake.pipeline.line_tasks import tasks_of

pytestmark = pytest.mark.fast
MIB = 1 << 20


@given(st.lists(st.integers(0, 40 * MIB), min_size=1, max_size=300), st.integers(1, 16))
def test_every_range_has_a_task_and_every_task_a_range(sizes, cores) -> None:
    tasks = tasks_of(sizes, cores)
    assert len(tasks) == len(sizes)
    if all(sizes):
        assert set(tasks) == set(range(max(tasks) + 1))
    loads = [sum(size for size, own in zip(sizes, tasks, strict=True) if own == task) for task in set(tasks)]
    assert max(loads) - min(loads) <= max(sizes)


def test_small_files_share_a_task() -> None:
    assert len(set(tasks_of([2000] * 1825, 2))) == 8
    assert set(tasks_of([500] * 6, 2)) == {0}


def test_large_files_get_more_tasks_than_cores() -> None:
    assert len(set(tasks_of([32 * MIB] * 100, 2))) == 50
    assert len(set(tasks_of([4 * MIB] * 62, 2))) == 8
