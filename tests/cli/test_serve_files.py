"""``permalake serve`` under a limit of open files."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

SCRIPT = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from permalake.cli.serve import _within_open_files
from permalake.config import ServeSettings
print(_within_open_files(ServeSettings()).connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "connections", "raised"),
    [(256, 4096, 1024, 2048), (256, 1500, 476, 1500), (256, 256, 64, 256)],
)
def test_connections_leave_files_to_the_lake(soft, hard, connections, raised):
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < hard:
        pytest.fail("this machine allows fewer open files than the test needs")
    script = SCRIPT.format(soft=soft, hard=hard)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(connections), str(raised)]
    assert ("serve.connections is" in done.stderr) == (connections < 1024)
