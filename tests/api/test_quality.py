"""The Quality page: audits by day and table, Data Docs, lineage, quarantine."""

from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from support.lakes import DAY1, DAY2, NETWORK, settings_of

HTML = {"Accept": "text/html"}


def quality(troubled, query=""):
    answer = troubled.api.get(f"/quality?{query}", headers={"Accept": "application/json"})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_audits_by_day_name_what_failed(troubled) -> None:
    second, first = quality(troubled)["days"]
    assert (first["date"], first["audited"], first["failures"]) == (f"{DAY1}", "passed", [])
    assert first["quarantined"] == 0
    assert (second["date"], second["audited"], second["published"]) == (f"{DAY2}", "failed", None)
    assert second["failures"][0] == {
        "table": "ms_analytics",
        "expectation": "messages_add_up",
        "text": "milestone 2 expected 7, found 5",
    }
    told = {"table": "tags", "expectation": "tags_are_text", "text": "tags are text"}
    assert (second["warnings"], second["warned"]) == (1, [told]), "that of another day is not told here"
    assert "tags are text" in troubled.api.get("/quality", headers=HTML).text
    assert second["failures"][2] == {"table": None, "expectation": None, "text": "a line of another shape"}


def test_audits_by_table(troubled) -> None:
    found = quality(troubled)
    assert [one["date"] for one in found["tables"][0]["results"]] == [f"{DAY2}", f"{DAY1}"]
    states = {row["table"]: [one["state"] for one in row["results"]] for row in found["tables"]}
    assert states.pop("ms_analytics") == states.pop("tags") == ["failed", "passed"]
    assert states.pop("laws across tables") == ["failed", "passed"]
    assert {"messages", "milestones", "transactions"} <= set(states)
    assert all(one == ["passed", "passed"] for one in states.values())


def test_data_docs_are_served_under_a_policy_of_their_own(troubled) -> None:
    second, first = quality(troubled)["days"]
    assert first["docs"] is None, "this audit left none"
    assert second["docs"] == f"/audit/{NETWORK}/{troubled.attempt}/index.html"
    for path in (second["docs"], "/audit/"):
        answer = troubled.api.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-")
    for path in ("/audit/../permalake.toml", "/audit/%2e%2e/lake/_lake.json", "/audit/nosuch"):
        assert troubled.api.get(path).status_code == 404


def test_empty_fields_of_the_form_are_no_dates(troubled) -> None:
    assert troubled.api.get("/quality?start=&end=").status_code == 200


def test_lineage_goes_from_the_source_to_the_readers(troubled) -> None:
    found = quality(troubled, f"day={DAY1}")["lineage"]
    assert found["date"] == f"{DAY1}"
    stages = [(one["work"], one["title"]) for one in found["stages"]]
    assert stages == [
        (None, "Source"),
        ("ingest_decode", "Tables"),
        ("analytics", "Tables"),
        ("audit", "Passed"),
        ("publish", "Published"),
        ("serve", "Readers"),
    ]
    assert found["stages"][1]["text"] == "messages 5, ms_analytics 1"
    failed = quality(troubled, f"day={DAY2}")["lineage"]
    assert failed["stages"][-1]["title"] == "Failed"
    assert "messages_add_up" in failed["stages"][-1]["text"]


def test_quarantine_has_reasons_and_inputs_without_their_bytes(troubled) -> None:
    found = quality(troubled)
    assert [(one["reason"], one["inputs"]) for one in found["reasons"]] == [
        ("bad_signature", 3), ("malformed", 1),
    ]  # fmt: skip
    by_reason = {one["reason"]: one for one in found["inputs"]}
    assert "raw" not in by_reason["bad_signature"]
    assert quality(troubled, f"start={DAY2}")["inputs"] == []


def test_reasons_lead_to_what_to_do(troubled) -> None:
    assert quality(troubled)["days"][0]["codes"] == ["audit_failed"]
    sections = set(re.findall(r'<h3 id="(\w+)">', troubled.api.get("/reasons", headers=HTML).text))
    links = set()
    for path in ("/quality", "/"):
        links |= set(re.findall(r'href="/reasons#(\w+)"', troubled.api.get(path, headers=HTML).text))
    assert {"audit_failed", "bad_signature", "malformed"} <= links <= sections
    told = troubled.api.get("/reasons?format=json").json()
    assert {one["code"] for chapter in told["chapters"] for one in chapter["reasons"]} == sections


def test_the_page_of_a_day_says_what_was_refused_and_leads_to_its_reasons(troubled) -> None:
    path = f"/{NETWORK}/explore/day/{DAY1}"
    found = troubled.api.get(path, headers={"Accept": "application/json"}).json()["found"]
    assert [tuple(one.values()) for one in found["refused"]] == [("bad_signature", 3), ("malformed", 1)]
    page = troubled.api.get(path, headers={"Accept": "text/html"}).text
    assert set(re.findall(r'href="/reasons#(\w+)"', page)) == {"bad_signature", "malformed"}


@pytest.mark.parametrize(
    "path", ["/", "/quality", f"/quality?day={DAY2}", "/operations", f"/day?network={NETWORK}&date={DAY2}"]
)
def test_nothing_from_a_chain_is_markup(troubled, path) -> None:
    answer = troubled.api.get(path, headers=HTML)
    assert answer.status_code == 200
    assert len(answer.content) < 150_000
    assert "<img" not in answer.text
    for unseen in ("\u202e", "\x1b", "\x00"):
        assert unseen not in answer.text
    assert "&lt;img src=x" in answer.text
    assert "[U+202E][U+001B][31m[U+0000]" in answer.text
    assert "A" * 3000 not in answer.text
    for inline in ("<script", " style=", "<style"):
        assert inline not in answer.text
    assert "script" not in answer.headers["content-security-policy"]


def test_a_day_tells_rows_quarantine_audit_and_what_is_wrong(troubled) -> None:
    def day(which):
        return troubled.api.get(f"/day?network={NETWORK}&date={which}&format=json").json()

    first, second = day(DAY1), day(DAY2)
    assert (first["state"]["name"], first["audited"], first["docs"]) == ("published", "passed", None)
    assert {one["table"]: one["rows"] for one in first["tables"]}["messages"] == 5
    linked = re.findall(
        r'href="(/data/[^"]+)"', troubled.api.get(f"/day?network={NETWORK}&date={DAY1}", headers=HTML).text
    )
    assert linked == [f"/data/{NETWORK}/{one['table']}" for one in first["tables"]]
    assert {troubled.api.get(path).status_code for path in linked} == {200}
    assert (second["state"]["name"], second["published"], second["run"]) == ("failed", None, "second")
    assert second["codes"] == ["audit_failed"]
    assert troubled.api.get(second["docs"]).status_code == 200
    text = troubled.api.get(f"/day?network={NETWORK}&date={DAY2}", headers=HTML).text
    assert f'href="/operations?run=second&amp;network={NETWORK}"' in text
    assert f'href="/day?network={NETWORK}&amp;date={DAY2}"' in troubled.api.get("/", headers=HTML).text


def test_what_is_unknown(troubled) -> None:
    for path in ("/day?network=nosuch&date=2022-09-28", "/quality?network=nosuch", "/quality?day=2020-01-01"):
        assert troubled.api.get(path).status_code == 404
    assert troubled.api.get("/quality?start=x").status_code == 400


def test_a_day_that_is_built_later_shows_although_nothing_is_published(troubled) -> None:
    """An audit that fails moves no publication: the page must not be taken for unchanged."""
    pages = ("/quality", "/operations", "/")
    before = {path: troubled.api.get(path).headers["etag"] for path in pages}
    unchanged = {path: troubled.api.get(path, headers={"If-None-Match": tag}) for path, tag in before.items()}
    assert {answer.status_code for answer in unchanged.values()} == {304}
    pinned = troubled.lake.pinned(NETWORK, "second")
    pinned.verdict(DAY2, False, ["tags: tag_well_formed: something else"])
    for path in ("/quality", "/"):  # the operations page tells of steps
        answer = troubled.api.get(path, headers={"If-None-Match": before[path]})
        assert answer.status_code == 200
        assert "something else" in answer.text


def test_an_empty_lake(tmp_path) -> None:
    with TestClient(create_app(settings_of(tmp_path))) as api:
        assert "Nothing is built yet" in api.get("/quality", headers=HTML).text
        assert "No step has run yet" in api.get("/operations", headers=HTML).text
