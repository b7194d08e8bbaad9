"""Maintenance of the whole lake, network by network; knows no Airflow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from permalake.audit import docs
from permalake.config import Settings, used
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
from permalake.lake.owner import owning
from permalake.lake.state import clock, moment
from permalake.lake.step_ledger import StepLedger
from permalake.spark import submit
from permalake.spark.submit import Submission, driver_memory, spark_conf

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


def submission(networks: Sequence[str], run_id: str) -> Submission:
    """Return the submit of the Spark job that compacts."""
    arguments = [*(part for name in networks for part in ("--network", name)), "--run-id", run_id]
    conf = {
        **spark_conf(),
        "spark.driver.memory": driver_memory(),
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    }
    return Submission(JOB, f"permalake {JOB}", arguments, conf)


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
    with used(config), owning():
        end = submit.run(submission(networks, run_id), log)
    reason = mishap_of(end.output) or "the Spark submit ended before it began"
    for row in StepLedger(open_database(settings)).of_run(run_id):
        yield from row.result.log
        reason = row.result.reason or reason
    if end.code:
        raise PermalakeError(f"compaction failed: {reason}; the log is {log}")
