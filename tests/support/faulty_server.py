"""An HTTP server on this machine that misbehaves on a seeded schedule."""

from __future__ import annotations

import email.utils
import random
import socket
import struct
import threading
import time
from bisect import bisect_left
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULTS = (
    "429",
    "429 0",
    "429 date",
    "500",
    "503",
    "reset",
    "slow",
    "truncated",
    "garbage",
    "other json",
    "html",
)

OTHER_JSON = b'{"prices": 7, "coins": [1], "data": 7, "operations": [1], "vaaBytes": {}}'


class _Server(ThreadingHTTPServer):
    # Beyond the usual five, a client that connects is made to wait a second.
    request_queue_size = 128


class FaultyServer:
    """Subclasses answer. Each request fails with the chance ``faulty``; ``down`` makes all of them fail in
    one way."""

    faults = FAULTS
    slow = 0.6
    """Seconds that a slow answer takes; longer than clients wait."""
    delay = 0.0
    """Seconds before each answer."""

    def __init__(self, faulty=0.0, seed=0):
        self.faulty = faulty
        self.down = None
        self.most_at_once = self._in_flight = 0
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # resets of our own
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self):
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def chance(self, share):
        """Whether something happens that has this chance."""
        with self._lock:
            return self._random.random() < share

    def fault(self, path):
        """What goes wrong with a request; None when nothing does."""
        with self._lock:
            if self.down:
                return self.down
            return self._random.choice(self.faults) if self._random.random() < self.faulty else None

    def respond(self, handler, body, fault):
        """Status and bytes of the answer, and its media type unless it is JSON; sent whole unless ``fault``
        is something."""
        raise NotImplementedError

    def _handler(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self):
                self._serve(b"")

            def do_POST(self):
                self._serve(self.rfile.read(int(self.headers["Content-Length"])))

            def _serve(self, request):
                with server._lock:
                    server._in_flight += 1
                    server.most_at_once = max(server.most_at_once, server._in_flight)
                try:
                    self._answer(request)
                finally:
                    with server._lock:
                        server._in_flight -= 1

            def _answer(self, request):
                self.arrived = time.monotonic()
                time.sleep(server.delay)
                fault = server.fault(self.path)
                status, body, *media = server.respond(self, request, fault)
                self.media = media[0] if media else "application/json"
                if fault is None:
                    self._send(status, body)
                else:
                    self._misbehave(fault, status, body)

            def _misbehave(self, fault, status, body):
                code, _, until = fault.partition(" ")
                if until == "date":
                    until = email.utils.formatdate(time.time() + 1, usegmt=True)
                if code.isdigit():
                    self._send(int(code), b'{"status": {}}', {"Retry-After": until} if until else None)
                elif fault == "reset":
                    linger = struct.pack("ii", 1, 0)
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    self.close_connection = True
                elif fault == "slow":
                    time.sleep(server.slow)
                    self._send(status, body)
                elif fault == "truncated":
                    self._send(status, body[: len(body) // 2], length=len(body))
                elif fault == "garbage":
                    self._send(status, body[: len(body) // 2])
                elif fault == "other json":
                    self._send(200, OTHER_JSON)
                else:
                    self._send(200, b"<html>maintenance</html>")

            def _send(self, status, body, headers=None, length=None):
                try:
                    self.send_response(status)
                    for name, value in (headers or {}).items():
                        self.send_header(name, value)
                    self.send_header("Content-Type", self.media)
                    self.send_header("Content-Length", str(len(body) if length is None else length))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # the client did not wait
                self.close_connection = self.close_connection or length is not None

            def log_message(self, *_):
                """Quiet."""

        return Handler


def busiest(arrivals, seconds=1.0):
    """The most that arrived within any stretch of so many seconds."""
    times = sorted(arrivals)
    return max((bisect_left(times, at + seconds) - number for number, at in enumerate(times)), default=0)
