"""What every connection to DuckDB has in common, and every cursor of it."""

import os
import subprocess
import sys

SETTINGS = ("enable_progress_bar", "TimeZone", "python_enable_replacements")
ASK = f"""
from permalake.engine.connection import connect
query = "SELECT " + ", ".join(f"current_setting('{{name}}')" for name in {SETTINGS})
connection = connect()
print(connection.sql(query).fetchall(), connection.cursor().sql(query).fetchall())
"""


def test_nothing_is_drawn_and_all_is_in_utc_wherever_the_machine_is() -> None:
    """Without a script DuckDB draws its progress; a cursor has only what its connection set globally."""
    environment = {**os.environ, "TZ": "America/New_York"}
    command = [sys.executable, "-c", ASK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{[(False, 'UTC', False)]} {[(False, 'UTC', False)]}\n"
