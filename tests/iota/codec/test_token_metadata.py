"""Metadata that anybody may write: what TIP-27 and TIP-30 define is read, anything else is absent."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permalake.iota.codec.token_metadata import NftMetadata, TokenMetadata, nft_metadata, token_metadata

NFT = {"standard": "IRC27", "version": "v1.0", "type": "image/png", "uri": "ipfs://x", "name": "Ünique #1"}
TOKEN = {"standard": "IRC30", "name": "Coin", "symbol": "CN", "decimals": 6}
HOSTILE = {
    "nothing": b"",
    "no JSON": b'{"standard":"IRC27"',
    "no UTF-8": b'{"standard":"IRC27","name":"\xff"}',
    "UTF-16": json.dumps(NFT).encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + json.dumps(NFT).encode(),
    "a list": b'["standard","IRC27"]',
    "another standard": json.dumps(NFT | {"standard": "irc27"}).encode(),
    "a nested standard": b'{"standard":["IRC27"]}',
    "deep nesting": b'{"standard":"IRC27","x":' + b"[" * 4000 + b"]" * 4000 + b"}",
    "a long number": b'{"standard":"IRC27","x":' + b"9" * 8000 + b"}",
}


def test_fields_of_the_standards() -> None:
    assert nft_metadata(json.dumps(NFT).encode()) == NftMetadata(None, "Ünique #1", "ipfs://x")
    of_collection = json.dumps(NFT | {"collectionName": "All"}).encode()
    assert nft_metadata(of_collection).collection == "All"
    assert token_metadata(json.dumps(TOKEN).encode()) == TokenMetadata("Coin", "CN", 6)


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_metadata_of_a_standard_has_no_fields(raw) -> None:
    assert nft_metadata(raw) == NftMetadata()
    assert token_metadata(raw) == TokenMetadata()


@pytest.mark.parametrize("value", [7, None, True, ["x"], {"x": 1}])
def test_a_field_of_another_type_is_absent_alone(value) -> None:
    raw = json.dumps(NFT | {"name": value}).encode()
    assert nft_metadata(raw) == NftMetadata(None, None, "ipfs://x")


@pytest.mark.parametrize("decimals", [-1, 2**31, 1.5, True, "6", None])
def test_decimals_are_a_number_that_the_column_holds(decimals) -> None:
    assert token_metadata(json.dumps(TOKEN | {"decimals": decimals}).encode()).decimals is None


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    [name] = pa.array([nft_metadata(b'{"standard":"IRC27","name":"a\\ud800"}').name]).to_pylist()
    assert name == "a?"


@given(st.binary(max_size=300) | st.recursive(st.text(), st.lists).map(lambda one: json.dumps(one).encode()))
def test_any_bytes_are_read(raw) -> None:
    for told in (nft_metadata(raw), token_metadata(raw)):
        pa.array([told._asdict()]).validate(full=True)
