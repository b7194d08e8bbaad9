"""Wormholescan's REST API and a guardian's on this machine, with the real routes, shapes, orders and limits,
and faults on a seeded schedule."""

from __future__ import annotations

import base64
import datetime as dt
import json
import random
import socket
import struct
import threading
import time
from bisect import bisect_left
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

FAULTS = ("429 1", "429", "500", "503", "reset", "slow", "truncated", "garbage", "other json", "html")
_NOT_FOUND = {"code": 5, "message": "requested VAA not found in store", "details": []}


class ExplorerServer:
    """``vaas`` and ``operations``: documents as they are served; ``copies``: identity -> its duplicates;
    ``signed``: identity -> bytes that a guardian knows. ``calls`` holds (arrival, path, query, fault)."""

    def __init__(self, vaas=(), operations=(), signed=None, faulty=0.0, seed=0):
        self.vaas = list(vaas)
        self.operations = list(operations)
        self.signed = dict(signed or {})
        self.copies = {}
        self.faulty = faulty
        self.down = None
        self.largest = {"vaas": 1000, "operations": 100}
        self.deepest = 10**9
        self.calls = []
        self.before = lambda path, query: None
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self):
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def busiest(self, seconds=1.0):
        """The most requests that arrived within any stretch of so many seconds."""
        times = sorted(call[0] for call in self.calls)
        return max(bisect_left(times, at + seconds) - number for number, at in enumerate(times))

    def asked(self, route):
        return [call for call in self.calls if call[1].startswith(route)]

    def _fault(self):
        with self._lock:
            if self.down:
                return self.down
            return self._random.choice(FAULTS) if self._random.random() < self.faulty else None

    def answer(self, path, query):
        parts = path.strip("/").split("/")
        match parts:
            case ["api", "v1", "vaas", *emitter] if len(emitter) in {0, 2}:
                found = [one for one in self.vaas if one["id"].split("/")[: len(emitter)] == emitter]
                return self._page("vaas", found, query, lambda one: one["timestamp"], "data")
            case ["api", "v1", "vaas", chain, emitter, sequence, "duplicated"]:
                return 200, {"data": self.copies.get(f"{chain}/{emitter}/{sequence}")}
            case ["api", "v1", "operations"]:
                start, end = (query.get(name, [None])[0] for name in ("from", "to"))
                found = [one for one in self.operations if _inside(_operation_time(one), start, end)]
                return self._page("operations", found, query, _operation_time, "operations")
            case ["v1", "signed_vaa", *identity] if len(identity) == 3:
                raw = self.signed.get("/".join(identity))
                return (200, {"vaaBytes": base64.b64encode(raw).decode()}) if raw else (404, _NOT_FOUND)
        return 404, {"code": 404, "message": f"Cannot GET {path}"}

    def _page(self, kind, found, query, time_of, field):
        number, size = (int(query.get(name, [value])[0]) for name, value in (("page", 0), ("pageSize", 50)))
        if size > self.largest[kind]:
            return 400, {
                "code": 3,
                "message": f"pageSize cannot be greater than {self.largest[kind]}",
                "details": [],
            }
        if number * size > self.deepest:
            return 400, {"code": 3, "message": "too deep", "details": []}
        newest_first = query.get("sortOrder", ["DESC"])[0].upper() == "DESC"
        ordered = sorted(found, key=lambda one: _moment(time_of(one)), reverse=newest_first)
        return 200, {field: ordered[number * size : (number + 1) * size]}

    def _handler(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                arrived = time.monotonic()
                parts = urlsplit(self.path)
                query = parse_qs(parts.query)
                fault = server._fault()
                server.calls.append((arrived, parts.path, query, fault))
                server.before(parts.path, query)
                status, document = server.answer(parts.path, query)
                body = json.dumps(document).encode()
                if fault is None:
                    self._send(status, body)
                else:
                    self._misbehave(fault, body)

            def _misbehave(self, fault, body):
                code, _, pause = fault.partition(" ")
                if code.isdigit():
                    self._send(int(code), b"{}", {"Retry-After": pause} if pause else None)
                elif fault == "reset":
                    linger = struct.pack("ii", 1, 0)
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    self.close_connection = True
                elif fault == "slow":
                    time.sleep(0.6)
                    self._send(200, body)
                elif fault == "truncated":
                    self._send(200, body[: len(body) // 2], length=len(body))
                elif fault == "garbage":
                    self._send(200, body[: len(body) // 2])
                elif fault == "other json":
                    self._send(200, b'{"data": 7, "operations": [1], "vaaBytes": {}}')
                else:
                    self._send(200, b"<html>maintenance</html>")

            def _send(self, status, body, headers=None, length=None):
                try:
                    self.send_response(status)
                    for name, value in (headers or {}).items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(body) if length is None else length))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # the client did not wait
                self.close_connection = self.close_connection or length is not None

            def log_message(self, *_):
                """Quiet."""

        return Handler


def _moment(text):
    return dt.datetime.fromisoformat(text) if text else dt.datetime.min.replace(tzinfo=dt.UTC)


def _operation_time(document):
    return document.get("sourceChain", {}).get("timestamp")


def _inside(time, start, end):
    moment = _moment(time)
    return (start is None or moment >= _moment(start)) and (end is None or moment <= _moment(end))
