"""VAAs decoded a second, without verification, beside ``vaa.Unmarshal`` with digest of Wormhole's Go SDK.

``python -m bench wormhole_decode``: real VAAs of mainnet, tiled, both on one core. The Go peer
(``bench/vaa_peer``) is built in a temporary folder; that takes Go and its module proxy.
"""

from __future__ import annotations

import functools
import json
import operator
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

from bench.wormhole_vaas import mainnet_vaas, seconds
from permalake.wormhole.codec.vaa import Vaas, decode_vaas

PEER = Path(__file__).parent / "vaa_peer"
ROWS = 200_000


def checksum(vaas: Vaas) -> int:
    """First bytes of all digests, by exclusive or: the peer's must be the same."""
    return functools.reduce(operator.xor, vaas.digest[:, 0].tolist())


def peer(raw: pa.BinaryArray) -> dict:
    """What the Go peer measured on the same VAAs."""
    go = shutil.which("go")
    if go is None:
        sys.exit(
            "bench wormhole_decode: needs Go for its peer; install it (https://go.dev/dl) or name others"
        )
    with tempfile.TemporaryDirectory(prefix="bench-vaa-") as name:
        folder = Path(name)
        shutil.copytree(PEER, folder, dirs_exist_ok=True)
        for command in (["mod", "tidy"], ["build", "-o", "peer", "."]):
            subprocess.run([go, *command], cwd=folder, check=True, stdout=2)
        data = folder / "vaas"
        with data.open("wb") as file:
            for one in raw.to_pylist():
                file.write(len(one).to_bytes(4, "big") + one)
        done = subprocess.run([folder / "peer", data], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def run(rows: int = ROWS) -> dict:
    """VAAs a second: all fields and digests as columns in memory; and, besides, as Arrow columns."""
    raw = mainnet_vaas(rows)
    theirs = peer(raw)
    if theirs["checksum"] != checksum(decode_vaas(raw)):
        sys.exit("bench wormhole_decode: the peer's digests are not ours")
    ours = seconds(lambda: decode_vaas(raw))
    as_arrow = seconds(lambda: decode_vaas(raw).publication())
    return {
        "name": "VAAs decoded without verification, one core",
        "unit": "VAAs/s",
        "rows": rows,
        "ours": round(rows / ours),
        "peer": round(rows / theirs["seconds"]),
        "peer_name": "Go vaa.Unmarshal with digest",
        "ratio": round(theirs["seconds"] / ours, 3),
        "with_arrow_columns": round(rows / as_arrow),
    }


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS), indent=1))
