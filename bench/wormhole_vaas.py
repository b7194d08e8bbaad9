"""What the Wormhole benchmarks share: real VAAs of mainnet, tiled, and their guardian sets."""

from __future__ import annotations

import base64
import gzip
import json
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

VAAS = Path(__file__).parents[1] / "tests" / "data" / "wormhole" / "mainnet.jsonl.gz"


def mainnet_vaas(rows: int) -> pa.BinaryArray:
    """So many VAAs: the 119 bundled ones, again and again."""
    with gzip.open(VAAS, "rt", encoding="utf-8") as lines:
        sample = [base64.b64decode(json.loads(line)["vaa"]) for line in lines]
    return pa.array((sample * (rows // len(sample) + 1))[:rows], pa.binary())


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """CPU seconds of the fastest of a few runs, so that other processes disturb little."""
    best = float("inf")
    for _ in range(times):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best
