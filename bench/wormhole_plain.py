"""The peer of `wormhole_build`: nothing but the recovery of a day's signatures, in plain Python processes.

``python bench/wormhole_plain.py FILE PROCESSES``: the file holds a numpy array u8[s, 97], a signature (r, s,
recovery id) and the digest that it signs in each row. Public keys are recovered by coincurve and dropped.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from multiprocessing import get_context

import numpy as np
from coincurve import PublicKey

SIGNATURE = 65
_ROWS = 10_000


def recover(file: str, first: int, last: int) -> int:
    """Recover the keys of some rows; return how many there are."""
    rows = np.load(file, mmap_mode="r")
    one, found = PublicKey.from_signature_and_message, 0
    for start in range(first, last, _ROWS):
        for row in map(bytes, rows[start : min(start + _ROWS, last)]):
            try:
                one(row[:SIGNATURE], row[SIGNATURE:], hasher=None)
            except Exception:  # noqa: BLE001 - coincurve raises plain exceptions for bad signatures
                continue
            found += 1
    return found


def main(file: str, processes: int) -> None:
    """Share the rows out and say how many keys came out."""
    bounds = np.linspace(0, len(np.load(file, mmap_mode="r")), processes + 1).astype(int).tolist()
    with get_context("spawn").Pool(processes) as pool:
        work = [(file, *some) for some in pairwise(bounds)]
        found = pool.starmap(recover, work, chunksize=1)
        pool.close()
        pool.join()
    print(f"{sum(found)} of {bounds[-1]} signatures recovered", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
