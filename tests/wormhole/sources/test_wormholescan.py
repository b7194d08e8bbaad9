"""The source `wormholescan`: what is landed of a service that pages, sorts, fails and grows as the real one
does."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.net import http
from permalake.wormhole.sources import wormholescan
from permalake.wormhole.sources.vaa_documents import body_time, days_of_document
from support import places
from support.explorer_server import ExplorerServer

WORLD = places.DATA / "synthetic" / "wormhole"
FIRST, SECOND, THIRD = (dt.date(2024, 3, day) for day in (10, 11, 12))
HASTY = http.RetryPolicy(read=0.3, whole=1.0, back_off=0.01, attempts=12, longest_pause=3)


@pytest.fixture(scope="module")
def world():
    """The synthetic world's documents as the API would list them."""
    documents = []
    for file in sorted((WORLD / "input").glob("vaas-*.jsonl.gz")):
        documents += [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    return documents


@pytest.fixture
def operations(world):
    return [operation_of(one) for one in world if one.get("txHash")]


def operation_of(document):
    return {
        "id": document["id"],
        "vaa": {"raw": document["vaa"], "guardianSetIndex": 100, "isDuplicated": False},
        "content": {"payload": {}, "standarizedProperties": {"appIds": ["PORTAL_TOKEN_BRIDGE"]}},
        "sourceChain": {
            "timestamp": document["timestamp"],
            "transaction": {"txHash": document["txHash"]},
            "from": f"sender of {document['id']}",
        },
    }


class Place:
    """A lake's landing, filled from a server."""

    def __init__(self, folder, server, rate=1000.0, patch=None):
        self.server = server
        self.settings = Settings(
            lake={"warehouse": str(folder)},
            wormhole={
                "source": "wormholescan",
                "url": server.url,
                "rate_per_second": rate,
                "reference": str(WORLD / "reference"),
            },
        )

    def fetch(self, start, end, **kwargs):
        return wormholescan.fetch(self.settings, self.settings.wormhole, start, end, **kwargs)

    def landed(self, kind, start=dt.date(1970, 1, 1), end=dt.date(2030, 1, 1)):
        paths = wormholescan.landing(self.settings, self.settings.wormhole).paths(kind, start, end)
        return [
            json.loads(line)
            for path in paths
            for line in gzip.decompress(Path(path).read_bytes()).splitlines()
        ]


@pytest.fixture(autouse=True)
def _hasty(monkeypatch):
    monkeypatch.setattr(http, "RetryPolicy", lambda: HASTY)


def vaas(documents):
    return sorted(one["vaa"] for one in documents)


def of_days(world, start, end):
    return [one for one in world if start <= days_of_document(one)[0] <= end or _undated(one)]


def _undated(document):
    return body_time(document["vaa"]) in {0, 1}


def test_a_faulty_service_is_read_whole_within_its_rate_and_never_twice(tmp_path, world, operations) -> None:
    with ExplorerServer(world, operations, faulty=0.3, seed=5) as server:
        server.largest = {"vaas": 50, "operations": 50}
        place = Place(tmp_path, server, rate=60)
        news = place.fetch(FIRST, THIRD)
        for day in (FIRST, SECOND, THIRD):
            assert news[day] == len({one["vaa"] for one in world if days_of_document(one)[1] == day})
        assert server.busiest() <= 60
        assert {call[3] for call in server.calls} > {None, "429"}
        assert set(vaas(of_days(world, FIRST, THIRD))) <= set(vaas(place.landed("vaas")))
        assert {one["id"] for one in place.landed("operations")} == {
            one["id"] for one in operations if "2024" in one["sourceChain"]["timestamp"]
        }
        calls = len(server.calls)
        for days in ((FIRST, THIRD), (SECOND, SECOND), (THIRD, THIRD)):
            assert not place.fetch(*days)
        assert len(server.calls) == calls


def test_days_with_news_are_noted_before_their_vaas_are_stored(tmp_path, world) -> None:
    """What is stored is no news any more: a late VAA of a fetch that failed afterwards was never noted."""

    def refuse(_days):
        raise PermalakeError("lake.catalog: locked")

    noted = set()
    with ExplorerServer(world) as server:
        place = Place(tmp_path, server)
        with pytest.raises(PermalakeError, match=r"lake\.catalog: locked"):
            place.fetch(FIRST, FIRST, note_news=refuse)
        assert place.landed("vaas") == []
        place.fetch(FIRST, FIRST, note_news=noted.update)
    assert FIRST in noted
    day = [one for one in world if days_of_document(one)[0] == FIRST]
    assert set(vaas(day)) <= set(vaas(place.landed("vaas")))


def test_a_day_in_the_middle_is_found_without_reading_all_newer_ones(tmp_path, world) -> None:
    with ExplorerServer(world) as server:
        server.largest["vaas"] = 10
        place = Place(tmp_path, server)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(wormholescan._SIZES, "vaas", (10,))
            place.fetch(FIRST, FIRST)
        day = [one for one in world if days_of_document(one)[0] == FIRST]
        assert set(vaas(day)) <= set(vaas(place.landed("vaas", FIRST, FIRST)))
        pages = {call[2]["page"][0] for call in server.asked("/api/v1/vaas") if "sortOrder" in call[2]}
        newer = sum(days_of_document(one)[0] > FIRST for one in world) // 10
        assert newer > 25
        assert len(pages) < len(world) / 10 - newer + 16


def test_a_run_that_broke_off_goes_on_where_it_was(tmp_path, world, monkeypatch) -> None:
    monkeypatch.setitem(wormholescan._SIZES, "vaas", (5,))
    monkeypatch.setattr(http, "RetryPolicy", lambda: replace(HASTY, attempts=3))
    with ExplorerServer(world) as server:
        place = Place(tmp_path, server)

        def fail_late(path, query):
            if len(server.calls) == 60:
                server.down = "500"

        server.before = fail_late
        with pytest.raises(PermalakeError, match=r"^wormholescan: HTTP 500; what it did answer is kept"):
            place.fetch(FIRST, THIRD)
        kept = place.landed("vaas")
        assert 150 < len(kept) < 300
        server.down, server.before = None, lambda path, query: None
        already = len(server.calls)
        place.fetch(FIRST, THIRD)
        assert set(vaas(of_days(world, FIRST, THIRD))) <= set(vaas(place.landed("vaas")))
        again = [call for call in server.calls[already:] if call[1] == "/api/v1/vaas"]
        assert len(again) < len(world) / 5 - 20


def test_what_was_indexed_late_is_news_of_its_day(tmp_path, world) -> None:
    late = next(one for one in world if days_of_document(one)[0] == SECOND and not _undated(one))
    with ExplorerServer([one for one in world if one is not late]) as server:
        place = Place(tmp_path, server)
        place.fetch(FIRST, SECOND)
        server.vaas.append(late)
        assert not place.fetch(SECOND, SECOND)
        news = place.fetch(THIRD, THIRD)
        assert news[SECOND] == 1
        assert news[FIRST] == 0
        assert late["vaa"] in vaas(place.landed("vaas", SECOND, SECOND))


def test_operations_are_asked_for_again_for_what_they_tell_later(tmp_path, world, operations) -> None:
    with ExplorerServer(world, operations, faulty=0.2, seed=6) as server:
        place = Place(tmp_path, server)
        place.fetch(FIRST, SECOND)
        known, calls = len(place.landed("operations")), len(server.calls)
        redeemed = next(one for one in operations if one["sourceChain"]["timestamp"].startswith(str(SECOND)))
        server.operations = [
            {**one, "targetChain": {"chainId": 2, "status": "completed"}} if one is redeemed else one
            for one in operations
        ]
        assert not wormholescan.fetch_operations(place.settings, place.settings.wormhole, SECOND, SECOND)
        assert {call[1] for call in server.calls[calls:]} == {"/api/v1/operations"}
        landed = place.landed("operations")
        assert len(landed) == known + 1
        told = [one for one in landed if one["id"] == redeemed["id"]]
        assert [one["targetChain"]["status"] for one in told if "targetChain" in one] == ["completed"]
        server.down = "503"
        with pytest.raises(PermalakeError, match=r"^wormholescan: HTTP 503; what it did answer is kept"):
            wormholescan.fetch_operations(place.settings, place.settings.wormhole, SECOND, SECOND)


def test_documents_that_arrive_while_pages_are_turned_hide_none(tmp_path, world, monkeypatch) -> None:
    monkeypatch.setitem(wormholescan._SIZES, "vaas", (20,))
    newest = max(world, key=lambda one: one["timestamp"])
    with ExplorerServer(world) as server:

        def arrive(path, query):
            if path.endswith("/vaas"):
                server.vaas += [
                    dict(newest, timestamp=f"2024-03-13T{len(server.calls) % 24:02}:00:0{number}Z")
                    for number in range(3)
                ]

        server.before = arrive
        place = Place(tmp_path, server)
        place.fetch(FIRST, THIRD)
        assert set(vaas(of_days(world, FIRST, THIRD))) <= set(vaas(place.landed("vaas")))


@pytest.mark.parametrize("kind", ["vaas", "operations"])
@pytest.mark.parametrize("nothing", [[], None])
def test_one_empty_page_does_not_end_a_list(tmp_path, world, operations, monkeypatch, kind, nothing) -> None:
    monkeypatch.setitem(wormholescan._SIZES, kind, (10,))

    class Forgetful(ExplorerServer):
        empty = 1

        def _page(self, listed, found, query, time_of, field):
            if listed == kind and query["page"] == ["3"] and query["sortOrder"] == ["DESC"] and self.empty:
                self.empty -= 1
                return 200, {field: nothing}
            return super()._page(listed, found, query, time_of, field)

    with Forgetful(world, operations) as server:
        place = Place(tmp_path, server)
        place.fetch(FIRST, THIRD)
        assert not server.empty
        assert set(vaas(of_days(world, FIRST, THIRD))) <= set(vaas(place.landed("vaas")))
        assert {one["id"] for one in place.landed("operations")} == {
            one["id"] for one in operations if "2024" in one["sourceChain"]["timestamp"]
        }


def message(emitter, number, second):
    """A document of a VAA without signatures."""
    raw = bytes([1, 0, 0, 0, 0, 0]) + second.to_bytes(4, "big") + bytes(4) + number.to_bytes(8, "big")
    moment = dt.datetime.fromtimestamp(second, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "id": f"2/{emitter:064x}/{number}",
        "vaa": base64.b64encode(raw + bytes([emitter])).decode(),
        "timestamp": moment,
        "txHash": f"0x{emitter:x}{number:x}",
    }


def test_the_end_of_a_day_that_was_built_at_midnight_is_listed_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(wormholescan._SIZES, "vaas", (2,))
    midnight = int(dt.datetime(2024, 3, 11, tzinfo=dt.UTC).timestamp())
    served = [message(1, 5000 + minute, midnight + 60 * minute) for minute in range(-30, 30)]
    late = served.pop(22)
    assert late["timestamp"] == "2024-03-10T23:52:00Z"
    with ExplorerServer(served) as server:
        place = Place(tmp_path, server)
        place.fetch(FIRST, FIRST, clock=lambda: midnight)
        server.vaas.append(late)
        news = place.fetch(SECOND, SECOND, clock=lambda: midnight + 86_400)
    assert news[FIRST] == 1
    assert late["vaa"] in vaas(place.landed("vaas", FIRST, FIRST))


class TestDeepDays:
    """A service that rejects pages beyond the first 240 documents of a list; 3 emitters have 720 a day."""

    @pytest.fixture
    def world(self):
        start = int(dt.datetime(2024, 3, 10, tzinfo=dt.UTC).timestamp())
        # 240 of each emitter a day, for three days.
        return [
            message(emitter, number, start + (number - 5000) * 360 + emitter)
            for emitter in (1, 2, 3)
            for number in range(5000, 5720)
        ]

    @pytest.fixture
    def place(self, tmp_path, world, monkeypatch):
        for kind in ("vaas", "operations"):
            monkeypatch.setitem(wormholescan._SIZES, kind, (40,))
        with ExplorerServer(world) as server:
            server.deepest = 200
            yield Place(tmp_path, server)

    @pytest.mark.parametrize("every", [1, 7])
    def test_a_day_is_put_together_from_operations_emitters_and_sequences(self, place, world, every) -> None:
        place.server.operations = [operation_of(one) for one in world[::every]]
        place.fetch(FIRST, FIRST)
        landed = {one.get("vaa") for kind in ("vaas", "operations") for one in place.landed(kind)}
        wanted = {one["vaa"] for one in world if days_of_document(one)[0] == FIRST}
        assert len(wanted) == 720
        assert wanted <= landed
        calls = len(place.server.calls)
        assert calls < (250 if every == 1 else 900)
        assert not place.fetch(FIRST, FIRST)
        assert len(place.server.calls) == calls

    def test_a_day_without_any_proof_is_not_complete(self, place) -> None:
        with pytest.raises(PermalakeError, match=r"2024-03-10 lies deeper .*; what it did answer is kept"):
            place.fetch(FIRST, FIRST)
        with pytest.raises(PermalakeError):
            place.fetch(FIRST, FIRST)  # nothing counts as listed

    def test_a_day_with_fewer_messages_than_reported_is_not_complete(self, place, world) -> None:
        place.server.operations = [operation_of(one) for one in world]
        place.server.counts = lambda day: 721
        with pytest.raises(PermalakeError, match=r"2024-03-10 has 721 messages, of which it serves 720;"):
            place.fetch(FIRST, FIRST)
        place.server.counts = lambda day: 720
        place.fetch(FIRST, FIRST)

    def test_an_operation_without_its_vaa_is_no_message_that_is_there(self, place, world) -> None:
        place.server.operations = [
            operation_of(one) | ({} if number % 3 else {"vaa": None}) for number, one in enumerate(world)
        ]
        of_day = [one for one in world if days_of_document(one)[0] == FIRST]
        unsigned = world[30]
        place.server.vaas.remove(unsigned)
        place.server.counts = lambda day: 720
        with pytest.raises(PermalakeError, match=r"2024-03-10 has 720 messages, of which it serves 719;"):
            place.fetch(FIRST, FIRST)
        asked = [call[1] for call in place.server.asked("/api/v1/vaas/")]
        assert asked.count(f"/api/v1/vaas/{unsigned['id']}") == 1
        place.server.vaas.append(unsigned)
        place.fetch(FIRST, FIRST)
        landed = {one.get("vaa") for kind in ("vaas", "operations") for one in place.landed(kind)}
        assert {one["vaa"] for one in of_day} <= landed

    @pytest.mark.parametrize(
        ("route", "status"),
        [("vaas", 403), ("vaas", 451), ("vaas/2/", 401), ("x-chain-activity/tops", 410)],
    )
    def test_what_the_service_refuses_is_not_taken_for_absent(
        self, place, world, monkeypatch, route, status
    ) -> None:
        """Operations alone name messages of a day, but do not show that they are all."""
        place.server.operations = [operation_of(one) for one in world[::7]]
        answer = place.server.answer

        def refuse(path, query):
            if path.startswith(f"/api/v1/{route}") and query.get("sortOrder") != ["ASC"]:
                return status, {"message": "no"}
            return answer(path, query)

        monkeypatch.setattr(place.server, "answer", refuse)
        for _ in range(2):
            with pytest.raises(PermalakeError, match=f"^wormholescan: HTTP {status}; what it did answer"):
                place.fetch(FIRST, FIRST)

    def test_operations_of_one_moment_that_do_not_fit_are_an_error(self, place, world) -> None:
        one = operation_of(world[0])
        place.server.operations = [dict(one, id=f"1/{'00' * 32}/{number}") for number in range(400)]
        with pytest.raises(PermalakeError, match="no shorter window is possible"):
            place.fetch(FIRST, FIRST)


def test_a_service_that_neither_sorts_nor_filters_is_read_whole(tmp_path, world, operations) -> None:
    class Unruly(ExplorerServer):
        def _page(self, kind, found, query, time_of, field):
            found = self.vaas if kind == "vaas" else self.operations
            size = min(int(query["pageSize"][0]), 40)
            number = int(query["page"][0])
            return 200, {field: found[number * size : (number + 1) * size]}

    with Unruly(world, operations) as server:
        place = Place(tmp_path, server)
        place.fetch(SECOND, SECOND)
        assert set(vaas(place.landed("vaas"))) == set(vaas(world))
        assert {one["id"] for one in place.landed("operations")} == {one["id"] for one in operations}


def test_a_day_that_is_not_over_is_asked_for_again(tmp_path, world) -> None:
    noon = dt.datetime(2024, 3, 11, 12, tzinfo=dt.UTC).timestamp()
    with ExplorerServer(world) as server:
        place = Place(tmp_path, server)
        place.fetch(SECOND, SECOND, clock=lambda: noon)
        calls = len(server.calls)
        place.fetch(SECOND, SECOND, clock=lambda: noon + 60)
        assert len(server.calls) > calls
        place.fetch(SECOND, SECOND, clock=lambda: noon + 86_400)
        calls = len(server.calls)
        place.fetch(SECOND, SECOND, clock=lambda: noon + 2 * 86_400)
        assert len(server.calls) == calls


def test_other_vaas_of_a_message_are_fetched_where_the_list_says_there_are(tmp_path, world) -> None:
    document = dict(next(one for one in world if days_of_document(one)[0] == FIRST), isDuplicated=True)
    other = dict(document, id="x", vaa=world[-1]["vaa"])
    with ExplorerServer([document]) as server:
        server.copies = {document["id"]: [other]}
        place = Place(tmp_path, server)
        place.fetch(FIRST, FIRST)
        assert {one["id"] for one in place.landed("vaas")} == {document["id"]}
        assert vaas(place.landed("vaas")) == sorted([document["vaa"], other["vaa"]])
