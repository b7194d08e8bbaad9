"""Hex, bech32, slices and the Merkle tree against published vectors."""

from __future__ import annotations

from hashlib import blake2b

import bech32
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from permalake.arrays.cursor import load
from permalake.arrays.hexa import from_hex, hex_slices, to_hex
from permalake.arrays.slices import fixed, slices
from permalake.iota.codec.bech32 import decode_address, encode_addresses
from permalake.iota.codec.merkle import audit_path, merkle_root, root_from_path

# TIP-4, example; TIP-31, examples.
LEAVES = [
    "52fdfc072182654f163f5f0f9a621d729566c74d10037c4d7bbb0407d1e2c649",
    "81855ad8681d0d86d1e91e00167939cb6694d2c422acd208a0072939487f6999",
    "eb9d18a44784045d87f3c67cf22746e995af5a25367951baa2ff6cd471c483f1",
    "5fb90badb37c5821b6d95526a41a9504680b4e7c8b763a1b1d49d4955c848621",
    "6325253fec738dd7a9e28bf921119c160f0702448615bbda08313f6a8eb668d2",
    "0bf5059875921e668a5bdf2c7fc4844592d2572bcd0668d2d6c52f5054e2d083",
    "6bf84c7174cb7476364cc3dbd968b0f7172ed85794bb358b0c3b525da1786f9f",
]
ROOT = "bf67ce7ba23e8c0951b5abaec4f5524360d2c26d971ff226d3359fa70cdb0beb"
ADDRESSES = {
    "iota1qrhacyfwlcnzkvzteumekfkrrwks98mpdm37cj4xx3drvmjvnep6xqgyzyx": 0,
    "smr1qrhacyfwlcnzkvzteumekfkrrwks98mpdm37cj4xx3drvmjvnep6xhcazjh": 0,
    "iota1prlgpsht03ekmghhex8v7y67a835uns8dtlxu807hj0v279c74kj76j6rev": 8,
    "smr1prlgpsht03ekmghhex8v7y67a835uns8dtlxu807hj0v279c74kj7dzrr0a": 8,
    "iota1zqc4nvg4ufcj3dkmzmd4uc034fx8pkz2nxl820a28mnsmxkec6ntw0vklm7": 16,
    "smr1zqc4nvg4ufcj3dkmzmd4uc034fx8pkz2nxl820a28mnsmxkec6ntwcu0ld0": 16,
}


def test_merkle_root_of_the_published_example() -> None:
    leaves = [bytes.fromhex(leaf) for leaf in LEAVES]
    assert merkle_root(leaves).hex() == ROOT
    assert merkle_root([]) == blake2b(b"", digest_size=32).digest()


@given(st.lists(st.binary(min_size=1, max_size=32), min_size=1, max_size=40, unique=True), st.data())
@settings(max_examples=50)
def test_audit_paths_lead_to_the_root_and_only_from_their_leaf(leaves, data) -> None:
    at = data.draw(st.integers(0, len(leaves) - 1))
    path = audit_path(leaves, at)
    assert root_from_path(leaves[at], path) == merkle_root(leaves)
    assert root_from_path(leaves[at] + b"x", path) != merkle_root(leaves)


@pytest.mark.parametrize(("text", "kind"), ADDRESSES.items())
def test_published_addresses_decode_and_encode(text, kind) -> None:
    hrp, decoded_kind, value = decode_address(text)
    assert (hrp, decoded_kind) == (text.partition("1")[0], kind)
    column = encode_addresses(
        hrp, np.array([-1, kind], np.int16), np.frombuffer(bytes(32) + value, np.uint8).reshape(2, 32)
    )
    assert column.to_pylist() == [None, text]
    column.validate(full=True)


def test_addresses_with_a_wrong_letter_are_refused() -> None:
    for text in (*(name[:-1] + "q" for name in ADDRESSES), "", "iota1", "iota1qqqqqqqq"):
        with pytest.raises(ValueError, match="is no address"):
            decode_address(text)


@given(st.lists(st.tuples(st.sampled_from([-1, 0, 8, 16]), st.binary(min_size=32, max_size=32)), max_size=12))
@settings(max_examples=50)
def test_addresses_are_those_of_the_reference_implementation(addresses) -> None:
    kind = np.array([address for address, _ in addresses], np.int16)
    value = np.frombuffer(b"".join(raw for _, raw in addresses), np.uint8).reshape(-1, 32)
    expected = [
        None
        if address < 0
        else bech32.bech32_encode("atoi", bech32.convertbits(bytes([address]) + raw, 8, 5))
        for address, raw in addresses
    ]
    assert encode_addresses("atoi", kind, value).to_pylist() == expected


@given(st.lists(st.one_of(st.none(), st.binary(max_size=40)), max_size=20), st.booleans())
@settings(max_examples=80)
def test_hex_there_and_back(values, prefixed) -> None:
    texts = [None if value is None else ("0x" if prefixed else "") + value.hex() for value in values]
    assert from_hex(texts).to_pylist() == values
    assert from_hex(pa.array(["odd", *texts])[1:]).to_pylist() == values, "sliced arrays too"
    held = [value for value in values if value]
    data, start, length = load(pa.array(held, pa.binary()))
    assert slices(data, start, length).to_pylist() == held
    assert hex_slices(data, start, length).to_pylist() == [value.hex() for value in held]


@pytest.mark.parametrize("bad", ["0", "0x0", "zz", "0x0g", "a b ", "0x0x00", "ab\n1", "ä0"])
def test_what_is_no_hex_is_null_and_spoils_no_neighbour(bad) -> None:
    assert from_hex(["00ff", bad, "0xFF"]).to_pylist() == [b"\x00\xff", None, b"\xff"]


def test_hex_of_fixed_width_rows() -> None:
    values = np.arange(6, dtype=np.uint8).reshape(3, 2) * 40
    assert to_hex(values).to_pylist() == ["0028", "5078", "a0c8"]
    assert fixed(values).to_pylist() == [b"\x00\x28", b"\x50\x78", b"\xa0\xc8"]
    assert to_hex(values[:0]).to_pylist() == []
