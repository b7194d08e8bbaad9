"""Spark's way to the catalog database: options as the JDBC driver names them, and no password in settings.

Spark writes its settings into event logs, so the password goes through a file that only this user can read,
as PostgreSQL's own clients do it (``.pgpass``).
"""

from __future__ import annotations

import atexit
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from permalake.config import Settings
from permalake.errors import ConfigError
from permalake.net import object_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXPECTED = (
    "write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with special characters percent-encoded"
)
_PASSWORD_FILE = "org.postgresql.pgpassfile"  # noqa: S105
# libpq's connection options, and what the JDBC driver calls them.
_OPTIONS = {
    "application_name": "ApplicationName",
    "channel_binding": "channelBinding",
    "connect_timeout": "connectTimeout",
    "gssencmode": "gssEncMode",
    "keepalives": "tcpKeepAlive",
    "options": "options",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslmode": "sslmode",
    "sslnegotiation": "sslNegotiation",
    "sslrootcert": "sslrootcert",
    "target_session_attrs": "targetServerType",
}
_VALUES = {
    ("keepalives", "1"): "true",
    ("keepalives", "0"): "false",
    ("target_session_attrs", "read-write"): "primary",
    ("target_session_attrs", "standby"): "secondary",
    ("target_session_attrs", "prefer-standby"): "preferSecondary",
}


def catalog_url(settings: Settings) -> URL:
    """Return the parsed URI of the catalog database.

    Raises:
        ConfigError: if it is not one. The message never quotes it: it may hold a password.
    """
    try:
        url = make_url(settings.lake.catalog_uri)
    except (ArgumentError, ValueError):
        raise ConfigError(f"lake.catalog: not a database URI; {_EXPECTED}") from None
    if "@" in (url.host or ""):  # the rest of a password that holds an @
        raise ConfigError(f"lake.catalog: more than one @; {_EXPECTED}")
    if url.get_backend_name() not in {"sqlite", "postgresql"}:
        raise ConfigError(
            f"lake.catalog: {url.get_backend_name()} is not supported; use sqlite or postgresql"
        )
    # Without a driver, SQLAlchemy takes one that is not installed.
    return url.set(drivername="postgresql+psycopg2") if url.drivername == "postgresql" else url


def catalog_conf(settings: Settings, catalog: str) -> dict[str, str]:
    """Return the Spark settings that name the Iceberg catalog entries ``catalog`` of the catalog database.

    They hold no password; :func:`bind_catalog` passes it on.
    """
    url = catalog_url(settings)
    prefix = f"spark.sql.catalog.{catalog}"
    conf = {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "jdbc",
        f"{prefix}.warehouse": settings.lake.warehouse,
        f"{prefix}.jdbc.schema-version": "V1",
        f"{prefix}.cache-enabled": "false",
    }
    storage = object_storage.spark_catalog(settings.lake.warehouse)
    conf |= {f"{prefix}.{key}": value for key, value in storage.items()}
    if url.get_backend_name() == "sqlite":
        # With the default of 0 one commit in eight of three processes failed on a locked database.
        return conf | {f"{prefix}.uri": f"jdbc:sqlite:{url.database}?busy_timeout=60000"}
    return conf | {f"{prefix}.uri": _jdbc_uri(url), f"{prefix}.jdbc.user": url.username or ""}


def bind_catalog(spark: SparkSession, settings: Settings, catalog: str) -> None:
    """Make the entries ``catalog`` of the catalog database a Spark catalog of that name."""
    url = catalog_url(settings)
    if url.password:
        java = spark.sparkContext._jvm.java.lang  # type: ignore[union-attr]  # noqa: SLF001 - PySpark has no other way
        java.System.setProperty(_PASSWORD_FILE, _password_file(str(url.username or ""), str(url.password)))
    for key, value in catalog_conf(settings, catalog).items():
        spark.conf.set(key, value)


def _jdbc_uri(url: URL) -> str:
    options = []
    for name, value in url.normalized_query.items():
        if name not in _OPTIONS:
            raise ConfigError(f"lake.catalog: Spark's driver does not know the option {name}; remove it")
        spelled = _VALUES.get((name, value[-1]), value[-1])
        options.append(f"{_OPTIONS[name]}={quote(spelled, safe='')}")
    host = f"[{url.host}]" if ":" in (url.host or "") else url.host or "localhost"
    query = f"?{'&'.join(options)}" if options else ""
    return f"jdbc:postgresql://{host}:{url.port or 5432}/{quote(url.database or '', safe='')}{query}"


@cache
def _password_file(user: str, password: str) -> str:
    """Write the file from which the driver reads the password; it goes with this process."""
    descriptor, path = tempfile.mkstemp(prefix="permalake-", suffix=".pgpass")  # readable by this user alone
    escaped = [part.replace("\\", "\\\\").replace(":", "\\:") for part in (user, password)]
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"*:*:*:{':'.join(escaped)}\n")
    atexit.register(Path(path).unlink, missing_ok=True)
    return path
