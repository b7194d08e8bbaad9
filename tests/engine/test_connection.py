"""What every connection to DuckDB has in common."""

import subprocess
import sys

SETTINGS = "current_setting('enable_progress_bar'), current_setting('TimeZone')"
ASK = f"""
from permalake.engine.connection import connect
print(connect().sql("SELECT {SETTINGS}").fetchall())
"""


def test_nothing_is_drawn_even_where_duckdb_takes_python_for_a_person() -> None:
    """Without a script DuckDB would draw: its progress came among the rows of a query of some seconds."""
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    assert done.stdout == "[(False, 'UTC')]\n"
