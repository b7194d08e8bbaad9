"""The stream of a spy: nothing is lost while it lasts, and a time without it is a gap."""

from __future__ import annotations

import os
import time

import pytest

from permalake.errors import PermalakeError
from permalake.wormhole.sources import spy
from permalake.wormhole.sources.spy import SpyStream
from support.spy_server import SpyServer, response

VAAS = [os.urandom(size) for size in (0, 1, 127, 128, 1_000, 300_000)]


def test_a_response_is_read_and_another_message_refused() -> None:
    for raw in VAAS:
        assert spy._vaa_bytes(response(raw)) == raw
    for broken in (response(b"abc")[:-1], b"\x0a", b"\xff" * 12, b"\x0b", b"<html>"):
        with pytest.raises(ValueError, match="none of its service"):
            spy._vaa_bytes(broken)


def until_heard(stream, count):
    ends = time.monotonic() + 60
    while len(found := stream.heard(count)) < count:
        assert time.monotonic() < ends
        time.sleep(0.01)
    return [one.raw for one in found]


def test_vaas_wait_until_they_are_dropped_and_a_reset_is_survived(monkeypatch) -> None:
    monkeypatch.setattr(spy, "_PAUSES", (0.5,))
    monkeypatch.setattr(spy, "_MOST_WAITING", 2)
    now = iter(range(0, 100_000, 10))
    with SpyServer() as server:
        stream = SpyStream(server.address, clock=lambda: next(now))
        server.wait(1)
        server.say(VAAS)
        assert until_heard(stream, 2) == VAAS[:2]
        assert until_heard(stream, 2) == VAAS[:2], "they wait until they are kept"
        assert stream.gaps() == []
        for at in range(2, len(VAAS), 2):
            stream.drop(2)
            assert until_heard(stream, 2) == VAAS[at : at + 2]
        stream.drop(2)
        server.reset()
        time.sleep(0.1)
        assert stream.heard(1) == [], "a stream that is just being opened again is no fault"
        server.wait(2)
        server.say(VAAS[4:5])
        assert until_heard(stream, 1) == VAAS[4:5]
        [(first, last)] = stream.gaps()
        assert first == 10 * len(VAAS), "since the last that was heard"
        assert last == first + 10
        stream.close()


def test_a_spy_that_is_away_is_named_and_found_again(monkeypatch) -> None:
    monkeypatch.setattr(spy, "_PAUSES", (0.05,))
    monkeypatch.setattr(spy, "_CONNECT_SECONDS", 1.0)
    with SpyServer() as server:
        port, address = server.port, server.address
    stream = SpyStream(address, until=1_000.5)
    reason = "(UNAVAILABLE: |no connection within)"
    with pytest.raises(
        PermalakeError, match=rf"live\.spy: {address}: {reason}.*see whether the spy runs there"
    ):
        stream.heard(1)
    with SpyServer(port) as server:
        server.wait(1)
        server.say(VAAS[:1])
        assert until_heard_again(stream) == VAAS[0]
        [(first, last)] = stream.gaps()
        assert first == 1_000
        assert abs(last - time.time()) < 120
        stream.close()


def until_heard_again(stream):
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        try:
            if found := stream.heard(1):
                return found[0].raw
        except PermalakeError:
            time.sleep(0.05)
    raise AssertionError("not heard again")
