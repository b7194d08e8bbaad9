"""The digests of a day's tables, as a share of the processor time that building the day takes.

``python -m bench.digests [MESSAGES]``: builds a simulated day (synthetic, kept in ``bench/.data``) in an
empty lake without a key, then makes the manifest of the day, with the digest of every table.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

from bench.iota_build import DAY, archive, environment
from bench.machine import watch
from bench.simulated import COMMAND

_LIMIT = 0.05
"""The share that the digests may take."""


def run(messages: int = 1_000_000) -> list[dict]:
    """Processor seconds of the digests beside those of the build."""
    source = archive(messages)
    with tempfile.TemporaryDirectory(prefix="bench-digests-") as folder:
        environ = environment(Path(folder), source)
        built = watch([COMMAND, "run", "iota", "--date", DAY], environ)
        command = [sys.executable, "-m", "bench.digests", "--hash"]
        hashed = json.loads(subprocess.run(command, env=environ, capture_output=True, check=True).stdout)
    share = hashed["cpu_seconds"] / built.cpu_seconds
    return [
        {
            "name": f"digests of an IOTA day of {messages:,} messages",
            "unit": "CPU s",
            "ours": round(hashed["cpu_seconds"], 2),
            "peer": round(built.cpu_seconds * _LIMIT, 2),
            "peer_name": f"{_LIMIT:.0%} of the build's",
            "ratio": round(_LIMIT / share, 3),
            "share": round(share, 4),
            "tables": hashed["tables"],
            "rows": hashed["rows"],
        }
    ]


def hash_day() -> dict:
    """Make the manifest of the day in this process; return what it took."""
    from permalake.config import load_settings
    from permalake.domains import domain_of
    from permalake.lake.identity import open_database
    from permalake.transparency.manifest import make_manifest, published_state

    settings = load_settings()
    state = published_state(open_database(settings), "bench", 0)
    began = time.process_time()
    made = make_manifest(settings, domain_of("bench"), state, date.fromisoformat(DAY), None)
    seconds = time.process_time() - began
    tables = made.document["tables"]
    return {
        "cpu_seconds": seconds,
        "tables": len(tables),
        "rows": sum(table["rows"] for table in tables.values()),
    }


if __name__ == "__main__":
    if sys.argv[1:] == ["--hash"]:
        print(json.dumps(hash_day()))
    else:
        print(json.dumps(run(*map(int, sys.argv[1:])), indent=1))
