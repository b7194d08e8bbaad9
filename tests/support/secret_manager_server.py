"""Google's Secret Manager on this machine, as far as a secret is read: gRPC with TLS behind a proxy.

Google's client talks to ``secretmanager.googleapis.com`` whatever it is told. It goes through the proxy that
``grpc_proxy`` names, which leads to a server whose certificate only the test's authority has signed.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

import grpc
from google.cloud.secretmanager_v1.types import AccessSecretVersionRequest, AccessSecretVersionResponse

from permalake.local.services.daemon import LOOPBACK
from support.secured_cassandra import Authority, write_pem

HOST = "secretmanager.googleapis.com"


class _Proxy(StreamRequestHandler):
    """CONNECT to Secret Manager, then bytes both ways."""

    server: _ProxyServer

    def handle(self):
        asked = self.rfile.readline().split()
        while self.rfile.readline().strip():
            pass
        if asked[:2] != [b"CONNECT", f"{HOST}:443".encode()]:
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            return
        with socket.create_connection((LOOPBACK, self.server.behind)) as behind:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=_copy, args=(behind, self.connection), daemon=True)
            back.start()
            _copy(self.connection, behind)
            back.join(10)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(65_536):
            target.sendall(part)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class _ProxyServer(ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, behind: int) -> None:
        super().__init__((LOOPBACK, 0), _Proxy)
        self.behind = behind


class _Secrets(grpc.GenericRpcHandler):
    """``projects/P/secrets/S/versions/latest``, for whoever shows a token."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = secrets

    def service(self, details):
        if details.method != "/google.cloud.secretmanager.v1.SecretManagerService/AccessSecretVersion":
            return None
        return grpc.unary_unary_rpc_method_handler(
            self._access,
            request_deserializer=AccessSecretVersionRequest.deserialize,
            response_serializer=AccessSecretVersionResponse.serialize,
        )

    def _access(self, request, context):
        sent = dict(context.invocation_metadata())
        if not sent.get("authorization", "").startswith("Bearer "):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no token")
        name = request.name.removesuffix("/versions/latest").replace("/secrets/", "/").split("/", 1)[1]
        if name not in self._secrets:
            context.abort(grpc.StatusCode.NOT_FOUND, f"Secret [{request.name}] not found")
        return AccessSecretVersionResponse(
            name=request.name, payload={"data": self._secrets[name].encode("utf-8")}
        )


@contextmanager
def secret_manager(folder: Path, secrets: Mapping[str, str], account: dict) -> Iterator[dict[str, str]]:
    """The variables by which Google's client finds the server, and the account that asks.

    ``secrets`` has the values by ``PROJECT/NAME``.
    """
    authority = Authority("google")
    chain, key = write_pem(folder, "secrets", *authority.issue(HOST, HOST))
    server = grpc.server(ThreadPoolExecutor(2), handlers=[_Secrets(secrets)])
    tls = grpc.ssl_server_credentials([(key.read_bytes(), chain.read_bytes())])
    port = server.add_secure_port(f"{LOOPBACK}:0", tls)
    server.start()
    proxy = _ProxyServer(port)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    (folder / "machine.json").write_text(json.dumps(account))
    try:
        yield {
            "grpc_proxy": f"http://{LOOPBACK}:{proxy.server_address[1]}",
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(authority.pem(folder / "roots.pem")),
            "GOOGLE_APPLICATION_CREDENTIALS": str(folder / "machine.json"),
        }
    finally:
        proxy.shutdown()
        proxy.server_close()
        server.stop(None)
