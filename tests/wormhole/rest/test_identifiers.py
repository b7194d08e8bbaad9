"""Identifiers as clients spell them."""

from __future__ import annotations

import pytest

from permalake.wormhole.codec.native_addresses import base58
from permalake.wormhole.rest import identifiers
from support.served_wormhole import SOLANA_TRANSACTION

HASH = "ab" * 31 + "0f"


@pytest.mark.parametrize("text", [HASH, HASH.upper(), f"0x{HASH}", f"0X{HASH.upper()}"])
def test_a_transaction_id_is_found_with_and_without_0x_in_any_case(text) -> None:
    assert f"0x{HASH}" in identifiers.transaction_spellings(text)
    assert HASH in identifiers.transaction_spellings(text)


def test_a_solana_signature_may_be_hex_or_base58() -> None:
    raw = bytes(range(1, 65))
    assert base58(raw) in identifiers.transaction_spellings(raw.hex())
    assert raw.hex() in identifiers.transaction_spellings(base58(raw))
    assert SOLANA_TRANSACTION in identifiers.transaction_spellings(SOLANA_TRANSACTION)


def test_a_sui_digest_may_be_hex_or_base58() -> None:
    raw = bytes.fromhex(HASH)
    for text in (HASH, f"0x{HASH.upper()}", base58(raw)):
        assert {base58(raw), HASH} <= set(identifiers.transaction_spellings(text))


@pytest.mark.parametrize("text", ["", ".*", "0x' OR 1=1", "a" * 200, "a\nb", "%"])
def test_what_is_no_transaction_id_is_refused(text) -> None:
    if text == ".*":
        # As there, a pattern would match every row; here it equals none.
        text = ".*("
    with pytest.raises(ValueError, match="not a transaction id"):
        identifiers.transaction_spellings(text)


def test_an_emitter_may_be_padded_short_prefixed_or_base58() -> None:
    word = "0" * 24 + "3ee18b2214aff97000d974cf647e7c347e8fa585"
    for text in (word, f"0x{word}", word.upper(), f"0x{word[24:]}", word[24:]):
        assert identifiers.emitter_address(text) == word
    raw = bytes(range(32, 64))
    assert identifiers.emitter_address(base58(raw)) == raw.hex()


@pytest.mark.parametrize(
    ("chain", "emitter", "sequence"),
    [
        ("65536", HASH, "1"),
        ("-1", HASH, "1"),
        ("٢", HASH, "1"),
        ("2", "zz", "1"),
        ("2", HASH, "18446744073709551616"),
        ("2", HASH, "1e3"),
    ],
)
def test_a_message_id_out_of_range_is_refused_on_one_line(chain, emitter, sequence) -> None:
    with pytest.raises(ValueError, match=r"^(chain|address|sequence) .*(not|neither)") as refused:
        identifiers.message_id(chain, emitter, sequence)
    assert "\n" not in str(refused.value)


def test_a_row_key_pads_short_sequences_only() -> None:
    assert identifiers.message_id("2", HASH, "7").row_key == f"2:{HASH}:{'0' * 15}7"
    long = "13940208096455381020"
    message = identifiers.message_id("65535", HASH, long)
    assert message.row_key == f"65535:{HASH}:{long}"
    assert identifiers.of_row_key(message.row_key) == message
