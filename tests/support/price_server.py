"""A price service on this machine that keeps to the real ones' routes and misbehaves on a seeded schedule."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, unquote, urlsplit

from support.faulty_server import FAULTS, FaultyServer, busiest

__all__ = ["FAULTS", "PriceServer"]


class PriceServer(FaultyServer):
    """``history``: coin -> [(unix seconds, price text)] in order. ``calls`` holds (arrival, path, query,
    headers, fault)."""

    def __init__(self, history, faulty=0.0, seed=0, batches=True):
        super().__init__(faulty, seed)
        self.history = history
        self.batches = batches
        self.calls = []
        self.answered = []

    def busiest(self, seconds=1.0):
        """The most requests that arrived within any stretch of so many seconds."""
        return busiest((call[0] for call in self.calls), seconds)

    def respond(self, handler, body, fault):
        parts = urlsplit(handler.path)
        query = parse_qs(parts.query)
        self.calls.append((handler.arrived, parts.path, query, dict(handler.headers), fault))
        status, document = self.answer(parts.path, query)
        if fault is None:
            self.answered.append(handler.path)
        return status, spelled(document)

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
        if parts[:2] == ["prices", "first"]:
            firsts = {coin: self.history[coin][0] for coin in parts[2].split(",") if coin in self.history}
            return 200, {
                "coins": {
                    coin: {"symbol": "X", "price": Number(price), "timestamp": at}
                    for coin, (at, price) in firsts.items()
                }
            }
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


class Number(float):
    """A number that is written as it was given, with all its digits."""

    text: str

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
