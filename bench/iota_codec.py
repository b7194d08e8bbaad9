"""Blocks per CPU second of the IOTA decoder, beside the bare BLAKE2b-256 of the same bytes (its floor).

``python bench/iota_codec.py [rows]``: the bundled test vectors, tiled, decoded in one process.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from permalake.arrays.cursor import blake2b_rows, load
from permalake.iota.codec.blocks import decode_blocks

DATA = Path(__file__).parents[1] / "tests" / "data" / "iota"
INPUTS = (
    ("stardust", "shimmer/blocks"),
    ("stardust", "shimmer_cone_2418187"),
    ("stardust", "synthetic/stardust/blocks"),
    ("chrysalis", "synthetic/chrysalis/messages"),
)


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """CPU seconds of the fastest of a few runs, so that other processes disturb little."""
    best = float("inf")
    for _ in range(times):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def main(rows: int) -> None:
    for protocol, name in INPUTS:
        lines = (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()
        sample = [bytes.fromhex(json.loads(line)["raw"]) for line in lines]
        raw = pa.array((sample * (rows // len(sample) + 1))[:rows], pa.binary())
        data, start, length = load(raw)
        decode = seconds(lambda raw=raw, protocol=protocol: decode_blocks(raw, protocol))
        floor = seconds(lambda own=(data, start, length): blake2b_rows(*own))
        rate = f"{rows / decode:>10,.0f} blocks/s"
        print(f"{name:32} {rate} {decode / rows * 1e6:6.2f} us each, hash alone {floor / rows * 1e6:5.2f} us")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
