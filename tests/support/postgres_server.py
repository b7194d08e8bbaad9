"""A real PostgreSQL on a free port, from a jar of Maven Central; TLS and a password are required."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import os
import platform
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from permalake.spark import jars

VERSION = "17.5.0"
USER = "permalake"
_NOBODY = 65534
COORDINATES = {
    machine: f"io.zonky.test.postgres:embedded-postgres-binaries-linux-{name}:{VERSION}"
    for machine, name in (("x86_64", "amd64"), ("aarch64", "arm64v8"), ("arm64", "arm64v8"))
}
"""Maven coordinates of the server's files, by machine."""


@dataclass(frozen=True)
class PostgresServer:
    """Where the server listens, and the certificate that it shows."""

    port: int
    password: str
    certificate: Path

    def uri(self, database: str, **options: str) -> str:
        """Return the URI of a database."""
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"postgresql+psycopg2://{USER}:{self.password}@127.0.0.1:{self.port}/{database}?{query}"


@contextlib.contextmanager
def postgres(password: str, databases: tuple[str, ...]) -> Iterator[PostgresServer]:
    """Run a server with empty databases; it and its files go at the end."""
    folder = Path(tempfile.mkdtemp(prefix="permalake-postgres-"))
    try:
        binaries = _unpack(folder)
        (folder / "password").write_text(password)
        _certificate(folder)
        # PostgreSQL refuses to run as root.
        owner: dict[str, int] = {}
        if os.getuid() == 0:
            owner = {"user": _NOBODY, "group": _NOBODY}
            for path in (folder, *folder.iterdir()):
                os.chown(path, _NOBODY, _NOBODY)

        def run(*command: str, **environment: str) -> None:
            subprocess.run(
                [str(binaries / command[0]), *command[1:]],
                check=True,
                cwd=folder,
                env={**os.environ, **environment},
                stdout=subprocess.DEVNULL,
                **owner,
            )

        data = folder / "data"
        run(
            "initdb", "-D", str(data), "-U", USER, "--pwfile", str(folder / "password"), "-A", "scram-sha-256"
        )
        (data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 scram-sha-256\n")
        port = _free_port()
        settings = {
            "port": port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "ssl": "on",
            "ssl_cert_file": folder / "server.crt",
            "ssl_key_file": folder / "server.key",
            "fsync": "off",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [str(binaries / "postgres"), "-D", str(data), *options],
                stdout=log,
                stderr=log,
                cwd=folder,
                **owner,
            )
        try:
            found = PostgresServer(port, password, folder / "server.crt")
            _create(found, databases)
            yield found
        finally:
            server.send_signal(signal.SIGINT)  # at once, whoever is connected
            server.wait(timeout=60)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unpack(folder: Path) -> Path:
    coordinate = COORDINATES[platform.machine()]
    (jar,) = jars.resolve([coordinate]) or [jars.JARS / jars.jar_name(coordinate)]
    target = folder / "postgresql"
    with zipfile.ZipFile(jar) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".txz"))
        with archive.open(name) as packed, tarfile.open(fileobj=packed, mode="r:xz") as files:
            files.extractall(target, filter="tar")
    target.chmod(0o755)
    return target / "bin"


def _certificate(folder: Path) -> None:
    """Write a key and a certificate for 127.0.0.1 that signs itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "server.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    (folder / "server.key").chmod(0o600)


def _create(server: PostgresServer, databases: tuple[str, ...]) -> None:
    from sqlalchemy import create_engine, text
    from sqlalchemy.exc import OperationalError

    engine = create_engine(server.uri("postgres", sslmode="require"), isolation_level="AUTOCOMMIT")
    give_up = time.monotonic() + 60
    while True:
        try:
            with engine.connect() as connection:
                for database in databases:
                    connection.execute(text(f'CREATE DATABASE "{database}"'))
            break
        except OperationalError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.2)
    engine.dispose()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
