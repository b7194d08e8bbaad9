"""A walk over a node that waits for nothing; run as a program, it walks until it is killed.

``node_walks.py URL FOLDER FIRST LAST`` lands the milestones FIRST to LAST of a Stardust node.
"""

from __future__ import annotations

import sys
from pathlib import Path

from permalake.iota.sources.node_api import NodeAddress
from permalake.iota.sources.node_cache import STRETCH, NodeCache
from permalake.iota.sources.node_fetch import Stretch, land
from permalake.net.http import RetryPolicy

HASTY = RetryPolicy(read=20.0, attempts=12, back_off=0.02, failures=1000)


def wanted(first, last):
    stretches = range(first // STRETCH, last // STRETCH + 1)
    return [Stretch(s, max(first, s * STRETCH), min(last, s * STRETCH + STRETCH - 1)) for s in stretches]


if __name__ == "__main__":
    url, folder, begin, end = sys.argv[1:]
    node = NodeAddress("the node", url, "stardust", 5_000, 2, 5.0, HASTY)
    list(land(node, NodeCache(Path(folder)), wanted(int(begin), int(end)), int(begin) + 40))
