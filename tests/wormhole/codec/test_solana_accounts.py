"""Addresses that programs derive, against real ones: mints of Portal's wrapped tokens on Solana from
wormhole-foundation/wormhole-token-list (content/by_dest.csv), emitters from wormhole-foundation/wormhole."""

from __future__ import annotations

import pytest

from permalake.wormhole.codec import solana_accounts
from permalake.wormhole.codec.native_addresses import base58
from permalake.wormhole.reference import load_reference

BRIDGE = "wormDTUJ6AWPNvk59vGQbDvGJmqbDTdgWgAqcLBCgUb"
WRAPPED = [
    (2, "c02aaa39b223fe8d0a0e5c4f27ead9083c756cc2", "7vfCXTUXx5WJV5JADk17DUJ4ksgau7utNKj4b963voxs"),
    (2, "111111111117dc0aa78b770fa6a738034120c302", "AjkPkq3nsyDe1yKcbyZT7N4aK4Evv9om9tzhQD3wsRC"),
    (2, "009178997aff09a67d4caccfeb897fb79d036214", "4ThReWAbAVZjNVgs5Ui9Pk3cZ5TYaD9u6Y89fp6EFzoF"),
    (2, "7fc66500c84a76ad7e9c93437bfc5ac33e2ddae9", "3vAs4D1WE6Na4tCgt4BApgFfENbm8WY7q4cSPD1yM4Cg"),
    (4, "bb4cdb9cbd36b01bd1cbaebf2de08d9173bc095c", "9gP2kCy3wA1ctvYWQk75guqXuHfrEomqydHLtcTCqiLa"),
    (4, "0e09fabb73bd3ade0a17ecc321fd13a19e81ce82", "J8LKx7pr9Zxh9nMhhT7X3EBmj5RzuhFrHKyJAe2F2i9S"),
    (6, "b31f66aa3c1e785363f0875a1b74e27b85fd66c7", "KgV1GvrHQmRBY8sHQQeUKwTm2r2h8t4C8qt12Cw1HVE"),
    (6, "c7198437980c041c805a1edcba50c1ce5db95118", "B2wfeYz5VtBnQVrX4M8F6FeDrprVrzKPws5qg1in8bzR"),
    (7, "21c718c22d52d0f3a789b752d4c2fd5908a8a733", "S3SQfD6RheMXQ3EEYn1Z5sJsbtwfXdt7tSAVXPQFtYo"),
]


@pytest.mark.parametrize(("chain", "token", "mint"), WRAPPED, ids=[mint for *_, mint in WRAPPED])
def test_wrapped_mints_are_the_real_ones(chain, token, mint) -> None:
    assert solana_accounts.wrapped_mint(BRIDGE, chain, bytes.fromhex(token).rjust(32, b"\0")) == mint


@pytest.mark.parametrize(("bridge", "numbers"), [("token_bridge", {1, 51}), ("nft_bridge", {1})])
def test_the_programs_of_the_reference_data_are_those_of_its_emitters(bridge, numbers) -> None:
    known = load_reference().chains.items()
    chains = {number: chain for number, chain in known if chain.family == "solana"}
    programs = {number: getattr(chain, f"{bridge}_program") for number, chain in chains.items()}
    assert {number for number, program in programs.items() if program} == numbers
    for number in numbers:
        emitter = solana_accounts.from_base58(solana_accounts.derived_address(programs[number], b"emitter"))
        assert emitter.hex() == getattr(chains[number], bridge)


def test_every_nft_is_wrapped_by_a_mint_of_its_own() -> None:
    mints = {solana_accounts.wrapped_nft(BRIDGE, 2, bytes(32), token_id) for token_id in (0, 1, 2**256 - 1)}
    assert len(mints | {solana_accounts.wrapped_mint(BRIDGE, 2, bytes(32))}) == 4


def test_metadata_of_a_mint_is_where_metaplex_keeps_it() -> None:
    """USDC's metadata account, as explorers show it."""
    assert (
        solana_accounts.metadata_account("EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v")
        == "5x38Kp4hvdomTCnCrAny4UtMUt5rQBdB6px2K1Ui45Wq"
    )


def test_points_of_the_curve_are_told_from_derived_addresses() -> None:
    # Public keys of RFC 8032, 7.1, are points; so is the neutral element.
    for key in (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "01" + "00" * 31,
    ):
        assert solana_accounts.on_curve(bytes.fromhex(key))
    assert not any(solana_accounts.on_curve(solana_accounts.from_base58(mint)) for *_, mint in WRAPPED)


@pytest.mark.parametrize("value", [b"", b"\0\0\1", bytes(32), b"\xff" * 64, b"Hello World!"])
def test_base58_both_ways(value) -> None:
    assert solana_accounts.from_base58(base58(value)) == value


def test_what_is_no_base58() -> None:
    assert solana_accounts.from_base58("0OIl") is None


def test_accounts_that_are_too_short_tell_nothing() -> None:
    assert solana_accounts.token_account_owner(bytes(164)) is None
    assert solana_accounts.token_account_owner(bytes(165)) == "1" * 32
    assert solana_accounts.mint_decimals(bytes(44) + b"\x06" + bytes(37)) == 6
    assert (solana_accounts.mint_decimals(bytes(81)), solana_accounts.mint_decimals(bytes(165))) == (
        None,
        None,
    )
    head = b"\x04" + bytes(64)
    texts = b"".join(len(text).to_bytes(4, "little") + text for text in (b"Name\0\0", b"SYM\0"))
    assert solana_accounts.metadata_texts(head + texts + b"rest") == ("SYM", "Name")
    assert [solana_accounts.metadata_texts((head + texts)[:length]) for length in (0, 66, 75, 80)] == [
        None
    ] * 4
