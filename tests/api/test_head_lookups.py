"""Lookups that history has no answer for: the live head gives it, marked, and as the published day will."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.domains import domain_of
from permalake.iota.steps.live import LIVE_TABLES as IOTA_TABLES
from permalake.lake.head import Head
from permalake.lake.head_position import Reached
from permalake.lake.serving import LakeReader
from permalake.wormhole.steps.live import LIVE_TABLES as WORMHOLE_TABLES
from support import lakes, served_wormhole, synthetic_lake
from support.heads import follow_day

PAGE = {"accept": "text/html"}


class Served:
    """A lake whose last day is not published, behind the API."""

    def __init__(self, settings, folder, network, rows, tables):
        self.settings, self.network, self.rows, self.tables = settings, network, rows, tables
        self.reader = LakeReader(settings, domain_of, cache=folder / "index")
        self.api = TestClient(create_app(settings, self.reader))

    def follow(self, day, reached) -> None:
        follow_day(self.settings, self.network, self.rows, self.tables, day, reached)
        self.reader.refresh()

    def see(self, row) -> None:
        """Have a message in the head that no milestone references."""
        contracts = domain_of(self.network).head_tables
        head = Head(self.settings, lakes.OpenLake(self.settings).database, self.network, contracts)
        head.ensure()
        (contract,) = contracts.values()
        head.commit(head.write(contract.name, pa.Table.from_pylist([row], schema=contract.arrow)))
        self.reader.refresh()

    def get(self, path, **headers):
        return self.api.get(path, headers=headers)

    def assert_missing(self, paths) -> None:
        for path, absent in paths.items():
            answer = self.get(path)
            assert "permalake-provisional" not in answer.headers
            assert (answer.status_code, path) == (404, path) if absent is None else answer.json() == absent
            assert "etag" not in answer.headers
            assert answer.headers["cache-control"] == "no-store"

    def provisional(self, paths):
        """What the head answers: each marked, none kept; the contract's own objects say it too."""
        found = {}
        for path in paths:
            answer = self.get(path)
            assert (answer.status_code, path) == (200, path), answer.text
            assert answer.headers["permalake-provisional"] == "true"
            assert answer.headers["cache-control"] == "no-store"
            assert "etag" not in answer.headers
            found[path] = answer.json()
            is_page = "/explore/" in path or "/wormhole/vaa/" in path
            is_own = path.startswith(("/api/permanode", "/api/wormhole")) and "/blocks/" not in path
            assert found[path].pop("provisional", False) == (is_own or is_page), path
        return found

    def final(self, paths):
        self.reader.refresh()
        found = {}
        for path in paths:
            answer = self.get(path)
            assert (answer.status_code, path) == (200, path), answer.text
            assert "permalake-provisional" not in answer.headers
            assert "etag" in answer.headers
            found[path] = answer.json()
        return found


def of_stardust(rows, day):
    message = next(row for row in rows["messages"] if row["date"] == day and row["inclusion_state"] == 1)
    conflict = next(row for row in rows["messages"] if row["date"] == day and row["inclusion_state"] == 0)
    milestone = max(rows["milestones"], key=lambda row: row["milestone_index"])
    output = next(row for row in rows["basic_outputs"] if row["date"] == day)["output_id"]
    core, own, pages = "/shimmer/api/core/v2", "/api/permanode/v1/shimmer", "/shimmer/explore"
    number, ours = milestone["milestone_index"], message["message_id"]
    return [
        *(f"{core}/blocks/0x{ours}{part}" for part in ("", "/metadata")),
        f"{core}/blocks/0x{conflict['message_id']}/metadata",
        f"{core}/milestones/by-index/{number}",
        f"{core}/milestones/by-index/{number}/utxo-changes",
        f"{core}/milestones/0x{milestone['milestone_id']}",
        *(f"{core}/outputs/0x{output}{part}" for part in ("", "/metadata")),
        f"{core}/transactions/0x{output[:64]}/included-block",
        f"{core}/transactions/0x{output[:64]}/included-block/metadata",
        *(f"{own}/messages/{ours}{part}" for part in ("", "/metadata")),
        *(f"{own}/milestones/{number}", f"{own}/blocks/{ours}"),
        *(f"{pages}/message/{ours}?format=json", f"{pages}/milestone/{number}?format=json"),
        *(f"{pages}/output/{output}?format=json", f"{pages}/transaction/{output[:64]}?format=json"),
    ]


def of_chrysalis(rows, day):
    message = next(row for row in rows["messages"] if row["date"] == day and row["inclusion_state"] == 1)
    number = max(row["milestone_index"] for row in rows["milestones"])
    output = next(row for row in rows["legacy_outputs"] if row["date"] == day)["output_id"]
    core, own = "/iota/api/v1", "/api/permanode/v1/iota"
    return [
        *(f"{core}/messages/{message['message_id']}{part}" for part in ("", "/metadata")),
        *(f"{core}/milestones/{number}{part}" for part in ("", "/utxo-changes")),
        f"{core}/outputs/{output}",
        f"{core}/transactions/{output[:64]}/included-message",
        *(f"{own}/messages/{message['message_id']}", f"{own}/milestones/{number}", f"{own}/outputs/{output}"),
        f"/iota/explore/message/{message['message_id']}?format=json",
    ]


@pytest.mark.parametrize("network", ["shimmer", "iota"])
def test_ledger_lookups(tmp_path, network) -> None:
    settings = synthetic_lake.settings_of(tmp_path / "warehouse")
    rows = synthetic_lake.tables(synthetic_lake.NETWORKS[network])
    *before, last = synthetic_lake.days(rows)
    synthetic_lake.publish(settings, network, rows, before)
    paths = (of_stardust if network == "shimmer" else of_chrysalis)(rows, last)
    served = Served(settings, tmp_path, network, rows, IOTA_TABLES)
    with served.api:
        served.assert_missing(dict.fromkeys(paths))
        newest = max(rows["milestones"], key=lambda row: row["milestone_index"])
        served.follow(last, Reached(newest["milestone_index"], newest["timestamp"]))
        told = served.provisional(paths)
        raw = served.get(paths[0], accept="application/vnd.iota.serializer-v1")
        assert raw.headers["permalake-provisional"] == "true"
        page = served.get(paths[-1].removesuffix("?format=json"), **PAGE)
        assert "<strong>Provisional:</strong>" in page.text
        message = next(row["message_id"] for row in rows["messages"] if row["date"] == last)
        search = served.api.get(f"/search?q={message}&in={network}", headers=PAGE)
        assert search.url.path == f"/{network}/explore/message/{message}"
        history = next(row["message_id"] for row in rows["messages"] if row["date"] == before[0])
        kept = served.get(f"/{network}/explore/message/{history}?format=json")
        assert "permalake-provisional" not in kept.headers
        assert served.get(paths[0][:-20] + "0" * 20).status_code == 404
        assert_info(served, network)
        synthetic_lake.publish(settings, network, rows, [last])
        assert served.get(paths[0]).status_code == 200, "before and after the server sees the publication"
        assert differing(told, served.final(paths)) == []


def differing(told, final):
    """The paths whose answers differ, and in what: a comparison of all in one would take minutes to print."""
    return [
        (path, str(one)[:2000], str(final[path])[:2000]) for path, one in told.items() if one != final[path]
    ]


@pytest.mark.parametrize("network", ["shimmer", "iota"])
def test_a_client_that_holds_an_empty_list_sees_what_reaches_the_head(tmp_path, network) -> None:
    settings = synthetic_lake.settings_of(tmp_path / "warehouse")
    rows = synthetic_lake.tables(synthetic_lake.NETWORKS[network])
    *before, last = synthetic_lake.days(rows)
    synthetic_lake.publish(settings, network, rows, before)
    known = {row["parent_id"] for row in rows["parents"] if row["date"] != last}
    parent = next(row["parent_id"] for row in rows["parents"] if row["parent_id"] not in known)
    path = f"/api/permanode/v1/{network}/messages/{parent}/children"
    served = Served(settings, tmp_path, network, rows, IOTA_TABLES)
    with served.api:
        first = served.get(path)
        assert first.json()["data"]["count"] == 0
        newest = max(rows["milestones"], key=lambda row: row["milestone_index"])
        served.follow(last, Reached(newest["milestone_index"], newest["timestamp"]))
        held = {"if-none-match": first.headers["etag"]} if "etag" in first.headers else {}
        again = served.get(path, **held)
        assert again.status_code == 200
        assert again.json()["data"]["count"] > 0


@pytest.mark.parametrize("network", ["shimmer", "iota"])
def test_messages_that_no_milestone_references(tmp_path, network) -> None:
    settings = synthetic_lake.settings_of(tmp_path / "warehouse")
    rows = synthetic_lake.tables(synthetic_lake.NETWORKS[network])
    *before, last = synthetic_lake.days(rows)
    synthetic_lake.publish(settings, network, rows, before)
    late = next(row for row in rows["messages"] if row["date"] == last and row["inclusion_state"] == 1)
    name, newest = late["message_id"], max(row["milestone_index"] for row in rows["milestones"])
    core, own = f"/{network}/api/core/v2/blocks/0x{name}", f"/api/permanode/v1/{network}/messages/{name}"
    core = core if network == "shimmer" else f"/iota/api/v1/messages/{name}"
    page = f"/{network}/explore/message/{name}"
    paths = [core, f"{core}/metadata", own, f"{own}/metadata", f"{page}?format=json"]
    served = Served(settings, tmp_path, network, rows, IOTA_TABLES)
    with served.api:
        served.assert_missing(dict.fromkeys(paths))
        columns = {one: late[one] for one in ("message_id", "version", "message")}
        seen = datetime.combine(last, datetime.min.time(), UTC)
        served.see(columns | {"est_milestone_index": newest + 1, "seen_at": seen, "date": last})
        told = served.provisional(paths)
        for path in paths[1], paths[3]:
            metadata = told[path].get("data", told[path])
            assert metadata["referencedByMilestoneIndex"] is None
            assert metadata["ledgerInclusionState"] is None
            assert {"conflictReason", "whiteFlagIndex"}.isdisjoint(metadata)
        facts = told[paths[4]]["found"]
        assert (facts["milestone_index"], facts["state"]) == (None, None)
        assert facts["est_milestone_index"] == newest + 1
        text = served.get(page, **PAGE).text
        assert "<strong>Provisional:</strong>" in text
        assert "none references it yet" in text
        assert "Proof of inclusion" not in text
        assert served.api.get(f"/search?q={name}&in={network}", headers=PAGE).url.path == page
        assert served.get(f"/api/poi/v1/{network}/{name}").status_code == 404
        media = "application/octet-stream" if network == "iota" else "application/vnd.iota.serializer-v1"
        raw = served.get(f"{own}/raw" if network == "iota" else core, accept=media)
        assert raw.content == late["message"]
        synthetic_lake.publish(settings, network, rows, [last])
        final = served.final(paths)
        assert final[paths[4]]["found"]["milestone_index"] == late["milestone_index"]


def assert_info(served, network) -> None:
    """A client that holds the answer learns how far the head is all the same."""
    path = "/shimmer/api/core/v2/info" if network == "shimmer" else "/iota/api/v1/info"
    fresh = served.get(path)
    held = served.get(path, **{"if-none-match": fresh.headers["etag"]})
    assert held.status_code == 304
    for name in ("milestone", "time"):
        assert held.headers[f"permalake-head-{name}"] == fresh.headers[f"permalake-head-{name}"]
    assert float(held.headers["permalake-head-lag"]) > 0


def test_vaa_lookups(tmp_path) -> None:
    settings = served_wormhole.wormhole_settings(tmp_path)
    rows = served_wormhole.world_rows()
    last = served_wormhole.LAST_DAY
    served_wormhole.publish_days(
        settings, rows, sorted({row["date"] for row in rows["message_publication"]} - {last})
    )
    of_day = [row for row in rows["message_publication"] if row["date"] == last]
    moved = next(row["row_key"] for row in rows["token_transfer_payload"] if row["date"] == last)
    chain, emitter, sequence = moved.split(":")
    name = f"{chain}/{emitter}/{int(sequence)}"
    emitted = next(row for row in of_day if row["initiating_tx_id"])
    transaction = emitted["initiating_tx_id"]
    held = [
        f"/wormhole/api/v1/vaas{place}?txHash={transaction}" for place in ("", f"/{emitted['emitter_chain']}")
    ]
    exact = [
        f"/wormhole/v1/signed_vaa/{name}",
        f"/wormhole/api/v1/vaas/{name}",
        *held,
    ]
    enriched = [
        f"/api/wormhole/v1/events/{name}",
        f"/api/wormhole/v1/events?txId={transaction}",
        f"/wormhole/vaa/{name}?format=json",
        f"/wormhole/api/v1/operations/{name}",
        f"/wormhole/edb/readrow?emitterChain={chain}&emitterAddress={emitter}&sequence={int(sequence)}",
    ]
    nothing = {"data": [], "pagination": {"next": ""}}
    empty = {**dict.fromkeys(held, nothing), enriched[1]: {"items": []}}
    served = Served(settings, tmp_path, "wormhole", rows, WORMHOLE_TABLES)
    with served.api:
        served.assert_missing(dict.fromkeys([*exact, *enriched]) | empty)
        assert "permalake-head-time" not in served.get("/wormhole/health").headers
        newest = max(row["timestamp"] for row in of_day)
        served.follow(last, Reached(None, int(newest.timestamp()), {}))
        told = served.provisional([*exact, *enriched])
        event = told[enriched[0]]
        assert event["message_publication"]["row_key"] == moved
        assert [one["message_publication"]["row_key"] for one in told[enriched[1]]["items"]] == [
            row["row_key"] for row in of_day if row["initiating_tx_id"] == transaction
        ]
        assert "<strong>Provisional:</strong>" in served.get(f"/wormhole/vaa/{name}", **PAGE).text
        health = served.get("/wormhole/health")
        assert health.status_code == 200
        assert "permalake-head-milestone" not in health.headers
        told_time = datetime.fromisoformat(health.headers["permalake-head-time"])
        assert told_time == newest.replace(microsecond=0)
        served_wormhole.publish_days(settings, rows, [last])
        final = served.final([*exact, *enriched])
        assert differing({path: told[path] for path in exact}, final) == []
        event_then = final[enriched[0]]
        assert {name: event_then[name] for name in event} == event
