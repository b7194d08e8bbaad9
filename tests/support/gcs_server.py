"""Google Cloud Storage on this machine: fake-gcs-server, and a proxy by which Java takes it for Google's own.

Python's libraries are told of the server by ``STORAGE_EMULATOR_HOST``. Hadoop's file system for ``gs://``
talks to ``https://storage.googleapis.com`` whatever it is told, so the proxy ends its connections, with a
certificate that only the test's trust store knows, and passes requests on to the server. It answers for the
token service of the test's account too, so that the real search for credentials is used.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import httpx
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

from permalake.local.services import golang
from permalake.local.services.control import LIBRARY
from permalake.local.services.daemon import LOOPBACK, Daemon, free_port
from support.secured_cassandra import Authority, write_pem

MODULE = "github.com/fsouza/fake-gcs-server@v1.56.1"
BUCKET = "lake"
GOOGLE = "storage.googleapis.com"
_PASSWORD = "store-of-a-test"
_HOP = {"connection", "transfer-encoding", "content-length", "host", "accept-encoding"}
_DECODED = _HOP | {"content-encoding"}
_TOKEN = json.dumps({"access_token": "a-token", "expires_in": 3600, "token_type": "Bearer"}).encode()


class _Proxy(BaseHTTPRequestHandler):
    """A connection of Java's: CONNECT, then TLS, then requests for the server; or one for a token."""

    protocol_version = "HTTP/1.1"
    timeout = 120
    server: ProxyServer

    def do_CONNECT(self):
        if self.path != f"{GOOGLE}:443":
            self.send_error(403)
            return
        self.send_response(200)
        self.end_headers()
        self.connection = self.server.tls.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        self.close_connection = False

    def pass_on(self):
        body = self._body()
        if self.path == "/token":
            self._answer(200, {"content-type": "application/json"}, _TOKEN)
            return
        self.server.authorized.add(self.headers.get("authorization"))
        kept = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        # Google's server takes the two slashes of the client's batches, the other one does not.
        path = re.sub("^//", "/", self.path)
        if "/moveTo/o/" in path:
            given = self._moved(path)
        else:
            given = self.server.client.request(self.command, path, headers=kept, content=body)
        own = {name: value for name, value in given.headers.items() if name not in _DECODED}
        content = given.content
        if given.status_code == 404 and path.startswith("/download/"):
            # Google names what is not there, and Airflow looks for these words.
            content = f"No such object: {unquote(path.partition('/b/')[2].partition('?')[0])}".encode()
        self._answer(given.status_code, own, content)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on  # noqa: N815

    def _moved(self, path):
        """Copy and delete, as the server knows no move."""
        source, target = path.partition("?")[0].split("/moveTo/o/")
        copy = f"{source}/rewriteTo/b/{BUCKET}/o/{target}"
        given = self.server.client.post(copy, json={})
        if given.is_success:
            self.server.client.delete(source).raise_for_status()
            return httpx.Response(200, json=given.json()["resource"])
        return given

    def _body(self):
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, status, headers, content):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_):
        """Print nothing."""


class ProxyServer(ThreadingHTTPServer):
    """The proxy; ``authorized`` has the credentials that requests came with."""

    daemon_threads = True

    def __init__(self, upstream: str, tls: ssl.SSLContext) -> None:
        super().__init__((LOOPBACK, 0), _Proxy)
        self.client = httpx.Client(base_url=upstream, timeout=60)
        self.tls = tls
        self.authorized: set[str | None] = set()

    def handle_error(self, request, client_address) -> None:
        """Java closes connections as it likes."""


@contextmanager
def gcs_server(folder: Path) -> Iterator[tuple[dict[str, str], ProxyServer]]:
    """The variables by which everybody finds the server, which has one bucket, and the proxy."""
    binary = LIBRARY / f"fake-gcs-server-{MODULE.rpartition('@')[2]}"
    if not binary.is_file():
        golang.install(MODULE, binary, "the GCS server")
    (folder / "buckets" / BUCKET).mkdir(parents=True)
    port = free_port()
    address = f"http://{LOOPBACK}:{port}"
    command = [str(binary), "-scheme", "http", "-host", LOOPBACK, "-port", str(port), "-log-level", "warn"]
    command += ["-filesystem-root", str(folder / "buckets"), "-external-url", address]

    def healthy() -> bool:
        try:
            return httpx.get(f"{address}/storage/v1/b", timeout=2).is_success
        except httpx.HTTPError:
            return False

    authority = Authority("google")
    chain, key = write_pem(folder, "google", *authority.issue(GOOGLE, GOOGLE))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(chain, key)
    server, proxy = Daemon("gcs", folder), ProxyServer(address, tls)
    server.start(command, port, healthy, 30)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield _variables(folder, address, proxy, authority), proxy
    finally:
        proxy.shutdown()
        with suppress(OSError):
            proxy.server_close()
        server.stop()


def _variables(folder, address, proxy, authority):
    trusted = pkcs12.serialize_java_truststore(
        [pkcs12.PKCS12Certificate(authority.certificate, None)], BestAvailableEncryption(_PASSWORD.encode())
    )
    (folder / "trust.p12").write_bytes(trusted)
    private = rsa.generate_private_key(65537, 2048)
    account = {
        "type": "service_account",
        "project_id": "a-project",
        "client_email": "writer@a-project.iam.gserviceaccount.com",
        "client_id": "1",
        "private_key_id": "1",
        "private_key": private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        "token_uri": f"http://{LOOPBACK}:{proxy.server_port}/token",
    }
    (folder / "key.json").write_text(json.dumps(account))
    java = {
        "https.proxyHost": LOOPBACK,
        "https.proxyPort": proxy.server_port,
        "javax.net.ssl.trustStore": folder / "trust.p12",
        "javax.net.ssl.trustStorePassword": _PASSWORD,
    }
    return {
        "STORAGE_EMULATOR_HOST": address,
        "GOOGLE_APPLICATION_CREDENTIALS": str(folder / "key.json"),
        "JDK_JAVA_OPTIONS": " ".join(f"-D{name}={value}" for name, value in java.items()),
    }
