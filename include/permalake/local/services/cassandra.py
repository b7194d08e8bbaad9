"""Apache Cassandra from its Maven jars: one node on the loopback interface."""

from __future__ import annotations

import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from permalake.local.services.daemon import LOOPBACK, Daemon, free_port
from permalake.spark import jars

VERSION = "5.0.9"
COORDINATE = f"org.apache.cassandra:cassandra-all:{VERSION}"
PORT = 9042
_SECONDS_TO_START = 120
_HEAP = ("-Xms256m", "-Xmx1g")

# Packages of the JDK that the server reaches into on Java 17.
_EXPORTS = (
    "java.base/java.lang.ref",
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.unsupported/sun.misc",
)
_OPENS = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.util",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
)
_PROPERTIES = {
    "jdk.attach.allowAttachSelf": "true",
    # The thread that keeps an approximate time for time-outs wakes 500 times a second otherwise.
    "cassandra.approximate_time_precision_ms": "50",
    "io.netty.tryReflectionSetAccessible": "true",
    # A single node has nobody to wait for.
    "cassandra.skip_wait_for_gossip_to_settle": "0",
    "cassandra.ring_delay_ms": "500",
    "cassandra.superuser_setup_delay_ms": "0",
}
_LOGGING = """<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{ISO8601} %-5level %logger{20} %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="out"/></root>
</configuration>
"""


@dataclass(frozen=True)
class Cassandra:
    """A node whose data, settings, pid and log lie in ``folder`` and whose jars lie in ``library``."""

    folder: Path
    library: Path
    port: int = PORT

    @property
    def daemon(self) -> Daemon:
        """The process."""
        return Daemon("cassandra", self.folder)

    @property
    def _jars(self) -> Path:
        return self.library / f"cassandra-{VERSION}"

    def fetched(self) -> bool:
        """Whether the jars are there."""
        return self._jars.is_dir()

    def fetch(self) -> None:
        """Bring the jars; the folder appears whole or not at all."""
        if self.fetched():
            return
        self.library.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.library) as scratch:
            jars.retrieve(COORDINATE, Path(scratch))
            whole = Path(scratch) / "whole"
            whole.mkdir()
            for jar in Path(scratch).glob("*.jar"):
                jar.rename(whole / jar.name)
            whole.rename(self._jars)

    def up(self) -> None:
        """Start the node and wait until it answers CQL; data of earlier starts is there again."""
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = self.folder / "cassandra.yaml"
        settings.write_text(yaml.safe_dump(self._settings(free_port())), "utf-8")
        (self.folder / "logback.xml").write_text(_LOGGING, "utf-8")
        self.daemon.start(self._command(settings), self.port, self.healthy, _SECONDS_TO_START)

    def healthy(self) -> bool:
        """Whether the node answers CQL."""
        return speaks_cql(LOOPBACK, self.port)

    def _settings(self, storage_port: int) -> dict[str, Any]:
        return {
            "cluster_name": "permalake",
            "num_tokens": 1,
            "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
            "endpoint_snitch": "SimpleSnitch",
            "seed_provider": [
                {
                    "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                    "parameters": [{"seeds": f"{LOOPBACK}:{storage_port}"}],
                }
            ],
            "listen_address": LOOPBACK,
            "rpc_address": LOOPBACK,
            "storage_port": storage_port,
            "native_transport_port": self.port,
            "materialized_views_enabled": True,
            # A write is answered when it is on disk, so that a killed server has lost nothing it confirmed.
            "commitlog_sync": "group",
            "commitlog_sync_group_window": "5ms",
            # A thread waits for the disk with each write; 32 of them would bound the server, not its cores.
            "concurrent_writes": 128,
            "concurrent_materialized_view_writes": 128,
            # Two seconds are short for a machine that Spark keeps busy too.
            "write_request_timeout": "10s",
            "auto_snapshot": False,
            "data_file_directories": [str(self.folder / "data")],
            "commitlog_directory": str(self.folder / "commitlog"),
            "saved_caches_directory": str(self.folder / "saved_caches"),
            "hints_directory": str(self.folder / "hints"),
            "cdc_raw_directory": str(self.folder / "cdc_raw"),
        }

    def _command(self, settings: Path) -> list[str]:
        properties = {
            **_PROPERTIES,
            "cassandra.config": settings.as_uri(),
            "cassandra.storagedir": str(self.folder),
            "logback.configurationFile": str(self.folder / "logback.xml"),
        }
        return [
            jars.java(),
            *_HEAP,
            "-XX:+ExitOnOutOfMemoryError",
            *(f"--add-exports={package}=ALL-UNNAMED" for package in _EXPORTS),
            *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENS),
            *(f"-D{key}={value}" for key, value in properties.items()),
            "-cp",
            f"{self._jars}/*",
            "org.apache.cassandra.service.CassandraDaemon",
        ]


# A frame of the native protocol v4: version, flags, stream (2), opcode, length (4).
_OPTIONS = bytes((0x04, 0, 0, 0, 0x05, 0, 0, 0, 0))
_SUPPORTED = 0x06


def speaks_cql(host: str, port: int, timeout: float = 2.0) -> bool:
    """Whether a server there answers an OPTIONS frame of the CQL native protocol."""
    try:
        with socket.create_connection((host, port), timeout) as link:
            link.settimeout(timeout)
            link.sendall(_OPTIONS)
            answer = b""
            while len(answer) < len(_OPTIONS) and (more := link.recv(64)):
                answer += more
    except OSError:
        return False
    return len(answer) >= len(_OPTIONS) and answer[4] == _SUPPORTED
