"""What the REST API adds to a day of a million messages: bytes in the lake and on the server, and time.

``python -m bench.api_cost [CONFIG SECONDS]``: builds the simulated day of :mod:`bench.iota_build` in an empty
lake; ``CONFIG`` names a lake with such a day instead, which took ``SECONDS`` of processor time to build. The
bytes are those of the tables that only the API reads and of the server's index of ids. The time of a table is
that of reading its rows, sorting them and writing them again; the index is built as the server builds it.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from bench.iota_build import DAY, archive, environment
from bench.machine import say, watch
from bench.simulated import COMMAND
from permalake.config import Settings, load_settings
from permalake.domains import domain_of
from permalake.iota.contracts import IOTA_TABLES
from permalake.lake.serving import LakeReader

NETWORK, MESSAGES = "bench", 1_000_000
API_TABLES = ("ledger_updates", "conflicting_transactions", "receipts", "unlock_conditions")
MOST = 0.15
"""The share of bytes beyond which the cost would need a reason."""


def run(config: Path | None = None, built_seconds: float = 0.0) -> list[dict]:
    """Bytes and processor seconds that the API's tables and index add, beside all else of the day."""
    if config is not None:
        return _figures(load_settings(config), built_seconds)
    with tempfile.TemporaryDirectory(prefix="bench-api-") as folder:
        variables = environment(Path(folder), archive(MESSAGES))
        built = watch([COMMAND, "run", "iota", "--date", DAY], variables)
        return _figures(load_settings(Path(folder) / "permalake.toml"), built.cpu_seconds)


def _figures(settings: Settings, built_seconds: float) -> list[dict]:
    bytes_of = {name: sum(file.stat().st_size for file in _files(settings, name)) for name in IOTA_TABLES}
    tables = sum(bytes_of[name] for name in API_TABLES)
    rest = sum(bytes_of.values()) - tables
    with tempfile.TemporaryDirectory(prefix="bench-index-") as folder:
        began = time.process_time()
        LakeReader(settings, domain_of, cache=Path(folder)).close()
        index_seconds = time.process_time() - began
        index = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        began = time.process_time()
        for name in API_TABLES:
            _rewrite(settings, name, Path(folder) / f"{name}.parquet")
        table_seconds = time.process_time() - began
    share = (tables + index) / rest
    seconds = index_seconds + table_seconds
    say(f"tables {tables:,} bytes, index {index:,} bytes, all else {rest:,} bytes")
    return [
        {
            "name": f"a day of {MESSAGES:,} messages: bytes that the API adds",
            "unit": "% of all else (less is better)",
            "ours": round(100 * share, 1),
            "peer": 100 * MOST,
            "peer_name": "the most that needs no reason",
            "ratio": round(MOST / share, 3),
            "table_bytes": tables,
            "index_bytes": index,
            "other_bytes": rest,
        },
        {
            "name": f"a day of {MESSAGES:,} messages: processor time that the API adds",
            "unit": "% of the build (less is better)",
            "ours": round(100 * seconds / built_seconds, 1),
            "peer": 100 * MOST,
            "peer_name": "the most that needs no reason",
            "ratio": round(MOST * built_seconds / seconds, 3),
            "table_seconds": round(table_seconds, 1),
            "index_seconds": round(index_seconds, 1),
            "build_seconds": round(built_seconds, 1),
        },
    ]


def _files(settings: Settings, table: str) -> list[Path]:
    return sorted(Path(settings.lake.warehouse, NETWORK, table, "data").rglob("*.parquet"))


def _rewrite(settings: Settings, table: str, target: Path) -> None:
    """Read, sort and write a table's rows."""
    files = _files(settings, table)
    if not files:
        return
    order = [(name, "ascending") for name in IOTA_TABLES[table].sort]
    rows = pq.ParquetDataset(files, partitioning=None).read().sort_by(order)
    pq.write_table(rows, target, compression="zstd")


if __name__ == "__main__":
    given = sys.argv[1:]
    print(json.dumps(run(Path(given[0]), float(given[1])) if given else run(), indent=1))
