"""Wormhole followed live: the synthetic world's documents, which come in one by one, and the jobs."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import json
import random
from collections import Counter
from contextlib import suppress

import pyarrow as pa

from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.reference import load_reference
from support.expected_rows import differences, read
from support.jobs import job
from support.lakes import pass_audit
from support.live_network import Followed
from support.wormhole_world import PRICES, WORLD, configuration, digested

DAYS = ("2024-03-10", "2024-03-11", "2024-03-12")

_OBSERVATION = (b'{"emitterChain"', b'["')
"""How a refused observation begins, or one that has waited: the world's own rows know nothing of them."""


class LiveWormhole(Followed):
    """``documents`` are the world's lines, by the file that they belong to; none has come yet."""

    name, ingest, items, key = "wormhole", "wormhole_ingest", "message_publication", "row_key"

    def __init__(self, spark, folder, monkeypatch, **live):
        self.input = folder / "input"
        self.input.mkdir()
        self.observations = folder / "observations"
        self.observations.mkdir()
        settings = {"days": 3, "poll_seconds": 0.05, "attempts": 1, **live}
        section = "\n".join(["[live]", *(f"{name} = {value}" for name, value in settings.items())])
        text = configuration(folder, PRICES, section).replace(
            f'path = "{WORLD}/input"', f'path = "{self.input}"\nobservations = "{self.observations}"'
        )
        super().__init__(spark, folder, monkeypatch, text)

    def publish(self, day, last=None, *, valued=False) -> None:
        """Build a day, or those up to a last one, and publish them; ``valued``: with prices and figures."""
        if not valued:
            super().publish(day, last)
            return
        run = f"day {day}"
        argv = ["--network", self.name, "--start", day, "--end", last or day, "--run-id", run]
        for name in (self.ingest, "wormhole_enrich"):
            job(name)(argv, self.spark)
        self.lake.builds.publish(pass_audit(self.lake.resume(self.name, run)))

    def append(self, name, lines) -> None:
        """Add lines to a file of the source."""
        with (self.input / name).open("ab") as file:
            file.writelines(line + b"\n" for line in lines)

    def observe(self, documents) -> None:
        """Add observations to the file of the source."""
        with (self.observations / "observed.jsonl").open("a") as file:
            file.writelines(f"{json.dumps(one)}\n" for one in documents)

    def differences(self, table, namespace="wormhole_live", days=DAYS):
        """How the rows of a table differ from those of the world's days."""
        rows = self.lake.query(f"SELECT * FROM {namespace}.{table}").to_pylist()
        rows = [digested(row) for row in rows if not (row.get("raw") or b"").startswith(_OBSERVATION)]
        wanted = [row for row in read(WORLD / "expected" / f"{table}.jsonl.gz") if row["date"] in days]
        if table == "quarantine":  # Which of several documents names a VAA hangs on their order.
            wanted = [{**row, "_dc": [*row.get("_dc", ()), "source", "origin"]} for row in wanted]
            if namespace.endswith("_live"):  # It forgets a surplus copy, which days refuse with the best one.
                copies = Counter((row.get("row_key"), row.get("digest")) for row in wanted)
                for row in wanted:
                    is_copy = copies[row.get("row_key"), row.get("digest")] > 1
                    row["_opt"] = row["reason"] == "conflicting_digest" and is_copy
            return differences(rows, wanted, ("raw_sha256",))
        return differences(rows, wanted, WORMHOLE_TABLES[table].key)


def documents():
    """The world's lines with the name of their file, in the order of days."""
    return [
        (file.name.removesuffix(".gz"), line)
        for file in sorted((WORLD / "input").glob("vaas-*.jsonl.gz"))
        for line in gzip.decompress(file.read_bytes()).splitlines()
    ]


def observations(seed=0):
    """Observations of the world's guardians, as Wormholescan serves them, in an order of their own.

    Each signature of a VAA was seen a moment after its time, some twice; some are nobody's.
    """
    chance = random.Random(seed)
    raws = []
    for _, line in documents():
        with suppress(ValueError, KeyError, TypeError):
            raws.append(base64.b64decode(json.loads(line)["vaa"], validate=True))
    vaas = decode_vaas(pa.array(raws, pa.binary()))
    sets = load_reference(WORLD / "reference").guardian_sets
    keys = vaas.row_key().to_pylist()
    found = []
    for row, (start, end) in enumerate(zip(vaas.signature_offset, vaas.signature_offset[1:], strict=False)):
        guardians = sets.get(int(vaas.guardian_set_index[row]), ())
        if not vaas.has_body[row] or int(vaas.timestamp[row]) < 1_600_000_000:
            continue
        chain, emitter, sequence = keys[row].split(":")
        moment = dt.datetime.fromtimestamp(int(vaas.timestamp[row]), dt.UTC)
        for at in range(start, end):
            index = int(vaas.guardian_index[at])
            if index >= len(guardians):
                continue
            signature = bytearray(vaas.signature[at].tobytes())
            signature[5] ^= chance.random() < 0.01
            for _ in range(1 + (chance.random() < 0.05)):
                seen = moment + dt.timedelta(milliseconds=chance.randrange(30_000))
                found.append(
                    {
                        "emitterChain": int(chain),
                        "emitterAddr": emitter,
                        "sequence": int(sequence),
                        "guardianAddr": f"0x{guardians[index].hex()}",
                        "signature": base64.b64encode(signature).decode(),
                        "indexedAt": seen.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                    }
                )
    chance.shuffle(found)
    return found
