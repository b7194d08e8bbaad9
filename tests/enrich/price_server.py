"""A price service on this machine that keeps to the real ones' routes and misbehaves on a seeded schedule."""

from __future__ import annotations

import email.utils
import json
import random
import socket
import struct
import threading
import time
from bisect import bisect_left
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

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


class PriceServer:
    """``history``: coin -> [(unix seconds, price text)] in order. Each request fails with the chance
    ``faulty``; ``down`` makes all of them fail. ``calls`` holds (arrival, path, query, headers, fault)."""

    def __init__(self, history, faulty=0.0, seed=0, batches=True):
        self.history = history
        self.faulty = faulty
        self.down = None
        self.batches = batches
        self.calls = []
        self.answered = []
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

    def _fault(self):
        with self._lock:
            if self.down:
                return self.down
            return self._random.choice(FAULTS) if self._random.random() < self.faulty else None

    def answer(self, path, query):
        """Status and document, as the real services give them."""
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[0] == "coins" and parts[-2:] == ["market_chart", "range"]:
            coin = parts[1] if len(parts) == 4 else f"{parts[1]}/{parts[3]}"
            return self._range(coin, float(query["from"][0]), float(query["to"][0]))
        width = _seconds(query.get("searchWidth", ["6h"])[0])
        if parts[0] == "batchHistorical" and self.batches:
            coins = json.loads(query["coins"][0])
            return 200, {
                "coins": {
                    coin: found for coin, at in coins.items() if (found := self._batch(coin, at, width))
                }
            }
        if parts[:2] == ["prices", "historical"]:
            found = {coin: self._nearest(coin, int(parts[2]), width) for coin in parts[3].split(",")}
            return 200, {"coins": {coin: record for coin, record in found.items() if record}}
        return 404, {"message": "Not Found"}

    def _range(self, coin, start, end):
        if coin not in self.history:
            return 404, {"error": "coin not found"}
        inside = [(at, price) for at, price in self.history[coin] if start <= at <= end]
        prices = [[at * 1000, Number(price)] for at, price in inside]
        return 200, {"prices": prices, "market_caps": [], "total_volumes": []}

    def _nearest(self, coin, moment, width):
        known = [one for one in self.history.get(coin, []) if abs(one[0] - moment) <= width]
        if not known:
            return None
        at, price = min(known, key=lambda one: abs(one[0] - moment))
        return {"timestamp": at, "price": Number(price), "confidence": 0.99, "symbol": "X", "decimals": 8}

    def _batch(self, coin, moments, width):
        found = [record for moment in moments if (record := self._nearest(coin, moment, width))]
        prices = [{name: one[name] for name in ("timestamp", "price", "confidence")} for one in found]
        return {"symbol": "X", "prices": prices} if prices else None

    def _handler(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                arrived = time.monotonic()
                parts = urlsplit(self.path)
                fault = server._fault()
                server.calls.append((arrived, parts.path, parse_qs(parts.query), dict(self.headers), fault))
                status, document = server.answer(parts.path, parse_qs(parts.query))
                body = spelled(document)
                if fault is None:
                    server.answered.append(self.path)
                    self._send(status, body)
                else:
                    self._misbehave(fault, body)

            def _misbehave(self, fault, body):
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
                    time.sleep(0.6)
                    self._send(200, body)
                elif fault == "truncated":
                    self._send(200, body[: len(body) // 2], length=len(body))
                elif fault == "garbage":
                    self._send(200, body[: len(body) // 2])
                elif fault == "other json":
                    self._send(200, b'{"prices": 7, "coins": [1]}')
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


class Number(float):
    """A number that is written as it was given, with all its digits."""

    def __new__(cls, text):
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __repr__(self):
        return self.text


def spelled(document):
    """The document as JSON, numbers in their own digits; ready-made text as it is."""
    if isinstance(document, str) and document[:1] in {"<", "{"}:
        return document.encode()
    if isinstance(document, Number):
        return document.text.encode()
    if isinstance(document, dict):
        return b"{" + b",".join(spelled(k) + b":" + spelled(v) for k, v in document.items()) + b"}"
    if isinstance(document, list):
        return b"[" + b",".join(map(spelled, document)) + b"]"
    return json.dumps(document).encode()


def _seconds(width):
    return int(width[:-1]) * {"h": 3600, "m": 60}[width[-1]]
