"""A whole Wormhole day through `permalake run`, from gzip documents to published tables: time, peak memory.

``python -m bench.wormhole_build [VAAS…]``: simulates a day of each size (synthetic, 13 signatures each, kept
in ``bench/.data`` for the next time), builds it in an empty lake, and recovers the same signatures in two
plain Python processes (`bench/wormhole_plain.py`) beside it. A ratio of 1 would mean that a build costs no
more than its signatures.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.machine import watch
from bench.simulated import COMMAND, simulated
from permalake.wormhole.codec.vaa import decode_vaas

HERE = Path(__file__).parent
SIZES = (300_000,)
DAY = "2024-01-01"
PROCESSES = 2


def documents(vaas: int) -> Path:
    """A simulated day of that many messages, made once."""
    return simulated(f"wormhole-{vaas}", "wormhole", "--messages", str(vaas), "--start", DAY)


def environment(lake: Path, source: Path) -> dict[str, str]:
    """Settings for a lake of its own over the documents; logs and landings lie beside it."""
    config = lake / "permalake.toml"
    config.write_text(
        f'[lake]\nwarehouse = "{lake}/warehouse"\n\n[wormhole]\nsource = "files"\npath = "{source}/vaas"\n'
        f'reference = "{source}/reference"\n\n[prices]\nprovider = "file"\n'
        f'path = "{source}/price_history.csv"\n'
    )
    return {**os.environ, "PERMALAKE_CONFIG": str(config)}


def signed(source: Path, file: Path) -> int:
    """Write the signatures of the day's distinct VAAs, each with its digest; return how many there are."""
    found: list[np.ndarray] = []
    seen: set[bytes] = set()
    for path in sorted((source / "vaas").rglob("*.jsonl.gz")):
        with gzip.open(path, "rb") as lines:
            raw = {_bytes(line) for line in lines} - seen
        seen |= raw
        vaas = decode_vaas(pa.array(sorted(raw), pa.binary()))
        found.append(np.concatenate([vaas.signature, vaas.digest[vaas.signature_row]], axis=1))
    rows = np.concatenate(found)
    np.save(file, rows)
    return len(rows)


def _bytes(line: bytes) -> bytes:
    try:
        return base64.b64decode(json.loads(line)["vaa"])
    except (ValueError, KeyError, TypeError):
        return b""  # the day holds broken documents too


def run(sizes: tuple[int, ...] = SIZES) -> list[dict]:
    """Seconds of the build, beside those of its signatures alone."""
    figures = []
    for vaas in sizes:
        source = documents(vaas)
        with tempfile.TemporaryDirectory(prefix="bench-wormhole-") as folder:
            built = watch([COMMAND, "run", "wormhole", "--date", DAY], environment(Path(folder), source))
        with tempfile.TemporaryDirectory(prefix="bench-plain-") as folder:
            file = Path(folder) / "signed.npy"
            signatures = signed(source, file)
            bare = watch([sys.executable, str(HERE / "wormhole_plain.py"), str(file), str(PROCESSES)])
        figures.append(
            {
                "name": f"Wormhole day of {vaas:,} messages, built and published",
                "unit": "s",
                "signatures": signatures,
                "ours": round(built.seconds, 1),
                "peer": round(bare.seconds, 1),
                "peer_name": f"bare coincurve recovery of its signatures, {PROCESSES} processes",
                "ratio": round(bare.seconds / built.seconds, 3),
                "cpu_ratio": round(bare.cpu_seconds / built.cpu_seconds, 3),
                "seconds": round(built.seconds, 1),
                "cpu_seconds": round(built.cpu_seconds, 1),
                "peer_cpu_seconds": round(bare.cpu_seconds, 1),
                "peak_mib": built.peak_bytes >> 20,
                "peer_peak_mib": bare.peak_bytes >> 20,
            }
        )
    return figures


if __name__ == "__main__":
    print(json.dumps(run(tuple(map(int, sys.argv[1:])) or SIZES), indent=1))
