"""The peer of `iota_build`: one plain Python process that reads an archive and counts what it holds.

``python bench/iota_plain.py DIR``: unpacks, parses JSON and recomputes the id of every message, line by line.
It verifies no signature, order or root, decodes nothing and writes nothing: a floor for any single process.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections import Counter
from pathlib import Path


def main(folder: Path) -> None:
    states: Counter[str] = Counter()
    wrong = 0
    for file in sorted([*folder.rglob("blocks*.jsonl.gz"), *folder.rglob("messages*.jsonl.gz")]):
        with gzip.open(file, "rb") as lines:
            for line in lines:
                block = json.loads(line)
                metadata = block["metadata"]
                claimed = metadata.get("blockId") or metadata["messageId"]
                own = hashlib.blake2b(bytes.fromhex(block["raw"]), digest_size=32).hexdigest()
                wrong += own != claimed.removeprefix("0x")
                states[metadata["ledgerInclusionState"]] += 1
    print(f"{sum(states.values())} messages, {dict(states)}, {wrong} wrong ids", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
