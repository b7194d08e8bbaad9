"""One Airflow for all of these tests, on synthetic days, with a receiver of its alerts."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from permalake.paths import DAGS, ROOT
from permalake_simulate.iota import tangle_generator
from permalake_simulate.iota.tangle_world import IotaWorld
from permalake_simulate.wormhole import vaa_generator
from permalake_simulate.wormhole.bridge_world import WormholeWorld
from support.live_airflow import LiveAirflow
from support.operator_days import DAYS, FIRST

CONFIG = """
[lake]
warehouse = "{lake}"
[networks.tangle]
protocol = "stardust"
bech32_hrp = "smr"
path = "tangle"
[networks.second]
protocol = "stardust"
bech32_hrp = "rms"
path = "second"
[wormhole]
path = "world/vaas"
reference = "world/reference"
[prices]
path = "world/price_history.csv"
max_missing = 0.5
[alerts]
webhook = "{webhook}"
deadline = "00:00"
"""

EVERY_DAG = {
    *("iota_daily", "iota_live", "wormhole_daily", "wormhole_live"),
    *("lake_maintenance", "on_published_day"),
}


@pytest.fixture(scope="module")
def alerts():
    """What a local webhook was sent: alerts, and publications."""
    received, published = [], []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            (published if body["event"] == "published" else received).append(body)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield SimpleNamespace(
        url=f"http://127.0.0.1:{server.server_port}/hook", received=received, published=published
    )
    server.shutdown()


@pytest.fixture(scope="module")
def place(tmp_path_factory, alerts):
    """A folder with small synthetic tangles and a configuration."""
    folder = tmp_path_factory.mktemp("operators")
    for name, hrp in (("tangle", "smr"), ("second", "rms")):
        world = IotaWorld(
            "stardust", messages=60, days=1, start=FIRST, seed=5, bech32_hrp=hrp, milestones_per_day=6
        )
        totals = tangle_generator.simulate(None, world, folder / name, say=lambda line: None)
        counts = {str(day): total.messages for day, total in totals.items()}
        (folder / f"{name}.json").write_text(json.dumps(counts))
    vaa_generator.simulate(
        None, WormholeWorld(60 * (DAYS + 1), DAYS + 1, FIRST, 5, guardians=4), folder / "world"
    )
    for name in ("lake", "undisturbed"):
        text = CONFIG.format(lake=name, webhook=alerts.url)
        (folder / f"{name}.toml").write_text(text)
    return folder


@pytest.fixture(scope="module")
def airflow(place):
    """Up, with every DAG paused."""
    bundle = "airflow.dag_processing.bundles.local.LocalDagBundle"
    bundles = [
        {"name": name, "classpath": bundle, "kwargs": {"path": str(path), "refresh_interval": 30}}
        for name, path in (("permalake", DAGS), ("examples", ROOT / "docs" / "examples"))
    ]
    lineage = {"type": "file", "log_file_path": str(place / "lineage.jsonl"), "append": True}
    server = LiveAirflow(
        place,
        place / "lake.toml",
        AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST=json.dumps(bundles),
        AIRFLOW__OPENLINEAGE__TRANSPORT=json.dumps(lineage),
        AIRFLOW__OPENLINEAGE__NAMESPACE="permalake",
    )
    try:
        server.up()
        server.until(lambda: known(server) >= EVERY_DAG, "every DAG", 300)
        yield server
    finally:
        server.down()


def known(server: LiveAirflow) -> set[str]:
    return {dag["dag_id"] for dag in server.call("GET", "/dags")["dags"]}
