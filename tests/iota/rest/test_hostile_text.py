"""What a chain says reaches the explorer's pages as text: a tag of markup and marks, a block full of data."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.config import Settings
from support import lakes
from support.iota_days import expected
from support.lakes import DAY1, NETWORK

TAG = '<img src=x onerror=alert(1)>\u202e\u200f\x1b[31m\x00"&'.encode()
DATA = b"<script>alert(1)</script>\x00\xe2\x80\xae" * 1092
assert len(TAG) <= 64
assert 30_000 < len(DATA) < 32_768


JSON = (b'{"a": 1e999}', rb'{"a": "\ud800"}', b"[" * 500 + b"]" * 500, b"[" * 190 + b"]" * 190)
"""Data of further blocks: numbers, text and depth that an answer may not be able to hold."""


def block(data=DATA):
    """A Stardust block with tagged data (TIP-23, TIP-24)."""
    body = bytes([len(TAG)]) + TAG + len(data).to_bytes(4, "little") + data
    payload = (5).to_bytes(4, "little") + body
    return b"\x02\x01" + bytes(32) + len(payload).to_bytes(4, "little") + payload + bytes(8)


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    """The API over a day with one such block."""
    folder = tmp_path_factory.mktemp("hostile")
    networks = {NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": str(folder)}}
    settings = Settings(lake={"warehouse": str(folder / "lake")}, networks=networks)  # type: ignore[arg-type]
    lake = lakes.OpenLake(settings)
    attempt = lake.begin(NETWORK, DAY1, DAY1, "hostile")
    lakes.stage_day(settings, attempt, DAY1, 1, 1)
    message, *others = lakes.messages(DAY1, 1, 1 + len(JSON))
    rows = [row | {"message": block(data)} for row, data in zip(others, JSON, strict=True)]
    lakes.put(settings, attempt, "messages", [message | {"message": block()}, *rows])
    milestone = expected("stardust", "milestones")[0] | {"milestone_index": 1, "date": DAY1}
    payload = bytes.fromhex(milestone["payload"])
    lakes.put(settings, attempt, "milestones", [milestone | {"payload": payload}])
    row = {"tag": TAG.hex(), "message_id": message["message_id"], "date": DAY1}
    rest = {
        "ms_range_id": 0,
        "milestone_index": 1,
        "inclusion_state": 2,
        "ms_timestamp": datetime(2022, 9, 28, tzinfo=UTC),
    }
    names = lakes.domain_of(NETWORK).tables["tags"].names
    lakes.put(settings, attempt, "tags", [{name: (row | rest).get(name) for name in names}])
    lake.builds.publish(lakes.pass_audit(attempt))
    with TestClient(create_app(settings)) as client:
        yield client


def page(api, path):
    answer = api.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    assert len(answer.content) < 150_000
    assert "<img" not in answer.text
    assert "<script>" not in answer.text
    for unseen in ("\u202e", "\u200f", "\x1b", "\x00"):
        assert unseen not in answer.text
    return answer.text


def test_a_tag_is_text(api) -> None:
    text = page(api, f"/{NETWORK}/explore/tag/{TAG.hex()}")
    assert "&lt;img src=x onerror=alert(1)&gt;[U+202E][U+200F][U+001B][31m[U+0000]&#34;&amp;" in text
    answer = api.get(f"/{NETWORK}/explore", params={"q": TAG.decode()}, follow_redirects=False)
    assert answer.headers["location"] == f"/{NETWORK}/explore/tag/{TAG.hex()}"


def test_a_block_full_of_data_is_cut(api) -> None:
    path = f"/{NETWORK}/explore/message/{1:060x}{0:04x}"
    text = page(api, path)
    assert " characters)" in text
    found = api.get(f"{path}?format=json").json()["found"]
    assert found["json"]["payload"]["data"] == f"0x{DATA.hex()}", "JSON has all of it"


def test_a_search_for_markup_finds_nothing(api) -> None:
    text = page(api, f"/{NETWORK}/explore?q=%3Cscript%3Ealert(2)%3C/script%3E")
    assert "Nothing published matches" in text


@pytest.mark.parametrize("at", range(1, 1 + len(JSON)))
def test_json_that_no_answer_can_hold_is_text(api, at) -> None:
    path = f"/{NETWORK}/explore/message/{1:060x}{at:04x}"
    page(api, path)
    tagged = api.get(f"{path}?format=json").json()["found"]["tagged"]
    assert tagged["text"] == JSON[at - 1].decode()
