"""A synthetic network that is followed live: a node on this machine, a lake of its own, and the job."""

from __future__ import annotations

import json

from permalake.config import load_settings
from support.iota_days import SYNTHETIC, coordinator_keys, plain, tangle
from support.jobs import job
from support.lakes import OpenLake, pass_audit
from support.node_server import NodeServer


class Followed:
    """A network that is followed live, in a lake of its own.

    ``name``: the network; ``ingest``: the job that builds its days; ``items``, ``key``: the table with a row
    per item and its key.
    """

    name: str
    ingest: str
    items: str
    key: str

    def __init__(self, spark, folder, monkeypatch, text):
        self.spark = spark
        self.config = folder / "permalake.toml"
        self.config.write_text(text)
        monkeypatch.setenv("PERMALAKE_CONFIG", str(self.config))
        monkeypatch.setattr("permalake.paths.HOME", folder / "home")
        self.lake = OpenLake(load_settings())

    def follow(self, *arguments) -> None:
        job("live")(["--network", self.name, "--run-id", "test", *(arguments or ("--once",))], self.spark)

    def publish(self, day, last=None) -> None:
        """Build a day, or those up to a last one, from the source and publish them."""
        run = f"day {day}"
        argv = ["--network", self.name, "--start", day, "--end", last or day, "--run-id", run]
        job(self.ingest)(argv, self.spark)
        self.lake.builds.publish(pass_audit(self.lake.resume(self.name, run)))

    def live(self, table):
        """Rows of a table of the head."""
        return self.rows(f"{self.name}_live.{table}")

    def rows(self, table):
        return [plain(row) for row in self.lake.query(f"SELECT * FROM {table}").to_pylist()]

    def seen(self):
        """Keys of the items that readers see, published or not; none of them twice."""
        found = self.lake.query(f"SELECT {self.key} FROM {self.name}.{self.items}_with_live")
        keys = found[self.key].to_pylist()
        assert len(keys) == len(set(keys))
        return set(keys)


class LiveNetwork(Followed):
    """``node`` is a :class:`NodeServer` with the synthetic tangle of ``protocol``, all of it confirmed."""

    name, ingest, items, key = "testnet", "iota_ingest", "messages", "message_id"

    def __init__(self, spark, protocol, folder, monkeypatch, *, faulty=0.0, **live):
        self.protocol = protocol
        self.node = NodeServer(SYNTHETIC / protocol / "archive", protocol, faulty=faulty, seed=7)
        super().__init__(spark, folder, monkeypatch, configuration(folder, self.node, **live))
        self.first, self.last = min(self.node.milestones), max(self.node.milestones)

    def unreferenced(self):
        """Ids of the messages that the head has and no milestone references, by one look with all others:
        none is there twice."""
        rows = self.lake.query(
            f"SELECT message_id, false AS above FROM {self.name}.messages_with_live UNION ALL "
            f"SELECT message_id, true FROM {self.name}_live.unreferenced_messages"
        ).to_pylist()
        ids = [row["message_id"] for row in rows]
        assert len(ids) == len(set(ids))
        return {row["message_id"] for row in rows if row["above"]}

    def publish(self, day, last=None) -> None:
        self.node.goes_on = True
        super().publish(day, last)
        self.node.goes_on = False


def configuration(folder, node, **live) -> str:
    told = tangle(node.protocol)
    keys = [
        ", ".join(
            f"{name} = {json.dumps(value)}" for name, value in key.model_dump(exclude_none=True).items()
        )
        for key in coordinator_keys(node.protocol)
    ]
    settings = {"days": 31, "poll_seconds": 0.3, "batch_milestones": 8, **live}
    lines = "\n".join(f"{name} = {value}" for name, value in settings.items())
    return f"""
[lake]
warehouse = "{folder}/lake"
[live]
{lines}
[networks.{LiveNetwork.name}]
protocol = "{node.protocol}"
bech32_hrp = "{told["bech32_hrp"]}"
source = "node"
url = "{node.url}"
timeout = 1.0
rate_per_second = 5000.0
coordinator_public_keys = [{", ".join(f"{{{key}}}" for key in keys)}]
coordinator_threshold = 2
"""
