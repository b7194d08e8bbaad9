"""Sections of the stores: Cassandra and Bigtable."""

from __future__ import annotations

from pathlib import Path

from pydantic import (
    Field,
    SecretStr,
    model_validator,
)

from permalake.config.section import Section


class CassandraSettings(Section):
    """``[cassandra]``: empty means that nothing is published there.

    ``connection`` names an Airflow connection that gives the DAGs what the section leaves out.
    ``ssl_ca_file`` switches TLS on: PEM certificates that sign the servers'. ``ssl_cert_file`` and
    ``ssl_key_file`` are for servers that ask for a client's certificate. All three must be at the same path
    on every node.
    """

    connection: str | None = Field(default=None, min_length=1)
    contact_points: tuple[str, ...] = ()
    port: int = Field(default=9042, ge=1, le=65535)
    local_dc: str = "datacenter1"
    replication: int = Field(default=1, ge=1)
    partition_size: int = Field(default=100_000, ge=1)
    username: str | None = Field(default=None, min_length=1)
    password: SecretStr | None = None
    """From the environment only."""
    ssl_ca_file: Path | None = None
    ssl_cert_file: Path | None = None
    ssl_key_file: Path | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> CassandraSettings:
        if (self.username is None) != (self.password is None):
            raise ValueError("give username and password (PERMALAKE_CASSANDRA__PASSWORD), or neither")
        if (self.ssl_cert_file is None) != (self.ssl_key_file is None):
            raise ValueError("give ssl_cert_file and ssl_key_file, or neither")
        if self.ssl_cert_file and not self.ssl_ca_file:
            raise ValueError("ssl_cert_file needs ssl_ca_file, which switches TLS on")
        return self

    @property
    def configured(self) -> bool:
        """Whether days are published into Cassandra."""
        return bool(self.contact_points or self.connection)


class BigtableSettings(Section):
    """``[bigtable]``: without a table nothing is published there.

    ``connection`` names an Airflow connection that gives the DAGs what the section leaves out.
    """

    connection: str = Field(default="google_cloud_default", min_length=1)
    project: str | None = None
    instance: str | None = None
    table: str | None = None
    table_v1: str | None = None
    credentials: SecretStr | None = None
    """Google's credentials as JSON, from the environment only: a service account's key, or a federation's
    configuration. Without it, Google's client looks for credentials itself
    (``GOOGLE_APPLICATION_CREDENTIALS``, the machine's account)."""
    impersonation_chain: tuple[str, ...] = ()
    """Service accounts to impersonate, each by the one before it; the last one is used."""
