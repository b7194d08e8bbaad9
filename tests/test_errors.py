"""The one line that an error becomes."""

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
        (PythonException("\nTraceback (most recent call last):\n  File 'x'\nMemoryError\n"), "MemoryError"),
        (PythonException("lost\nTraceback (most recent call last):\n"), "PythonException: lost"),
    ],
)
def test_an_error_on_one_line(error, line):
    assert line_of(error) == line
