"""Wormholescan's REST API and a guardian's on this machine, with the real routes, shapes, orders and limits,
and faults on a seeded schedule."""

from __future__ import annotations

import base64
import datetime as dt
import json
from urllib.parse import parse_qs, urlsplit

from support.faulty_server import FaultyServer, busiest

_NOT_FOUND = {"code": 5, "message": "requested VAA not found in store", "details": []}


class ExplorerServer(FaultyServer):
    """Documents as they are served, and the calls.

    ``vaas``, ``operations``, ``observations`` (None: it has no such route); ``copies``: identity -> its
    duplicates; ``signed``: identity -> bytes that a guardian knows. ``calls`` holds (arrival, path, query,
    fault).
    """

    def __init__(self, vaas=(), operations=(), signed=None, faulty=0.0, seed=0, observations=None):
        self.vaas = list(vaas)
        self.operations = list(operations)
        self.observations = observations
        self.signed = dict(signed or {})
        self.copies = {}
        super().__init__(faulty, seed)
        self.largest = {"vaas": 1000, "operations": 100, "observations": 1000}
        self.deepest = 10**9
        self.counts = None  # day -> number of messages; None: it has no such route
        self.calls = []
        self.before = lambda path, query: None

    def busiest(self, seconds=1.0):
        """The most requests that arrived within any stretch of so many seconds."""
        return busiest((call[0] for call in self.calls), seconds)

    def asked(self, route):
        return [call for call in self.calls if call[1].startswith(route)]

    def respond(self, handler, _, fault):
        parts = urlsplit(handler.path)
        query = parse_qs(parts.query)
        self.calls.append((handler.arrived, parts.path, query, fault))
        self.before(parts.path, query)
        status, document = self.answer(parts.path, query)
        return status, json.dumps(document).encode()

    def answer(self, path, query):
        parts = path.strip("/").split("/")
        match parts:
            case ["api", "v1", "vaas", *emitter] if len(emitter) in {0, 2}:
                found = [one for one in self.vaas if one["id"].split("/")[: len(emitter)] == emitter]
                return self._page("vaas", found, query, lambda one: one["timestamp"], "data")
            case ["api", "v1", "vaas", *identity] if len(identity) == 3:
                known = [one for one in self.vaas if one["id"] == "/".join(identity)]
                return (200, {"data": known[0]}) if known else (404, _NOT_FOUND)
            case ["api", "v1", "x-chain-activity", "tops"] if self.counts is not None:
                start = query["from"][0]
                rows = [{"from": start, "emitter_chain": "2", "volume": 1, "count": self.counts(start[:10])}]
                return 200, rows
            case ["api", "v1", "vaas", chain, emitter, sequence, "duplicated"]:
                return 200, {"data": self.copies.get(f"{chain}/{emitter}/{sequence}")}
            case ["api", "v1", "operations"]:
                start, end = (query.get(name, [None])[0] for name in ("from", "to"))
                found = [one for one in self.operations if _inside(_operation_time(one), start, end)]
                return self._page("operations", found, query, _operation_time, "operations")
            case ["api", "v1", "observations", *message] if self.observations is not None:
                fields = ("emitterChain", "emitterAddr", "sequence")
                found = [
                    one
                    for one in self.observations
                    if all(str(one[name]) == part for name, part in zip(fields, message, strict=False))
                ]
                return self._page("observations", found, query, lambda one: one["indexedAt"], None)
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
        page = ordered[number * size : (number + 1) * size]
        return 200, page if field is None else {field: page}


def _moment(text):
    return dt.datetime.fromisoformat(text) if text else dt.datetime.min.replace(tzinfo=dt.UTC)


def _operation_time(document):
    return document.get("sourceChain", {}).get("timestamp")


def _inside(time, start, end):
    moment = _moment(time)
    return (start is None or moment >= _moment(start)) and (end is None or moment <= _moment(end))
