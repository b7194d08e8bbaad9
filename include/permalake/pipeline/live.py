"""Following a network between its days: batches into its live head, in one Spark session that stays.

A batch is added as a whole or not at all, so a run that ends, or is killed, goes on where the head ends.
"""

from __future__ import annotations

import argparse
import logging
import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

from permalake.config import Settings, load_settings
from permalake.errors import ConfigError, PermalakeError, line_of
from permalake.lake import leases
from permalake.lake.head import Head
from permalake.lake.head_chores import FAN, merge, sweep
from permalake.lake.head_position import last_reached
from permalake.pipeline import alerts
from permalake.pipeline.domain import Domain, loaded
from permalake.pipeline.jobs import as_process
from permalake.pipeline.workspace import Workspace
from permalake.spark.class_archive import java_options
from permalake.spark.session import SMALL_CONF, session
from permalake.spark.submit import Submission, driver_memory, spark_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = logging.getLogger("permalake")
JOB = "live"
_SWEEP_SECONDS = 600.0
# A run that was killed holds the network for two minutes more.
_WAIT_SECONDS = 150.0
_LONGEST_PAUSE = 60.0
_LONGEST_WISH = 3600.0


@dataclass(frozen=True, slots=True)
class Advance:
    """A batch's additions in words, and the time of the last that was ever added (unix s; None: nothing)."""

    what: str
    timestamp: int | None


class LiveHead(Protocol):
    """A head with the source that it follows."""

    head: Head

    def advance(self) -> Advance | None:
        """Add what is new at the source; None if that is nothing."""

    def finish(self) -> None:
        """Bring the stores that follow the head as far as it is."""

    def close(self) -> None:
        """Let go of the source."""


@dataclass(frozen=True, slots=True)
class LiveOrder:
    """A run that follows a network.

    ``once``: it ends when nothing is new. ``seconds``: it ends after so many; None: not by itself.
    """

    network: str
    run_id: str
    once: bool = False
    seconds: float | None = None

    @property
    def arguments(self) -> list[str]:
        """Arguments of the Spark job."""
        given = ["--network", self.network, "--run-id", self.run_id]
        given += ["--once"] if self.once else []
        return given if self.seconds is None else [*given, "--for", str(self.seconds)]


def submission(order: LiveOrder) -> Submission:
    """Return the submit of a run; its batches are small, however long it lasts."""
    conf = {
        **SMALL_CONF,
        **spark_conf(),
        "spark.driver.memory": driver_memory(),
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC {java_options()}".strip(),
    }
    return Submission(JOB, f"permalake live {order.network}", order.arguments, conf)


def chosen(settings: Settings, domain: Domain, network: str | None) -> str:
    """Return the network to follow: the named one, or the first that has a node as its source.

    Raises:
        ConfigError: if it cannot be followed.
    """
    opener(domain)
    if network is None:
        nodes = [name for name, section in settings.networks.items() if section.source == "node"]
        network = next((name for name in domain.networks(settings) if name in nodes), None)
    name = domain.choose(settings, network)
    check_source(settings, domain, name)
    return name


def check_source(settings: Settings, domain: Domain, network: str) -> None:
    """Raise :class:`ConfigError` unless the source of a network grows."""
    if domain.check_live is not None:
        loaded(domain.check_live)(settings, network)


class LiveJob:
    """The Spark job ``spark/live.py``. ``domain_of`` gives the domain of a network."""

    def __init__(self, domain_of: Callable[[str], Domain]) -> None:
        self._domain_of = domain_of

    def __call__(self, argv: Sequence[str] | None = None, spark: SparkSession | None = None) -> None:
        """Follow the network; raises why it cannot."""
        order = _order(argv)
        work = Workspace.open(load_settings(), self._domain_of(order.network), order.network)
        # A submit may outlive its task, whose next try has the same run id: each has a lease of its own.
        holder = f"{order.run_id[:230]} {uuid4().hex[:8]}"
        with leases.alone(work.database, order.network, leases.LIVE, holder, _WAIT_SECONDS):
            opened = opener(work.domain)
            check_source(work.settings, work.domain, order.network)
            live = opened(work, spark or session(f"live {order.network}"), order.run_id)
            live.head.holder = holder
            with closing(live):
                follow(work, order, live)

    def process(self) -> None:
        """Run as a process: a :class:`PermalakeError` is one line and an exit code."""
        as_process(self)


def opener(domain: Domain) -> Callable[[Workspace, SparkSession, str], LiveHead]:
    """Return the function of a domain that opens its live head; :class:`ConfigError` if it has none."""
    if domain.live is None:
        raise ConfigError(f"live {domain.name}: only days are built of it; it cannot be followed live")
    return loaded(domain.live)


def follow(work: Workspace, order: LiveOrder, live: LiveHead) -> None:
    """Add batches to the head until the order is done.

    After a batch that failed it pauses for ``live.poll_seconds``, after each further one twice as long, up to
    a minute, or for as long as a service asks, up to an hour.

    Raises:
        PermalakeError: if as many batches in a row failed as ``live.attempts`` allows, or another run follows
            the network by now.
    """
    settings = work.settings.live
    end = time.monotonic() + (math.inf if order.seconds is None else order.seconds)
    chores, watch = _Chores(live.head), _LagWatch(work, order)
    failures, longer = 0, settings.poll_seconds
    while True:
        added, pause = None, settings.poll_seconds
        try:
            if failures:  # The head may be gone: a publication drops one that is damaged.
                live.head.ensure()
            added = live.advance()
            chores.do(added is not None)
            failures, longer = 0, settings.poll_seconds
        except (ConfigError, leases.LeaseLostError):
            raise
        except Exception as error:
            failures += 1
            reason = str(error) if isinstance(error, PermalakeError) else line_of(error)
            if failures >= settings.attempts:
                raise PermalakeError(reason) from error
            pause = max(longer, min(getattr(error, "pause", 0.0), _LONGEST_WISH))
            longer = max(settings.poll_seconds, min(2 * longer, _LONGEST_PAUSE))
            line = "live %s: %s; trying again in %.0f s (%d)"
            LOG.info(line, order.network, reason, pause, failures)
        if added:
            lag = "" if added.timestamp is None else f", lag {time.time() - added.timestamp:.1f} s"
            LOG.info("live %s: %s%s", order.network, added.what, lag)
        watch.look(added)
        if order.once and added is None and not failures:
            live.finish()
            return
        left = end - time.monotonic()
        if left <= 0:
            return
        if added is None or failures:
            watch.sleep(min(pause, left))


class _LagWatch:
    """Sends an alert once the head has been too far behind for as long as it may be behind; then no more.

    A head that has caught up is watched anew.
    """

    def __init__(self, work: Workspace, order: LiveOrder) -> None:
        before = last_reached(work.database, order.network)
        self._work, self._order = work, order
        self._last: float | None = before.timestamp if before else None
        self._since: float | None = None
        self._is_reported = False

    def look(self, added: Advance | None) -> None:
        """Look at the lag after a batch, or after nothing new."""
        limit = self._work.settings.live.max_lag_seconds
        self._last = added.timestamp if added and added.timestamp is not None else self._last
        lag = 0.0 if self._last is None else time.time() - self._last
        if lag <= limit:
            self._since, self._is_reported = None, False
            return
        self._since = self._since or time.monotonic()
        if not self._is_reported and time.monotonic() - self._since >= limit:
            self._is_reported = True
            day = datetime.fromtimestamp(self._last or 0, UTC).date().isoformat()
            dag = f"{self._work.domain.name}_live"
            alerts.send(alerts.lagging(dag, self._order.run_id, self._order.network, day, lag))

    def sleep(self, seconds: float) -> None:
        """Sleep, and look once a minute."""
        while seconds > 0:
            time.sleep(min(seconds, _LONGEST_PAUSE))
            seconds -= _LONGEST_PAUSE
            self.look(None)


class _Chores:
    """Chores that keep the head small: merging its files, and sweeping away those that nobody needs."""

    def __init__(self, head: Head) -> None:
        self._head, self._batches, self._swept = head, 0, -math.inf

    def do(self, is_longer: bool) -> None:
        self._batches += is_longer
        if is_longer and self._batches % FAN == 0:
            merge(self._head)
        if time.monotonic() - self._swept > _SWEEP_SECONDS:
            sweep(self._head)
            self._swept = time.monotonic()


def _order(argv: Sequence[str] | None) -> LiveOrder:
    parser = argparse.ArgumentParser(prog=JOB)
    parser.add_argument("--network", required=True)
    parser.add_argument("--run-id", required=True)
    parser.add_argument("--once", action="store_true", help="end when nothing is new")
    parser.add_argument("--for", dest="seconds", type=float, help="end after so many seconds")
    return LiveOrder(**vars(parser.parse_args(argv)))
