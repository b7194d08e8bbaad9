"""Wormhole followed live: the synthetic world's documents, which come in one by one, and the jobs."""

from __future__ import annotations

import gzip
from collections import Counter

from permalake.wormhole.contracts import WORMHOLE_TABLES
from support.expected_rows import differences, read
from support.jobs import job
from support.lakes import pass_audit
from support.live_network import Followed
from support.wormhole_world import PRICES, WORLD, configuration, digested

DAYS = ("2024-03-10", "2024-03-11", "2024-03-12")


class LiveWormhole(Followed):
    """``documents`` are the world's lines, by the file that they belong to; none has come yet."""

    name, ingest, items, key = "wormhole", "wormhole_ingest", "message_publication", "row_key"

    def __init__(self, spark, folder, monkeypatch, **live):
        self.input = folder / "input"
        self.input.mkdir()
        settings = {"days": 3, "poll_seconds": 0.05, "attempts": 1, **live}
        section = "\n".join(["[live]", *(f"{name} = {value}" for name, value in settings.items())])
        text = configuration(folder, PRICES, section).replace(f"{WORLD}/input", str(self.input))
        super().__init__(spark, folder, monkeypatch, text)

    def publish(self, day, *, valued=False) -> None:
        """Build a day from the source and publish it; ``valued``: with prices and figures."""
        if not valued:
            super().publish(day)
            return
        run = f"day {day}"
        for name in (self.ingest, "wormhole_enrich"):
            job(name)(["--network", self.name, "--start", day, "--end", day, "--run-id", run], self.spark)
        self.lake.builds.publish(pass_audit(self.lake.resume(self.name, run)))

    def append(self, name, lines) -> None:
        """Add lines to a file of the source."""
        with (self.input / name).open("ab") as file:
            file.writelines(line + b"\n" for line in lines)

    def differences(self, table, namespace="wormhole_live", days=DAYS):
        """How the rows of a table differ from those of the world's days."""
        rows = map(digested, self.lake.query(f"SELECT * FROM {namespace}.{table}").to_pylist())
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
