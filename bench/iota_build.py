"""A whole IOTA day through `permalake run`, from gzip archive to published tables: time, rate, peak memory.

``python -m bench.iota_build [MESSAGES…]``: simulates a day of each size (synthetic, kept in
``bench/.data`` for the next time), builds it in an empty lake and reads the same input with one plain
Python process (`bench/iota_plain.py`) beside it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from bench.machine import watch
from bench.simulated import COMMAND, simulated

HERE = Path(__file__).parent
SIZES = (1_000_000, 5_000_000, 10_000_000)
CHRYSALIS_SIZE = 1_000_000
DAY = "2023-01-01"
_HRP = {"stardust": "smr", "chrysalis": "iota"}


def archive(messages: int, protocol: str = "stardust") -> Path:
    """A simulated day of that many messages, made once."""
    size = ("--messages", str(messages), "--start", DAY)
    return simulated(f"{protocol}-{messages}", "iota", "--protocol", protocol, *size)


def environment(lake: Path, source: Path, protocol: str = "stardust") -> dict[str, str]:
    """Settings for a lake of its own over an archive; logs and landings lie beside it."""
    config = lake / "permalake.toml"
    config.write_text(
        f'[lake]\nwarehouse = "{lake}/warehouse"\n\n[networks.bench]\nprotocol = "{protocol}"\n'
        f'bech32_hrp = "{_HRP[protocol]}"\nsource = "archive_rest"\npath = "{source}"\n'
    )
    return {**os.environ, "PERMALAKE_CONFIG": str(config)}


def run(sizes: tuple[int, ...] = SIZES) -> list[dict]:
    """Messages per second of the build, beside the plain reader's, and the build's peak memory."""
    figures, peaks = [], {}
    for messages in sizes:
        source = archive(messages)
        with tempfile.TemporaryDirectory(prefix="bench-iota-") as folder:
            built = watch([COMMAND, "run", "iota", "--date", DAY], environment(Path(folder), source))
        peaks[messages] = built.peak_bytes >> 20
        with tempfile.TemporaryDirectory(prefix="bench-plain-") as folder:
            plain = watch([sys.executable, str(HERE / "iota_plain.py"), str(source), folder])
        figures.append(
            {
                "name": f"IOTA day of {messages:,} messages, built and published",
                "unit": "messages/s",
                "ours": round(messages / built.seconds),
                "peer": round(messages / plain.seconds),
                "peer_name": "one plain process with our codec: ids, order, roots, base tables",
                "ratio": round(plain.seconds / built.seconds, 3),
                "per_core_ratio": round(plain.cpu_seconds / built.cpu_seconds, 3),
                "seconds": round(built.seconds, 1),
                "cpu_seconds": round(built.cpu_seconds, 1),
                "peak_mib": peaks[messages],
                "peer_peak_mib": plain.peak_bytes >> 20,
            }
        )
    return [*figures, *_growth(peaks), _chrysalis(CHRYSALIS_SIZE)]


def _chrysalis(messages: int) -> dict:
    source = archive(messages, "chrysalis")
    with tempfile.TemporaryDirectory(prefix="bench-iota-") as folder:
        environ = environment(Path(folder), source, "chrysalis")
        built = watch([COMMAND, "run", "iota", "--date", DAY], environ)
    return {
        "name": f"Chrysalis day of {messages:,} messages, built and published",
        "unit": "messages/s",
        "ours": round(messages / built.seconds),
        "seconds": round(built.seconds, 1),
        "cpu_seconds": round(built.cpu_seconds, 1),
        "peak_mib": built.peak_bytes >> 20,
    }


def _growth(peaks: dict[int, int]) -> list[dict]:
    """The most memory of the largest day beside that of the smallest, Python's workers included."""
    few, many = min(peaks), max(peaks)
    if few == many:
        return []
    return [
        {
            "name": f"IOTA day of {many:,} messages: peak memory",
            "unit": "MiB",
            "ours": peaks[many],
            "peer": peaks[few],
            "peer_name": f"that of a day of {few:,} messages",
            "ratio": round(peaks[few] / peaks[many], 3),
        }
    ]


if __name__ == "__main__":
    print(json.dumps(run(tuple(map(int, sys.argv[1:])) or SIZES), indent=1))
