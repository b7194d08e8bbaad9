"""A server on this machine that sends prepared bytes: for responses that no proper server makes."""

from __future__ import annotations

import socket
import threading
import time


class RawServer:
    """Answers each request with the next of ``responses``: bytes, or (pieces, seconds between them)."""

    def __init__(self, *responses):
        self.responses = list(responses)
        self.requests = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listening.close()

    def _serve(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        with connection:
            try:
                self.requests.append(connection.recv(65536))
                response = self.responses[min(len(self.requests), len(self.responses)) - 1]
                pieces, pause = response if isinstance(response, tuple) else ([response], 0)
                for piece in pieces:
                    connection.sendall(piece)
                    time.sleep(pause)
            except OSError:
                pass  # the client hung up


def response(body, *headers, status="200 OK"):
    """A whole HTTP response that ends with the connection."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
