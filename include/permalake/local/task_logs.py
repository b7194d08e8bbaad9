"""Logs of tasks that run in this process: parts of its output, where Airflow's server looks for them."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

from airflow.listeners import hookimpl

STDOUT = 1


class TaskLogs:
    """Listener that writes each task's part of the output to a file of its own.

    Tasks run one after the other. The output has to be a file that can be read; nothing is written otherwise.
    """

    def __init__(self, folder: Path, output: int = STDOUT) -> None:
        self._folder = folder
        self._output = output
        self._begin = 0

    @hookimpl
    def on_task_instance_running(self, previous_state: Any, task_instance: Any) -> None:  # noqa: ARG002
        """Remember where the task's output begins."""
        self._begin = self._end()

    @hookimpl
    def on_task_instance_success(self, previous_state: Any, task_instance: Any) -> None:  # noqa: ARG002
        """Write the log of a task that succeeded."""
        self._write(task_instance)

    @hookimpl
    def on_task_instance_skipped(self, previous_state: Any, task_instance: Any) -> None:  # noqa: ARG002
        """Write the log of a task that was skipped."""
        self._write(task_instance)

    @hookimpl
    def on_task_instance_failed(self, previous_state: Any, task_instance: Any, error: Any) -> None:  # noqa: ARG002
        """Write the log of a task that failed."""
        self._write(task_instance)

    def _end(self) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        return os.fstat(self._output).st_size

    def _write(self, task: Any) -> None:
        end = self._end()
        if not stat.S_ISREG(os.fstat(self._output).st_mode):
            return
        # The path of Airflow's own log template (``core.log_filename_template``).
        place = self._folder / f"dag_id={task.dag_id}" / f"run_id={task.run_id}" / f"task_id={task.task_id}"
        place.mkdir(parents=True, exist_ok=True)
        text = os.pread(self._output, end - self._begin, self._begin)
        (place / f"attempt={max(task.try_number, 1)}.log").write_bytes(text)
