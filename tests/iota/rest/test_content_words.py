"""Content in words: payloads, tags, data, and metadata by IRC-27 and IRC-30."""

from __future__ import annotations

import json

import pytest

from permalake.iota.rest.content_words import metadata, payload_in_words, payload_type, readable, tagged_data
from support.iota_days import expected

# The example of TIP-27, shortened.
NFT = {
    "standard": "IRC27",
    "version": "v1.0",
    "type": "image/jpeg",
    "uri": "https://mywebsite.com/my-nft-files-1.jpeg",
    "name": "My NFT #0001",
    "collectionName": "My Collection of Art",
    "attributes": [{"trait_type": "Background", "value": "Purple"}],
}


def hexed(content) -> str:
    return f"0x{(content if isinstance(content, bytes) else json.dumps(content).encode()).hex()}"


def test_metadata_of_an_nft_is_told_by_its_standard() -> None:
    output = {"immutableFeatures": [{"type": 1}, {"type": 2, "data": hexed(NFT)}], "features": []}
    [found] = metadata(output)
    assert (found["of"], found["standard"], found["json"]) == ("immutable", "IRC-27", NFT)
    assert dict(found["facts"]) == {
        "Name": "My NFT #0001",
        "Collection": "My Collection of Art",
        "Media type": "image/jpeg",
        "Content": "https://mywebsite.com/my-nft-files-1.jpeg",
    }


def test_metadata_of_a_token_and_what_follows_no_standard() -> None:
    token = {"standard": "IRC30", "name": "FooCoin", "symbol": "FOO", "decimals": 3}
    features = [{"type": 2, "data": hexed(token)}]
    own = [{"type": 2, "data": hexed(b"\xff\x00")}]
    of_token, of_state = metadata({"immutableFeatures": features, "features": own})
    assert of_token["standard"] == "IRC-30"
    assert dict(of_token["facts"])["Decimals"] == "3"
    assert of_state == {
        **{"of": "of this state", "standard": None, "facts": [], "traits": []},
        **{"bytes": 2, "text": None, "json": None},
    }
    assert metadata({}) == []


@pytest.mark.parametrize(
    ("raw", "text", "content"),
    [
        (b"caf\xc3\xa9\n", "café\n", None),
        (b'{"a": 1}', '{"a": 1}', {"a": 1}),
        (b'{"a": NaN}', '{"a": NaN}', {"a": "NaN"}),
        (b'{"a": 1e999}', '{"a": 1e999}', None),
        (rb'{"a": "\ud800"}', r'{"a": "\ud800"}', None),
        (rb'{"\udfff": 1}', r'{"\udfff": 1}', None),
        (b"[" * 500 + b"]" * 500, "[" * 500 + "]" * 500, None),
        (b"[" * 60 + b"]" * 60, "[" * 60 + "]" * 60, json.loads("[" * 60 + "]" * 60)),
        (b"[" * 100_000, "[" * 100_000, None),
        (b'{"a": ', '{"a": ', None),
        (b"a\x00b", None, None),
        (b"\xff", None, None),
        (b"", "", None),
    ],
)
def test_bytes_are_read_as_far_as_they_are_text(raw, text, content) -> None:
    assert readable(raw) == {"bytes": len(raw), "text": text, "json": content}


@pytest.mark.parametrize("protocol", ["stardust", "chrysalis"])
def test_payloads_are_told_in_words(protocol) -> None:
    transactions = {row["message_id"] for row in expected(protocol, "transactions")}
    found = {
        row["message_id"]: payload_in_words(payload_type(bytes.fromhex(row["message"]), protocol), protocol)
        for row in expected(protocol, "messages")
    }
    code = {"stardust": 6, "chrysalis": 0}[protocol]
    assert {one for one, words in found.items() if words == f"transaction ({code})"} == transactions
    assert "no payload" in found.values()
    assert payload_in_words(99, protocol) == "payload (99)"


def test_a_tag_is_found_in_a_message_and_in_its_transaction() -> None:
    data = {"tag": "0x7461", "data": hexed({"n": 1})}
    for message in ({"payload": data}, {"payload": {"essence": {"payload": data}}}):
        found = tagged_data(message)
        assert (found["tag"], found["tag_text"], found["json"]) == ("7461", "ta", {"n": 1})
    assert tagged_data({"payload": {"index": "7461", "data": ""}})["bytes"] == 0
    assert tagged_data({}) is tagged_data({"payload": None}) is None
    without = tagged_data({"payload": {"type": 5, "data": "0x7b7d"}})
    assert (without["tag"], without["json"]) == ("", {})


def test_traits_of_an_nft_are_told_in_words() -> None:
    attributes = [
        {"trait_type": "Background", "value": "Blue"},
        {"trait_type": "Level", "value": 5, "display_type": "number"},
        {"trait_type": "Broken"},
        "not an object",
        {"trait_type": 7, "value": "no name"},
    ]
    content = {"standard": "IRC27", "version": "v1.0", "name": "One", "attributes": attributes}
    raw = json.dumps(content).encode().hex()
    [found] = metadata({"immutableFeatures": [{"type": 2, "data": f"0x{raw}"}]})
    assert found["traits"] == [["Background", "Blue"], ["Level", "5"]]
    for other in ({"attributes": {"a": 1}}, {"attributes": None}, {}):
        raw = json.dumps({"standard": "IRC27", **other}).encode().hex()
        [found] = metadata({"immutableFeatures": [{"type": 2, "data": f"0x{raw}"}]})
        assert found["traits"] == []
