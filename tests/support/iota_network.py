"""A network with a lake of its own, and the jobs of an IOTA day on it."""

from __future__ import annotations

from permalake.config import load_settings
from support.iota_days import plain
from support.jobs import job
from support.lakes import OpenLake


class Network:
    """A lake of its own, and the jobs on an archive."""

    def __init__(self, spark, folder, archive, monkeypatch):
        self.spark = spark
        config = folder / "permalake.toml"
        config.write_text(
            f'[lake]\nwarehouse = "{folder}/lake"\n[networks.shimmer]\nprotocol = "stardust"\n'
            f'bech32_hrp = "smr"\npath = "{archive}"\n'
        )
        monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
        monkeypatch.setattr("permalake.paths.HOME", folder / "home")
        self.lake = OpenLake(load_settings())

    def run(self, name, start="2022-09-28", end=None, run_id="test") -> None:
        argv = ["--network", "shimmer", "--start", start, "--end", end or start, "--run-id", run_id]
        job(name)(argv, self.spark)

    def attempt(self):
        return self.lake.resume("shimmer", "test")

    def rows(self, table):
        return [plain(row.asDict()) for row in self.attempt().days(self.spark, table).collect()]

    def quarantined(self):
        rows = self.lake.query(
            "select reason, origin, date from shimmer.quarantine order by 1, 2"
        ).to_pylist()
        return [(row["reason"], row["origin"]) for row in rows]
