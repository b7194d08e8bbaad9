"""Maintenance of the whole lake, network by network; knows no Airflow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from permalake.audit import docs
from permalake.config import Settings, used
from permalake.contracts.namespaces import Namespaces
from permalake.errors import ConfigError, PermalakeError, mishap_of
from permalake.lake import leases
from permalake.lake.database import Database
from permalake.lake.head import Head
from permalake.lake.head_chores import needless
from permalake.lake.identity import open_database
from permalake.lake.maintenance.compact import fragmented_tables
from permalake.lake.maintenance.history import attempts_to_keep
from permalake.lake.maintenance.limits import limits
from permalake.lake.maintenance.storage import remove
from permalake.lake.maintenance.tidy import MaintenanceResult, clear_landings, networks_of, tidy, would_tidy
from permalake.lake.owner import owning
from permalake.lake.state import clock, moment
from permalake.lake.step_ledger import StepLedger
from permalake.spark import submit
from permalake.spark.submit import Submission, driver_memory, spark_conf

JOB = "lake_maintenance"
PAGES = "audit pages"


def chosen(settings: Settings, network: str | None = None) -> list[str]:
    """One network or all that the lake holds; :class:`ConfigError` names them when it does not hold it."""
    networks = networks_of(open_database(settings))
    if network is None:
        return networks
    if network not in networks:
        raise ConfigError(f"network {network}: not in the lake (there: {', '.join(networks) or 'none'})")
    return [network]


def fragmented_networks(settings: Settings, namespaces: Namespaces, networks: Sequence[str]) -> list[str]:
    """Those networks that have something to compact."""
    database = open_database(settings)
    target = settings.lake.target_bytes
    return [name for name in networks if fragmented_tables(database, name, namespaces(name).tables, target)]


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
        yield clear_head(settings, database, network, run_id, dry_run)
    yield clear_landings(settings, database, until, dry_run)
    with database.read() as connection:
        keep = attempts_to_keep(connection)
    old = docs.outdated(keep, until.abandoned)
    files = [file for folder in old for file in folder.rglob("*") if file.is_file()]
    done = MaintenanceResult(PAGES, removed=len(files), freed=sum(file.stat().st_size for file in files))
    if old and not dry_run:
        docs.remove(old)
    yield done
    if failed:
        raise PermalakeError("; ".join(failed))


def clear_head(
    settings: Settings, database: Database, network: str, run_id: str, dry_run: bool = False
) -> MaintenanceResult:
    """Remove what nobody needs of a head that nobody follows; who follows one does it himself."""
    head = Head(settings, database, network, {})
    done = MaintenanceResult(head.namespace)
    with ExitStack() as held:
        try:
            held.enter_context(leases.alone(database, network, leases.LIVE, run_id))
        except PermalakeError:
            return done
        unneeded = needless(head)
        done.removed, done.freed = len(unneeded), sum(file.size for file in unneeded)
        if not dry_run:
            remove(head.place, unneeded)
    return done


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
