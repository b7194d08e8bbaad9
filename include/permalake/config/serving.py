"""Section ``[serve]``."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Literal

from pydantic import Field, SecretStr, field_validator

from permalake.config.section import Section


class ServeSettings(Section):
    """``[serve]``: the REST API's address and its limits."""

    host: str = "127.0.0.1"
    port: int = Field(default=8042, ge=1, le=65535)
    default_network: str | None = None
    """Network whose node routes stand at the root too."""
    root_path: str = Field(default="", pattern=r"^(/[A-Za-z0-9._~-]+)*$")
    """Prefix under which a proxy publishes the API."""
    backend: Literal["lake", "stores"] = "lake"
    """Where single messages and events are read: from the lake alone, or from the configured stores as far as
    they hold them."""
    lake_pool: int = Field(default=4, ge=1, le=64)
    """Queries that run at once."""
    concurrency: int = Field(default=64, ge=1)
    """Requests that are answered at once."""
    queue: int = Field(default=256, ge=0)
    """Requests that wait for their turn; one more gets 503."""
    queue_seconds: float = Field(default=1.0, gt=0, le=3600)
    """Seconds that a request waits for its turn, and its queries for theirs; then it gets 503."""
    client_concurrency: int = Field(default=16, ge=0)
    """Requests of one client address that are answered at once; 0: no limit. Off on the loopback."""
    timeout: float = Field(default=15.0, gt=0, le=3600)
    """Seconds that a request may take; a query is cancelled then."""
    page_size: int = Field(default=100, ge=1)
    max_page_size: int = Field(default=1000, ge=1)
    body_bytes: int = Field(default=1 << 20, ge=1)
    connections: int = Field(default=1024, ge=16)
    """Open connections; one more ends the one that has kept the server waiting longest."""
    header_bytes: int = Field(default=32_768, ge=16_384)
    """Size of a request's address and headers."""
    header_timeout: float = Field(default=10.0, gt=0, le=3600)
    """Seconds until a request's headers are there."""
    body_timeout: float = Field(default=10.0, gt=0, le=3600)
    """Seconds from there until its body is there."""
    write_timeout: float = Field(default=10.0, gt=0, le=3600)
    """Seconds in which a client has to take 4 KiB per second of its answer, or all of it."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies whose X-Forwarded-For names the client; of others it is ignored."""
    rate_per_minute: int = Field(default=0, ge=0)
    """Requests per client address and minute; 0: no limit."""
    cors_origins: tuple[str, ...] = ("*",)
    tokens: tuple[SecretStr, ...] = ()
    """Bearer tokens; with any, every route but health needs one. From the environment only."""
    sql: bool | None = None
    """Whether the server takes SQL; unset: where it listens on the loopback and no proxy is configured."""
    sql_seconds: float = Field(default=10.0, gt=0, le=3600)
    """Seconds that a statement may take; it never takes longer than ``timeout``."""
    sql_memory: str = Field(default="512MiB", pattern=r"^[0-9]+(\.[0-9]+)?[KMGT]i?B$")
    """Memory of a statement; beyond it, temporary files."""
    sql_rows: int = Field(default=10_000, ge=1, le=1_000_000)
    """Rows that a statement may give; the others are left out."""

    @property
    def catalog_wait(self) -> float:
        """Seconds to wait for a locked catalog: well below :attr:`timeout`."""
        return self.timeout / 3

    @field_validator("trusted_proxies")
    @classmethod
    def _addresses(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for proxy in proxies:
            ip_network(proxy)
        return proxies
