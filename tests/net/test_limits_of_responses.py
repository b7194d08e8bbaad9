"""Responses that would take all memory or all time are failed responses."""

from __future__ import annotations

import gzip
import itertools
import json
import struct
import time
import tracemalloc
from dataclasses import replace
from decimal import Decimal
from random import Random

import pytest

from permalake.net import shared_pace
from permalake.net.http import Probe, RequestRejectedError, RetryPolicy, Service, UnavailableError
from permalake.net.refusals import Refusals
from permalake.net.responses import Body, decoded, document
from permalake.net.shared_pace import CrossProcessRateLimiter
from support.raw_server import RawServer, response

ONCE = RetryPolicy(read=1.0, whole=1.0, attempts=1, back_off=0.01, failures=3, rest=30, largest_answer=2**20)
GOOD = response(b'{"value": 1.5}')


def ask(*responses, retry_policy=ONCE, shape=lambda found: found["value"]):
    with RawServer(*responses) as server, Service("mine", server.url, 1000, None, retry_policy) as service:
        try:
            return service.get("/", shape)
        finally:
            ask.requests = len(server.requests)  # type: ignore[attr-defined]


class TestSize:
    BOMB = gzip.compress(bytes(64 * 2**20))

    @pytest.mark.parametrize(
        ("body", "encoding", "reason"),
        [
            (BOMB, "gzip", "more than 1048576 bytes"),
            (gzip.compress(BOMB), "gzip, gzip", "a coding that was not asked for"),
            (b"{}", "br", "a coding that was not asked for"),
            (gzip.compress(b'{"value": 1}')[:-3], "gzip", "the answer broke off"),
            (b"no gzip", "gzip", "does not decompress"),
        ],
        # The time in a gzip header would name the cases differently in each process.
        ids=["bomb", "twice", "unknown", "cut", "broken"],
    )
    def test_a_body_is_decoded_within_its_limit(self, body, encoding, reason) -> None:
        tracemalloc.start()
        with pytest.raises(UnavailableError, match=reason):
            ask(response(body, f"Content-Encoding: {encoding}"))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 8 * 2**20

    @pytest.mark.parametrize("element", [b"{}", b"[]", b"0", b'{"a":1}', b'""'])
    def test_many_small_elements_are_refused_before_they_take_memory(self, element) -> None:
        """Of ``{}`` a document takes thirty times its size."""
        many = b"[" + element + (b"," + element) * 1_000_000 + b"]"
        answer = Body(many, "application/json")
        tracemalloc.start()
        with pytest.raises(ValueError, match="more than 1000000 elements"):
            document(answer)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2**20
        with pytest.raises(UnavailableError, match="more than 1000000 elements"):
            ask(response(many), retry_policy=replace(ONCE, read=10, whole=10, largest_answer=2**24))

    def test_the_ids_of_the_largest_milestone_are_read(self) -> None:
        ids = [f"0x{number:068x}" for number in range(400_000)]
        assert document(Body(json.dumps({"createdOutputs": ids}).encode(), "application/json")) == {
            "createdOutputs": ids
        }

    def test_a_compressed_body_is_read(self) -> None:
        body = gzip.compress(b'{"value": 1.5}')
        assert ask(response(body, "Content-Encoding: gzip")) == Decimal("1.5")


class TestTime:
    @pytest.mark.parametrize("part", ["headers", "body"])
    def test_a_dripping_server_is_cut_off(self, part) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n"
        begin = [head] if part == "headers" else [head + b"\r\n"]
        endless = (itertools.chain(begin, itertools.repeat(b"a", 400)), 0.05)
        begun = time.monotonic()
        with pytest.raises(UnavailableError, match="no answer in time"):
            ask(endless)
        assert time.monotonic() - begun < 15, "dripping takes 20 s"

    def test_the_next_request_has_its_own_time(self) -> None:
        with RawServer(GOOD) as server, Service("mine", server.url, 1000, None, ONCE) as service:
            for _ in range(3):
                assert service.get("/", lambda found: found["value"]) == Decimal("1.5")
                time.sleep(0.5)


class TestNumbers:
    @pytest.mark.parametrize(
        "text", ["1e1000000", "1E+99999999999", "-1e-1000000", "9" * 101, "0." + "1" * 200]
    )
    def test_a_number_beyond_all_bounds_is_no_document(self, text) -> None:
        with pytest.raises(UnavailableError, match=r"number|digits"):
            ask(response(f'{{"value": {text}}}'.encode()))

    @pytest.mark.parametrize("text", [str(2**256 - 1), "1.000000000000000001", "1e-30", "0e999999"])
    def test_real_numbers_are_exact(self, text) -> None:
        assert ask(response(f'{{"value": {text}}}'.encode())) == Decimal(text)


class TestMalformed:
    @pytest.mark.parametrize(
        "shape",
        [
            lambda found: found["nothing"],
            lambda found: found.missing,
            lambda found: struct.unpack(">I", b""),
            lambda found: found[0],
            lambda found: int("x"),
            lambda found: 1 // 0,
        ],
    )
    def test_a_document_of_the_wrong_form_is_retried(self, shape) -> None:
        twice = RetryPolicy(read=1.0, attempts=2, back_off=0.01)
        with pytest.raises(UnavailableError, match="of the wrong form"):
            ask(GOOD, retry_policy=twice, shape=shape)
        assert ask.requests == 2  # type: ignore[attr-defined]

    def test_any_bytes_are_a_document_or_no_document(self) -> None:
        rng = Random(7)
        sound = json.dumps({"value": [1, 2.5, None, {"a": "b"}], "other": "text"}).encode()
        outcomes = {True: 0, False: 0}
        for _ in range(10_000):
            content = bytearray(sound)
            for _ in range(rng.randrange(1, 4)):
                content[rng.randrange(len(content))] = rng.randrange(256)
            try:
                document(Body(bytes(content), ""))
                outcomes[True] += 1
            except ValueError:
                outcomes[False] += 1
        assert min(outcomes.values()) > 100

    def test_any_compressed_bytes_decode_or_are_refused(self) -> None:
        rng = Random(8)
        sound = gzip.compress(json.dumps({str(n): n for n in range(50)}).encode())
        outcomes = {True: 0, False: 0}
        for number in range(10_000):
            content = bytearray(sound)
            if number % 2:
                content[rng.randrange(len(content))] = rng.randrange(256)
            else:
                content = content[: rng.randrange(len(content) + 1)]
            try:
                b"".join(decoded([bytes(content)], "gzip", 2**16))
                outcomes[True] += 1
            except ValueError:
                outcomes[False] += 1
        assert outcomes[True] > 20
        assert outcomes[False] > 5000


class TestProbe:
    FAILED = response(b"{}", status="500 Oops")

    def ask_twice_as_often_as_allowed(self, *responses):
        with RawServer(*responses) as server:
            probed = Service("mine", server.url, 1000, None, ONCE, probe=Probe("/health"))
            with probed as service:
                for _ in range(6):
                    with pytest.raises(UnavailableError):
                        service.get("/bad", lambda found: found["value"])
                return service.is_down

    def test_a_request_that_always_fails_does_not_close_the_service(self) -> None:
        answers = [self.FAILED, GOOD] * 6
        assert not self.ask_twice_as_often_as_allowed(*answers)

    def test_a_rejected_probe_is_an_answer_too(self) -> None:
        answers = [self.FAILED, response(b"{}", status="404 None")] * 6
        assert not self.ask_twice_as_often_as_allowed(*answers)

    def test_a_service_that_fails_its_probe_is_down(self) -> None:
        assert self.ask_twice_as_often_as_allowed(self.FAILED)


def test_a_name_of_a_service_is_all_that_its_repr_tells() -> None:
    service = Service("mine", "https://node.example.org/hush-key", 1, {"x-key": "hush"})
    assert "hush" not in repr(service)
    service.close()


def test_a_rejection_keeps_its_reason() -> None:
    with pytest.raises(RequestRejectedError) as caught:
        ask(response(b'{"error": "no"}', status="404 Not Found"))
    assert caught.value.body == {"error": "no"}


class TestSharedBetweenProcesses:
    def test_a_pause_holds_for_every_process(self, tmp_path) -> None:
        first, second = (CrossProcessRateLimiter("https://node.example.org", tmp_path) for _ in range(2))
        first.wait(0.01)
        begun = time.monotonic()
        first.hold(2)
        second.wait(0.01)
        held = time.monotonic()
        assert held - begun > 1.8
        second.wait(0.01)
        assert time.monotonic() - held < 1.8, "it pauses once"

    def test_machines_that_share_a_folder_do_not_compare_their_clocks(self, tmp_path, monkeypatch) -> None:
        paces = []
        for machine in ("one", "other"):
            boot_id = tmp_path / machine
            boot_id.write_text(machine)
            monkeypatch.setattr(shared_pace, "_BOOT_ID", boot_id)
            paces.append(CrossProcessRateLimiter("https://node.example.org", tmp_path / "paces"))
        begun = time.monotonic()
        paces[0].hold(10)
        paces[1].wait(0.01)
        assert time.monotonic() - begun < 5

    def test_a_clock_that_began_anew_waits_for_no_old_note(self, tmp_path, monkeypatch) -> None:
        monkeypatch.setattr(shared_pace, "_BOOT_ID", tmp_path / "no such file")
        pace = CrossProcessRateLimiter("https://node.example.org", tmp_path / "paces")
        with monkeypatch.context() as earlier:
            earlier.setattr(shared_pace.time, "monotonic", lambda: 1e9)
            pace.wait(0.01)
        begun = time.monotonic()
        pace.wait(0.01)
        assert time.monotonic() - begun < 5

    def test_refusals_are_shared_per_account_and_forgotten(self, tmp_path) -> None:
        now = [1000.0]

        def refusals(account):
            return Refusals("https://node.example.org", account, tmp_path, lambda: now[0])

        refusals("key").note({"coin a": "unlisted", "coin b": "unlisted"}, 60)
        refusals("key").note({"coin c": "forbidden"}, 600)
        refusals("key").forget(["coin b"])
        asked = ["coin a", "coin b", "coin c", "coin d"]
        assert refusals("key").refused(asked) == {"coin a": "unlisted", "coin c": "forbidden"}
        assert refusals("other").refused(asked) == {}
        now[0] += 61
        assert refusals("key").refused(asked) == {"coin c": "forbidden"}
        assert "key" not in "".join(path.name for path in tmp_path.iterdir())

    def test_a_damaged_file_of_refusals_is_empty(self, tmp_path) -> None:
        refusals = Refusals("https://node.example.org", "", tmp_path)
        refusals.note({"coin": "unlisted"}, 60)
        (file,) = tmp_path.iterdir()
        file.write_text('{"coin": [')
        assert refusals.refused(["coin"]) == {}
