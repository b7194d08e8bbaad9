"""Maintenance of the whole lake, network by network; knows no Airflow."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from permalake.audit import docs
from permalake.config import CONFIG_VARIABLE, Settings, config_file
from permalake.contracts.namespaces import Namespaces
from permalake.errors import ConfigError, PermalakeError, mishap_of
from permalake.lake.identity import open_database
from permalake.lake.maintenance import (
    MaintenanceResult,
    clear_landings,
    crowded_tables,
    limits,
    networks_of,
    tidy,
    told_of,
    would_tidy,
)
from permalake.lake.state import clock, moment
from permalake.lake.step_ledger import StepLedger
from permalake.spark.submit import (
    bin_folder,
    driver_memory,
    job_file,
    spark_conf,
    spark_environment,
    spark_master,
)

JOB = "lake_maintenance"
PAGES = "audit pages"


def chosen(settings: Settings, network: str | None = None) -> list[str]:
    """One network or all that the lake holds; :class:`ConfigError` names them when it does not hold it."""
    known = networks_of(open_database(settings))
    if network is None:
        return known
    if network not in known:
        raise ConfigError(f"network {network}: not in the lake (there: {', '.join(known) or 'none'})")
    return [network]


def crowded(settings: Settings, namespaces: Namespaces, networks: Sequence[str]) -> list[str]:
    """Those networks that have something to compact."""
    database = open_database(settings)
    target = settings.lake.target_bytes
    return [name for name in networks if crowded_tables(database, name, namespaces(name).tables, target)]


def housekeeping(
    settings: Settings,
    namespaces: Namespaces,
    networks: Sequence[str],
    run_id: str,
    *,
    dry_run: bool = False,
    confirmed: bool = False,
) -> Iterator[MaintenanceResult]:
    """Everything but compaction; what was done (or would be), table by table."""
    database = open_database(settings)
    with database.read() as connection:
        until = limits(settings.lake, moment(clock(connection)))
    failed = []
    for network in networks:
        tables = namespaces(network).tables
        try:
            if dry_run:
                yield from would_tidy(settings, database, network, tables, until)
            else:
                yield from tidy(settings, database, network, until, run_id, confirmed=confirmed)
        except PermalakeError as error:
            failed.append(str(error))
    yield clear_landings(settings, database, until, dry_run)
    with database.read() as connection:
        keep = told_of(connection)
    old = docs.outdated(keep, until.abandoned)
    files = [file for folder in old for file in folder.rglob("*") if file.is_file()]
    done = MaintenanceResult(PAGES, removed=len(files), freed=sum(file.stat().st_size for file in files))
    if old and not dry_run:
        docs.remove(old)
    yield done
    if failed:
        raise PermalakeError("; ".join(failed))


def job_arguments(networks: Sequence[str], run_id: str) -> list[str]:
    """Arguments of the Spark job that compacts."""
    return [*(part for name in networks for part in ("--network", name)), "--run-id", run_id]


def job_conf() -> dict[str, str]:
    """Spark settings of its submit."""
    return {
        **spark_conf(),
        "spark.driver.memory": driver_memory(),
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    }


def compact(
    settings: Settings,
    networks: Sequence[str],
    run_id: str,
    log: Path,
    config: str | os.PathLike[str] | None = None,
) -> Iterator[str]:
    """Submit the Spark job from this process; yield a line per table when it has ended.

    What Spark prints goes to ``log``, which the :class:`PermalakeError` of a failure names.
    """
    command = [str(bin_folder() / "spark-submit"), "--master", spark_master()]
    command += [part for key, value in job_conf().items() for part in ("--conf", f"{key}={value}")]
    command += [job_file(JOB), *job_arguments(networks, run_id)]
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    environment = {**os.environ, **python, **spark_environment()}
    if file := config_file(config):
        environment[CONFIG_VARIABLE] = str(file)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as kept:
        done = subprocess.run(command, env=environment, stdout=kept, stderr=subprocess.STDOUT, check=False)
    reason = mishap_of(log.read_text("utf-8", errors="replace")) or "the Spark submit ended before it began"
    for row in StepLedger(open_database(settings)).of_run(run_id):
        yield from row.result.log
        reason = row.result.reason or reason
    if done.returncode:
        raise PermalakeError(f"compaction failed: {reason}; the log is {log}")
