"""Real VAAs with what an independent decoder reads in them (tests/data/wormhole)."""

from __future__ import annotations

import base64
import gzip
import json
from functools import cache

import pyarrow as pa

from support import places

DATA = places.DATA
NETWORKS = {"mainnet": 119, "testnet": 293, "devnet": 391}
SYNTHETIC = DATA / "synthetic" / "wormhole"


@cache
def expectations(network):
    rows = read_lines(DATA / "wormhole" / f"{network}.jsonl.gz")
    assert len(rows) == NETWORKS[network]
    return rows


def raw_vaas(network):
    return pa.array([base64.b64decode(row["vaa"]) for row in expectations(network)], pa.binary())


def reference_directory(network):
    return None if network == "mainnet" else DATA / "wormhole" / f"{network}_reference"


def synthetic_inputs():
    documents = [d for file in sorted((SYNTHETIC / "input").glob("*.jsonl.gz")) for d in read_lines(file)]
    assert len(documents) > 500
    return pa.array([base64.b64decode(d["vaa"]) for d in documents], pa.binary())


def synthetic_rows(table):
    rows = read_lines(SYNTHETIC / "expected" / f"{table}.jsonl.gz")
    assert rows
    return rows


def read_lines(file):
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
