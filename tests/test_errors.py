"""The one line that an error becomes."""

import sqlite3

import pytest
from pyspark.errors import PythonException

from permalake.errors import line_of

IN_A_TASK = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "writer.py", line 53, in __call__
    output.land(COUNTS, counts: dict)
                ^^^^^^
  File "pyarrow/error.pxi", line 92, in pyarrow.lib.check_status
pyarrow.lib.ArrowInvalid: Regular expression contains
  unnamed groups

"""


@pytest.mark.fast
@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("no such day\nsecond line"), "ValueError: no such day"),
        (ValueError("\n  late"), "ValueError: late"),
        (KeyError(), "KeyError"),
        (PythonException(IN_A_TASK), "pyarrow.lib.ArrowInvalid: Regular expression contains"),
        (PythonException("lost\nTraceback (most recent call last):\n"), "PythonException: lost"),
    ],
)
def test_an_error_on_one_line(error, line) -> None:
    assert line_of(error) == line


@pytest.mark.fast
@pytest.mark.parametrize(
    ("error", "beginning"),
    [
        (OSError(28, "No space left on device", "/lake/a.parquet"), "the disk is full; free space"),
        (sqlite3.OperationalError("database or disk is full"), "the disk is full; free space"),
        (
            OSError("Error writing bytes to file. Detail: [errno 28] No space left on device"),
            "the disk is full",
        ),
        (RuntimeError("o77.save\njava.io.IOException: No space left on device\n\tat x"), "the disk is full"),
        (
            OSError(24, "Too many open files"),
            "the limit of open files is too low; raise it (ulimit -n 65536)",
        ),
        (MemoryError(), "memory ran out; raise its limit"),
        (RuntimeError("can't start new thread"), "memory ran out; raise its limit"),
        (RuntimeError("os::commit_memory failed; error='Not enough space' (errno=12)"), "memory ran out"),
        (OSError(12, "Cannot allocate memory"), "memory ran out; raise its limit"),
        (
            PythonException("\nTraceback (most recent call last):\n  File 'x'\nMemoryError\n"),
            "memory ran out",
        ),
        (
            OSError(30, "Read-only file system", "/lake"),
            "the warehouse, its catalog or PERMALAKE_HOME is read-only",
        ),
        (sqlite3.OperationalError("attempt to write a readonly database"), "the warehouse, its catalog or"),
        (PermissionError(13, "Permission denied", "/lake/logs"), "permission is denied; let this user read"),
        (sqlite3.OperationalError("database is locked"), "another process holds the catalog; wait for it"),
        (sqlite3.DatabaseError("file is not a database"), "the catalog is damaged; restore its backup, or"),
    ],
    ids=str,
)
def test_a_machine_at_its_limits_is_told_with_what_to_do(error, beginning) -> None:
    line = line_of(error)
    assert line.startswith(beginning)
    assert "\n" not in line
    if getattr(error, "filename", None):
        assert line.endswith(f" ({error.filename})")
