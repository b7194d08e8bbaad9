"""Lakes of synthetic tangles for the benchmarks of the stores, built by the own jobs and kept."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from permalake.config import Settings, load_settings
from permalake.domains import domain_of
from permalake.paths import SPARK_JOBS
from permalake.pipeline.workspace import Workspace
from permalake.spark import jars
from permalake.spark.session import session

HERE = Path(__file__).parent
DATA = HERE / ".data"
COMMAND = str(Path(sys.executable).with_name("permalake"))
NETWORK = "bench"
FIRST = date(2021, 5, 1)
WORMHOLE = "wormhole"
JOBS = (("iota_ingest", "iota_analytics"), ("wormhole_ingest", "wormhole_enrich"))
_PREFIX = {"chrysalis": "iota", "stardust": "smr"}


def spark(*more: str) -> SparkSession:
    """A session as a job of the DAG has it, with the jars of the lake and the stores, and those of ``more``
    coordinates, which the product does not use."""
    coordinates = (*jars.COORDINATES, *jars.STORE_COORDINATES)
    jars.resolve(coordinates)
    class_path = [jars.class_path(coordinates), *(str(_peer_jar(coordinate)) for coordinate in more)]
    return session(
        "bench",
        **{
            "spark.master": os.environ.get("PERMALAKE_SPARK_MASTER", "local[*]"),
            "spark.driver.memory": "4g",
            "spark.ui.enabled": "false",
            "spark.jars": ",".join(class_path),
            "spark.log.level": "ERROR",
        },
    )


def _peer_jar(coordinate: str) -> Path:
    """A jar of this coordinate with the digest that ``bench/jars.sha256`` states, fetched once."""
    kept = DATA / "jars" / jars.jar_name(coordinate)
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
            jars.retrieve(coordinate, Path(scratch), "-notransitive")
            (Path(scratch) / kept.name).rename(kept)
    jars.verify(kept, HERE / "jars.sha256")
    return kept


def lake(spark: SparkSession, protocol: str, messages: int, days: int = 1) -> Settings:
    """Settings of a lake with the published days of a synthetic tangle (``chrysalis``, ``stardust``) or of
    synthetic VAAs (``wormhole``); made when missing."""
    folder = DATA / f"lake-{protocol}-{messages}-{days}"
    config = folder / "permalake.toml"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _simulate(folder / "archive", protocol, messages, days)
        config.write_text(_configuration(folder, protocol))
        _build(spark, config, protocol, days)
        (folder / "complete").touch()
    return load_settings(config)


def _simulate(folder: Path, protocol: str, messages: int, days: int) -> None:
    kind = ["wormhole", "--guardians", "7"] if protocol == WORMHOLE else ["iota", "--protocol", protocol]
    command = [COMMAND, "simulate", *kind, "--messages", str(messages), "--days", str(days)]
    subprocess.run([*command, "--start", str(FIRST), "--out", str(folder)], stdout=2, check=True)


def _configuration(folder: Path, protocol: str) -> str:
    lines = ["[lake]", 'warehouse = "warehouse"']
    if protocol == WORMHOLE:
        lines += ["[wormhole]", 'path = "archive/vaas"', 'reference = "archive/reference"']
        lines += ["[prices]", 'provider = "file"', 'path = "archive/price_history.csv"']
    else:
        lines += [f"[networks.{NETWORK}]", f'protocol = "{protocol}"', f'bech32_hrp = "{_PREFIX[protocol]}"']
        lines += [f'path = "{folder}/archive"']
    return "\n".join([*lines, ""])


def _build(spark: SparkSession, config: Path, protocol: str, days: int) -> None:
    """The days through the jobs of the DAG; the audit is left out, synthetic days are valid."""
    os.environ["PERMALAKE_CONFIG"] = str(config)
    last = FIRST + timedelta(days=days - 1)
    network = WORMHOLE if protocol == WORMHOLE else NETWORK
    for job in JOBS[protocol == WORMHOLE]:
        _job(job)(
            ["--network", network, "--start", str(FIRST), "--end", str(last), "--run-id", "bench"], spark
        )
    publish(load_settings(config), network)


def publish(settings: Settings, network: str) -> None:
    """What the run ``bench`` has staged becomes visible."""
    builds = Workspace.open(settings, domain_of(network), network).builds
    with builds.resume(network, "bench") as attempt:
        pinned = attempt.pin()
        for day in pinned.days_with_rows():
            pinned.verdict(day, True)
        builds.publish(pinned)


def _job(name: str) -> Callable[[list[str], SparkSession], None]:
    spec = importlib.util.spec_from_file_location(name, SPARK_JOBS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    main: Callable[[list[str], SparkSession], None] = module.main
    return main


if __name__ == "__main__":
    made = lake(spark(), sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.write(f"{made.lake.warehouse}\n")
