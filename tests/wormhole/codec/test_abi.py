"""Contract calls and results. Selectors and the event's topic are those of the deployed contracts."""

from __future__ import annotations

import pytest

from permalake.wormhole.codec import abi


def word(value):
    return value.to_bytes(32, "big")


def string(value):
    return word(32) + word(len(value)) + value + bytes(-len(value) % 32)


def test_calls_are_what_contracts_expect() -> None:
    topic = abi.topic("LogMessagePublished(address,uint64,uint32,bytes,uint8)")
    assert topic.hex() == "6eb224fb001ed210e379b335e35efe88672a8ce935d981a6896b27ffdf52a3b2"
    assert [abi.selector(f"{name}()").hex() for name in ("symbol", "name", "decimals")] == [
        "95d89b41",
        "06fdde03",
        "313ce567",
    ]
    token = bytes.fromhex("00" * 12 + "c02aaa39b223fe8d0a0e5c4f27ead9083c756cc2")
    call = abi.call("wrappedAsset(uint16,bytes32)", 2, token)
    assert call == "0x1ff1e286" + word(2).hex() + token.hex()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (string(b"USDC"), "USDC"),
        (string(b""), ""),
        (string(b" (Wormhole)"), " (Wormhole)"),
        (string(b"\0\0LEFT\0"), "LEFT"),
        (string(b"Caf\xe9 Coin"), "Caf\ufffd Coin"),
        (string("Ω".encode() * 40), "Ω" * 40),
        (b"MKR".ljust(32, b"\0"), "MKR"),
        (b"MKR".rjust(32, b"\0"), "MKR"),
        (bytes(32), ""),
        (("Ω" * 16).encode()[:31] + b"\0", "Ω" * 15),
        (b"\xffBAD".ljust(32, b"\0"), "\ufffdBAD"),
        (b"", None),
        (b"MKR", None),
        (word(32) + word(5) + b"USDC", None),
        (word(2**255) + word(4) + b"USDC".ljust(32, b"\0"), None),
        (string(b"x" * 1025), None),
    ],
)
def test_texts_as_strings_and_as_words(data, text) -> None:
    assert abi.text(data) == text


def test_addresses_and_numbers() -> None:
    token = bytes.fromhex("c02aaa39b223fe8d0a0e5c4f27ead9083c756cc2")
    assert abi.address(token.rjust(32, b"\0")) == "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"
    assert [abi.address(data) for data in (b"", bytes(32), token)] == [None, None, None]
    assert [abi.number(data) for data in (word(18), word(2**256 - 1), b"", b"\x12")] == [
        18,
        2**256 - 1,
        None,
        None,
    ]
