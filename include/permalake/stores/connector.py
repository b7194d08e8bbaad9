"""The Spark connector's sessions, which must not stay with a server that is gone.

A session of the Java driver (4.18.1 to 4.19.3) whose schema refresh failed, because the server was gone just
then, never ends another one: later ones queue behind it (scylladb/java-driver#841). The connector asks for
one before each write and keeps its sessions for an hour: a write after the server had returned never ended.
A task whose session is closed may also wait for ever, for an answer that was on its way: it is cancelled.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from permalake.config.stores import CassandraSettings
from permalake.stores import cassandra_tls

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = logging.getLogger(__name__)
_CACHE = "com.datastax.spark.connector.cql.CassandraConnector$"
_TAG = "permalake-cassandra-write"


def options(settings: CassandraSettings) -> dict[str, str]:
    """Return how the connector reaches the servers; Spark redacts the passwords among these options."""
    login = {}
    if settings.username and settings.password:
        login = {
            "spark.cassandra.auth.username": settings.username,
            "spark.cassandra.auth.password": settings.password.get_secret_value(),
        }
    return {
        **login,
        **cassandra_tls.connector_options(settings),
        "spark.cassandra.connection.host": ",".join(settings.contact_points),
        "spark.cassandra.connection.port": str(settings.port),
        "spark.cassandra.connection.localDC": settings.local_dc,
        # Workers' sessions outlive a server's restart and would look for it once a minute only.
        "spark.cassandra.connection.reconnectionDelayMS.max": "5000",
    }


@contextmanager
def writing(spark: SparkSession) -> Iterator[None]:
    """Write from this thread with the connector; a write that fails ends all others of this program.

    Their sessions are closed, so that whoever waits for one fails and the next write opens its own, and
    their jobs are cancelled.
    """
    context = spark.sparkContext
    context.setInterruptOnCancel(True)
    context.addJobTag(_TAG)
    try:
        yield
    except Exception:
        close_sessions(spark)
        context.cancelJobsWithTag(_TAG)
        raise
    finally:
        context.removeJobTag(_TAG)


def close_sessions(spark: SparkSession) -> None:
    """Close the sessions of the driver program; the next write opens its own.

    It raises nothing: a write that failed has an error of its own to report.
    """
    try:
        jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no other way
        cache = getattr(getattr(jvm, _CACHE), "MODULE$").sessionCache().cache()
        sessions = cache.values().toSeq()
        # Emptied by hand: what a failed write has not given back would keep a closed session there.
        cache.clear()
        for at in range(sessions.size()):
            sessions.apply(at).forceCloseAsync()
    except Exception as error:  # noqa: BLE001 - see above
        LOG.warning("sessions with Cassandra stay open: %s", error)
