"""The same IOTA day with its warehouse on a disk and on a server of S3 (versitygw) on this machine.

``python -m bench.object_storage [MESSAGES]``: builds the day once in each.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from bench.iota_build import DAY, archive, environment
from bench.machine import Usage, watch
from bench.simulated import COMMAND
from permalake.paths import ROOT
from permalake.spark import jars

sys.path.append(str(ROOT / "tests"))
from support import s3_server


def run(messages: int = 1_000_000) -> list[dict]:
    """Seconds of the build on S3 beside those on the disk."""
    source = archive(messages)
    jars.resolve(jars.S3_COORDINATES)
    with tempfile.TemporaryDirectory(prefix="bench-disk-") as folder:
        disk = _built(environment(Path(folder), source))
    with tempfile.TemporaryDirectory(prefix="bench-s3-") as folder:
        server = Path(folder) / "server"
        server.mkdir()
        with s3_server.s3_server(server) as variables:
            warehouse = {
                "PERMALAKE_LAKE__WAREHOUSE": f"s3://{s3_server.BUCKET}/warehouse",
                "PERMALAKE_LAKE__CATALOG": f"sqlite:///{folder}/catalog.db",
            }
            remote = _built(environment(Path(folder), source) | variables | warehouse)
    return [
        {
            "name": f"IOTA day of {messages:,} messages on S3",
            "unit": "s",
            "ours": round(remote.seconds, 1),
            "peer": round(disk.seconds, 1),
            "peer_name": "the same on a disk",
            "ratio": round(disk.seconds / remote.seconds, 3),
            "cpu_seconds": round(remote.cpu_seconds, 1),
            "cpu_seconds_on_a_disk": round(disk.cpu_seconds, 1),
        }
    ]


def _built(environ: dict[str, str]) -> Usage:
    return watch([COMMAND, "run", "iota", "--date", DAY], environ)


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:])), indent=1))
