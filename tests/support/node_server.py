"""A node on this machine: serves an archive_rest directory by REST v1 or core v2, and misbehaves on a seeded
schedule."""

from __future__ import annotations

import gzip
import json
import math
import struct
import time
from collections import Counter
from hashlib import blake2b
from pathlib import Path

from permalake.iota.sources.node_answers import parents_of
from support.faulty_server import FaultyServer

RAW_V2 = "application/vnd.iota.serializer-v1"


def lines(folder, name):
    for file in sorted(Path(folder).glob(f"{name}[-.]*jsonl*")):
        opened = gzip.open if file.suffix == ".gz" else open
        with opened(file, "rt") as text:
            yield from map(json.loads, text)


def plain(text):
    return text.removeprefix("0x")


class NodeServer(FaultyServer):
    """``faulty``: the chance that a request meets a fault; ``down``: all of them meet that one; ``after``:
    {"answers": n, "fault": one, "times": m}: m of them (all) do once n were answered. ``counts``: requests by
    path, ``answered`` those that were answered in full. Milestones up to ``pruned`` are gone with their
    blocks; those after ``confirmed`` are not there yet. ``lost`` paths are 404. ``raw``: False makes a
    Stardust node that answers in JSON whatever it is asked for, blocks apart. ``delay``: seconds before each
    answer. ``told_pruned``: what is said of ``pruned``, if not the truth. ``goes_on``: there is a
    milestone of a later day after ``confirmed``. ``arrived``: ids of blocks that are there although their
    milestone is not; no block that is there approves the tips among them."""

    faults = ("429", "503", "reset", "slow", "truncated", "garbage")
    slow = 1.0

    def __init__(self, folder, protocol, faulty=0.0, seed=0, raw=True):
        super().__init__(faulty, seed)
        self.protocol, self.raw = protocol, raw
        self.lost, self.after = set(), {}
        self.retry_after, self.told_pruned = "0", None
        self.counts, self.answered, self.times = Counter(), Counter(), []
        self._load(folder)
        self.pruned, self.confirmed = min(self.milestones) - 1, max(self.milestones)
        self.goes_on = False
        self.arrived = set()

    def _load(self, folder):
        self.milestones = {row["index"]: row for row in lines(folder, "milestones")}
        self.blocks, self.outputs = {}, {}
        for row in [*lines(folder, "blocks"), *lines(folder, "messages")]:
            told = row["metadata"]
            self.blocks[plain(told.get("blockId") or told["messageId"])] = row
        for name in ("created_outputs", "consumed_outputs"):
            self.outputs |= {plain(row["outputId"]): row for row in lines(folder, name)}
        nothing = {"createdOutputs": [], "consumedOutputs": []}
        self.changes = {index: {"index": index, **nothing} for index in self.milestones}
        self.changes |= {row["index"]: row for row in lines(folder, "utxo_changes")}

    # -- What no milestone references yet ------------------------------------------------------------

    def arrive(self, milestone) -> None:
        """Let the blocks arrive that milestones up to this one reference."""
        self.arrived |= {one for one, row in self.blocks.items() if row["milestone"] <= milestone}

    def add(self, raw):
        """Add a block that no milestone ever references; return its id."""
        block_id = blake2b(raw, digest_size=32).hexdigest()
        self.blocks[block_id] = {"raw": raw.hex(), "milestone": math.inf, "metadata": {}}
        self.arrived.add(block_id)
        return block_id

    def unreferenced(self):
        """Ids of the blocks that are there and that no confirmed milestone references."""
        return {one for one in self.arrived if not self._held(self.blocks[one]["milestone"])}

    def _tips(self):
        above = self.unreferenced()
        approved = {
            parent.hex()
            for one in above
            for parent in parents_of(bytes.fromhex(self.blocks[one]["raw"]), self.protocol)
        }
        return self._random.sample(sorted(above - approved), min(len(above - approved), 4))

    # -- Answers -------------------------------------------------------------------------------------

    def answer(self, path, accept):
        """(status, media type, body) as a node has it."""
        root = "/api/core/v2/" if self.protocol == "stardust" else "/api/v1/"
        if not path.startswith(root) or path in self.lost:
            return self._error(404)
        route = path.removeprefix(root).split("/")
        found = (self._v2 if self.protocol == "stardust" else self._v1)(route, accept == RAW_V2 and self.raw)
        if found is None:
            return self._error(404)
        if isinstance(found, bytes):
            return 200, RAW_V2 if self.protocol == "stardust" else "application/octet-stream", found
        return 200, "application/json", json.dumps(found).encode()

    def _error(self, status):
        return (
            status,
            "application/json",
            json.dumps({"error": {"code": str(status), "message": ""}}).encode(),
        )

    def _told_pruned(self):
        return self.pruned if self.told_pruned is None else self.told_pruned

    def _held(self, index):
        return self.pruned < index <= self.confirmed

    def _newest(self):
        return self._later() if self.goes_on else self.milestones[self.confirmed]

    def _later(self):
        """A milestone of a later day, of which nothing but its time is ever asked."""
        row = self.milestones[self.confirmed]
        index, time = row["index"] + 1, row["timestamp"] + 86_400
        raw = bytearray.fromhex(plain(row["rawPayload"]))
        raw[4:12] = struct.pack("<II", index, time)
        return row | {"index": index, "timestamp": time, "rawPayload": raw.hex()}

    def _milestone(self, text):
        index = int(text)
        if self.goes_on and index == self.confirmed + 1:
            return self._later()
        return self.milestones.get(index) if self._held(index) else None

    def _block(self, text):
        block_id = plain(text)
        row = self.blocks.get(block_id)
        if row is None or self._held(row["milestone"]):
            return row
        nothing = {"referencedByMilestoneIndex": None, "ledgerInclusionState": None, "isSolid": True}
        name = "blockId" if self.protocol == "stardust" else "messageId"
        return row | {"metadata": {name: text, **nothing}} if block_id in self.arrived else None

    def _v2(self, route, raw):
        if route == ["info"]:
            head = self._newest()
            newest = {name: head[name] for name in ("index", "timestamp", "milestoneId")}
            status = {"isHealthy": True, "latestMilestone": newest, "confirmedMilestone": newest}
            return {"name": "synthetic", "status": status | {"pruningIndex": self._told_pruned()}}
        if route == ["tips"]:
            return {"tips": [f"0x{one}" for one in self._tips()]}
        if route[:2] == ["milestones", "by-index"]:
            row = self._milestone(route[2])
            if row is None:
                return None
            if route[3:] == ["utxo-changes"]:
                return self.changes[row["index"]]
            return bytes.fromhex(plain(row["rawPayload"])) if raw else row["payload"]
        if route[0] == "blocks":
            row = self._block(route[1])
            if row is None:
                return None
            if route[2:] == ["metadata"]:
                return row["metadata"]
            return bytes.fromhex(row["raw"])
        if route[0] == "outputs":
            row = self.outputs.get(plain(route[1]))
            if row is None:
                return None
            return (
                bytes.fromhex(plain(row["rawOutput"])) if raw else {"metadata": {}, "output": row["output"]}
            )
        return None

    def _v1(self, route, _):
        if route == ["info"]:
            newest = self._newest()["index"]
            told = {"confirmedMilestoneIndex": newest, "latestMilestoneIndex": newest}
            return {"data": told | {"pruningIndex": self._told_pruned(), "isHealthy": True}}
        if route == ["tips"]:
            return {"data": {"tipMessageIds": self._tips()}}
        if route[0] == "milestones":
            row = self._milestone(route[1])
            if row is None:
                return None
            if route[2:] == ["utxo-changes"]:
                return {"data": self.changes[row["index"]]}
            return {"data": {name: row[name] for name in ("index", "messageId", "timestamp")}}
        if route[0] == "messages":
            row = self._block(route[1])
            if row is None:
                return None
            return bytes.fromhex(row["raw"]) if route[2] == "raw" else {"data": row["metadata"]}
        if route[0] == "outputs":
            row = self.outputs.get(route[1])
            return row and {"data": {"isSpent": True, "output": row["output"]}}
        return None

    # -- Misbehaviour --------------------------------------------------------------------------------

    def fault(self, path):
        with self._lock:
            self.counts[path] += 1
            self.times.append((time.monotonic(), path))
            is_due = self.after and sum(self.answered.values()) >= self.after["answers"]
            if is_due and self.after.get("times", 1) > 0:
                self.after["times"] = self.after.get("times", 1 << 30) - 1
                found = self.after["fault"]
            else:
                found = None
        found = found or super().fault(path)
        return f"{found} {self.retry_after}" if found and found.isdigit() else found

    def respond(self, handler, _, fault):
        status, media, body = self.answer(handler.path, handler.headers.get("accept"))
        if fault is None:
            with self._lock:
                self.answered[handler.path] += status == 200
        return status, body, media
