"""Small synthetic worlds, and the jobs that build them in a lake of their own."""

import csv
import hashlib
from collections import Counter
from datetime import date, timedelta

from permalake.config import CONFIG_VARIABLE, load_settings
from permalake_simulate.iota import tangle_generator
from permalake_simulate.iota.tangle_world import IotaWorld
from permalake_simulate.wormhole import vaa_generator
from permalake_simulate.wormhole.bridge_world import WormholeWorld
from support.jobs import job
from support.lakes import OpenLake

START = date(2022, 9, 28)
HRP = {"stardust": "smr", "chrysalis": "iota"}


def tangle(protocol, seed=3, **changes):
    """A world of two days with milestones and an empty one between, full of transactions."""
    asked = {"messages": 2_000, "days": 3, "empty_days": (1,), "milestones_per_day": 30} | changes
    return IotaWorld(
        protocol,
        start=START,
        seed=seed,
        bech32_hrp=HRP[protocol],
        transaction_share=0.4,
        conflict_share=0.15,
        receipt_every=10,
        **asked,
    )


def vaas(seed=3, **changes):
    """Two days of VAAs, many of them bad; five guardians, so that signing takes no time."""
    asked = {"messages": 1_200, "days": 2, "guardians": 5, "bad_share": 0.1, "copy_share": 0.05} | changes
    return WormholeWorld(start=date(2024, 1, 1), seed=seed, **asked)


def digests(folder):
    """Every file below ``folder`` with the hash of its bytes."""
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


class Built:
    """A world that was written, and built by the real jobs into a staging of a lake."""

    def __init__(self, spark, folder, monkeypatch, world, snippet, network, jobs):
        self.spark, self.world, self.network, self.out = spark, world, network, folder / "world"
        config = self.out / "permalake.toml"
        config.write_text(f'[lake]\nwarehouse = "{folder}/lake"\n' + snippet)
        monkeypatch.setenv(CONFIG_VARIABLE, str(config))
        monkeypatch.setattr("permalake.paths.HOME", folder / "home")
        self.lake = OpenLake(load_settings())
        last = world.start + timedelta(world.days - 1)
        days = ["--start", world.start.isoformat(), "--end", last.isoformat()]
        for name in jobs:
            job(name)(["--network", network, *days, "--run-id", "made"], spark)
        self.attempt = self.lake.resume(network, "made")

    def rows(self, table):
        return [row.asDict() for row in self.attempt.days(self.spark, table).collect()]

    def quarantine(self):
        rows = self.lake.query(f'select reason, date from "{self.network}".quarantine').to_pylist()
        return Counter((row["date"], row["reason"]) for row in rows)


def build_tangle(spark, folder, monkeypatch, world):
    totals = tangle_generator.simulate(None, world, folder / "world")
    snippet = tangle_generator.network_snippet(world)
    jobs = ("iota_ingest", "iota_analytics")
    return Built(spark, folder, monkeypatch, world, snippet, world.network, jobs), totals


def build_vaas(spark, folder, monkeypatch, world):
    totals = vaa_generator.simulate(None, world, folder / "world")
    snippet = vaa_generator.wormhole_snippet(world)
    jobs = ("wormhole_ingest", "wormhole_enrich")
    return Built(spark, folder, monkeypatch, world, snippet, "wormhole", jobs), totals


def figures(folder):
    """What the generator says of each milestone: (messages, included transactions, tokens) by index."""
    rows = {}
    for file in sorted(folder.rglob("synthetic_ms_analytics.csv")):
        with file.open(newline="") as lines:
            for row in csv.DictReader(lines):
                index, *values = (int(value) for value in row.values())
                rows[index] = tuple(values)
    return rows
