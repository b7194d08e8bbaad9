"""Airflow's connections to the stores.

One rule: a key that the configuration sets, in its file or by a variable, counts; the connection gives the
keys that it leaves out. Login, TLS files, and credentials with the accounts that they impersonate count as
one key each, so that a password never goes with another user's name.

The values are handed on as the configuration's own variables, in the environment of this process, which a
Spark submit in client mode inherits. They are in no command line, setting of the submit or XCom.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from permalake.config import Settings, load_settings
from permalake.config.stores import BigtableSettings, CassandraSettings
from permalake.errors import ConfigError
from permalake.pipeline.domain import Domain

LOG = logging.getLogger(__name__)
_SSL_KEYS = {"ca_certs": "ssl_ca_file", "certfile": "ssl_cert_file", "keyfile": "ssl_key_file"}
_TOGETHER = (
    {"username", "password"},
    {"ssl_ca_file", "ssl_cert_file", "ssl_key_file"},
    {"credentials", "impersonation_chain"},
)


@contextmanager
def store_variables(domain: Domain) -> Iterator[None]:
    """Put what the connections of the domain's stores say into the environment, for the time of the block."""
    given = variables(load_settings(), domain)
    try:
        os.environ.update(given)
        yield
    finally:
        for name in given:
            os.environ.pop(name, None)


def variables(settings: Settings, domain: Domain) -> dict[str, str]:
    """Return what the connections of the configured stores add to the settings, as their variables.

    Raises:
        ConfigError: A connection that the settings name is missing and needed, or of the wrong kind.
    """
    values_of: dict[str, str] = {}
    for store in domain.configured_stores(settings):
        if store.name in _READERS:
            section = getattr(settings, store.name)
            values = _left_out(section.model_fields_set, _READERS[store.name](section))
            values_of |= {f"PERMALAKE_{store.name}__{key}".upper(): value for key, value in values.items()}
    return values_of


def _left_out(named: set[str], values: Mapping[str, str]) -> dict[str, str]:
    taken = named.union(*(group for group in _TOGETHER if group & named))
    return {key: value for key, value in values.items() if key not in taken}


def _cassandra(section: CassandraSettings) -> dict[str, str]:
    """Return the values of a connection as the provider's ``CassandraHook`` reads it."""
    if section.connection is None:
        return {}
    needed = () if section.contact_points else ("cassandra.contact_points",)
    connection = _connection("cassandra", section.connection, "cassandra", needed)
    if connection is None:
        return {}
    values: dict[str, str] = {}
    if connection.host:
        values["contact_points"] = json.dumps([host.strip() for host in connection.host.split(",")])
    if connection.port:
        values["port"] = str(connection.port)
    if connection.login:
        mask_secret(connection.password)
        values |= {"username": connection.login, "password": connection.password or ""}
    extra = _extra(connection)
    policy = extra.get("load_balancing_policy_args") or {}
    for arguments in (policy.get("child_load_balancing_policy_args") or {}, policy):
        if center := arguments.get("local_dc"):
            values["local_dc"] = center
    tls = extra.get("ssl_options") or {}
    if tls and "ca_certs" not in tls:
        raise ConfigError(
            f"cassandra.connection: {section.connection} has ssl_options without ca_certs; add the path of "
            "the CA's certificate"
        )
    return values | {key: str(tls[name]) for name, key in _SSL_KEYS.items() if name in tls}


def _bigtable(section: BigtableSettings) -> dict[str, str]:
    """Return what a connection of type Google Cloud gives, as the provider's hook reads it."""
    name = section.connection
    needed = tuple(f"bigtable.{key}" for key in ("project", "instance") if getattr(section, key) is None)
    if _connection("bigtable", name, "google_cloud_platform", needed) is None:
        return {}
    from permalake.orchestrate.google_connection import google_values

    return google_values(name)


def _extra(connection: Connection) -> dict[str, Any]:
    return dict(connection.extra_dejson)


def _connection(section: str, name: str, kind: str, needed: tuple[str, ...]) -> Connection | None:
    """Return the connection, None if there is none and the settings have what is ``needed``."""
    try:
        connection: Connection = Connection.get(name)
    except AirflowNotFoundException:
        if not needed:
            return None
        raise ConfigError(
            f"{section}.connection: Airflow has no connection {name}; set AIRFLOW_CONN_{name.upper()} "
            f"(DAGs also read Admin, Connections), or {' and '.join(needed)}"
        ) from None
    if connection.conn_type != kind:
        raise ConfigError(
            f"{section}.connection: {name} is of type {connection.conn_type}, not {kind}; name another one"
        )
    LOG.info("%s: what the settings leave out comes from the connection %s", section, name)
    return connection


_READERS: dict[str, Callable[[Any], dict[str, str]]] = {"cassandra": _cassandra, "bigtable": _bigtable}
