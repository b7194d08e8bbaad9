"""Rows out of Cassandra for the API: prepared statements over one session that outlives an outage."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from permalake.config.stores import CassandraSettings
from permalake.contracts.rows import Row
from permalake.errors import StoreUnavailableError

if TYPE_CHECKING:
    from cassandra.cluster import Cluster, Session
    from cassandra.query import PreparedStatement


SECONDS = 5.0
"""Longest wait for an answer; a server that takes longer counts as away."""
_FETCHED = 1000
_PAUSE_SECONDS = 1.0
_PING = "SELECT key FROM system.local WHERE key = ?"
_LOG = logging.getLogger(__name__)


class CassandraReader:
    """Reads rows; connects when it is first asked, and again after the servers were away.

    ``observe`` is called after each query: with its table, its seconds, and the name of its error.
    """

    def __init__(self, settings: CassandraSettings) -> None:
        self._settings = settings
        self._cluster: Cluster | None = None
        self._session: Session | None = None
        self._prepared: dict[str, PreparedStatement] = {}
        self._connecting = threading.Lock()
        self._refused_until = 0.0
        self.observe: Callable[[str, float, str | None], None] = lambda *_: None

    def rows(self, statement: str, values: Sequence[object], deadline: float) -> list[Row]:
        """Return the rows of a statement with ``?`` for its values.

        Args:
            statement: One SELECT; it is prepared once.
            values: What it binds.
            deadline: As of :func:`time.monotonic`.

        Raises:
            StoreUnavailableError: if Cassandra does not answer in time.
        """
        return list(self.stream(statement, values, deadline))

    def stream(self, statement: str, values: Sequence[object], deadline: float) -> Iterator[Row]:
        """Yield the rows of :meth:`rows`, fetched as they are taken."""
        table = statement.partition(" FROM ")[2].partition(" ")[0]
        began, failure = time.monotonic(), None
        try:
            with _explained():
                session = self._connected(deadline)
                prepared = self._prepare(session, statement)
                bound = prepared.bind(list(values))
                bound.fetch_size = _FETCHED
                yield from session.execute(bound, timeout=_left(deadline))
        except StoreUnavailableError as error:
            failure = type(error.__cause__ or error).__name__
            raise
        finally:
            self.observe(table.rpartition(".")[2], time.monotonic() - began, failure)

    def ping(self, deadline: float) -> None:
        """Raise :class:`StoreUnavailableError` unless Cassandra answers."""
        self.rows(_PING, ["local"], deadline)

    def close(self) -> None:
        """Close the session."""
        with self._connecting:
            if self._cluster is not None:
                self._cluster.shutdown()
            self._cluster = self._session = None

    def _prepare(self, session: Session, statement: str) -> PreparedStatement:
        if statement not in self._prepared:
            self._prepared[statement] = session.prepare(statement)
        return self._prepared[statement]

    def _connected(self, deadline: float) -> Session:
        if self._session is not None:
            return self._session
        if not self._connecting.acquire(timeout=_left(deadline)):
            raise _away()
        try:
            if self._session is None:
                if time.monotonic() < self._refused_until:
                    raise _away()
                self._session = self._open()
            return self._session
        finally:
            self._connecting.release()

    def _open(self) -> Session:
        from permalake.stores.cassandra import cluster_of

        cluster = cluster_of(self._settings, seconds=SECONDS, schema=True)
        try:
            session = cluster.connect()
        except Exception:
            self._refused_until = time.monotonic() + _PAUSE_SECONDS
            cluster.shutdown()
            raise
        self._cluster = cluster
        return session


def _left(deadline: float) -> float:
    return max(min(SECONDS, deadline - time.monotonic()), 0.001)


@contextmanager
def _explained() -> Iterator[None]:
    """Turn the driver's errors into one that the client may see; the log has the reason."""
    from cassandra import DriverException, RequestExecutionException
    from cassandra.cluster import NoHostAvailable

    try:
        yield
    except (NoHostAvailable, DriverException, RequestExecutionException) as error:
        _LOG.warning("Cassandra: %s", " ".join(str(error).split()))
        raise _away() from error


def _away() -> StoreUnavailableError:
    return StoreUnavailableError("Cassandra does not answer; try again")
