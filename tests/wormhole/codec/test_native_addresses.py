from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest
from sha3 import keccak_256

from permalake.wormhole.codec.native_addresses import base58, native_addresses, native_tokens
from permalake.wormhole.reference import load_reference
from support.vaa_data import SYNTHETIC, synthetic_rows

CHAINS = load_reference().chains
PAD = "0" * 24


def hashed(name, marker=1):
    """What a CosmWasm token bridge makes of a denomination (1) or contract (0)."""
    return f"{marker:02x}" + keccak_256(name.encode()).hexdigest()[2:]


def one(form, chain, address):
    return form(pa.array([chain], pa.int32()), pa.array([address], pa.string()), CHAINS)[0].as_py()


@pytest.mark.parametrize(
    ("chain", "address", "native"),
    [
        (2, PAD + "a0b86991c6218b36c1d19d4a2e9eb0ce3606eb48", "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"),
        (40, PAD + "0" * 40, "0x" + "0" * 40),
        (2, "1" + PAD[1:] + "a0b86991c6218b36c1d19d4a2e9eb0ce3606eb48", None),
        (
            1,
            "069b8857feab8184fb687f634618c035dac439dc1aeb3b5598a0f00000000001",
            "So11111111111111111111111111111111111111112",
        ),
        (1, "0" * 64, "1" * 32),
        (3, PAD + "5378fe730d64921c1465a1fd8f9580882cbe0939", "terra12du0uucdvjfpc9r9587cl9vq3qktuzfe8l974k"),
        (
            18,
            "7ff63351746e69411915ed9904ff1bb37aab5ec7914fca70250233ebad4c9e8c",
            "terra10lmrx5t5de55zxg4akvsflcmkda2khk8j98u5up9qge7ht2vn6xq3pjapj",
        ),
        (19, PAD + "78dc2d47687390b0f5dcf7f2a91b78f63963bf42", "inj10rwz63mgwwgtpawu7le2jxmc7cuk806zeg67j2"),
        (
            8,
            "bd3893517506de3b4feea602275c1f26cbde307d8ffb454e13f057143483685b",
            "XU4JGULVA3PDWT7OUYBCOXA7E3F54MD5R75UKTQT6BLRINEDNBN2JRWJU4",
        ),
        (21, "62" * 32, "0x" + "62" * 32),
        (22, "0" * 63 + "1", "0x" + "0" * 63 + "1"),
        (15, hashlib.sha256(b"wrap.near").hexdigest(), "wrap.near"),
        (15, "11" * 32, None),
        # As Wormholescan writes it in a recorded operation.
        (73, PAD + "553f022201fa7c88e6cc10d1c688b157d6fa7775", "0x553f022201fa7c88e6cc10d1c688b157d6fa7775"),
        (
            65000,
            PAD + "71a1b9fc7959e1dca85194dafafa9081e382f4b6",
            "0x71a1b9fc7959e1dca85194dafafa9081e382f4b6",
        ),
        (56, "1" * 64, "0x" + "1" * 64),
        # USDT's contract, and the example of CPAN's CryptoTron::AddrTools.
        (70, PAD + "a614f803b6fd780986a42c78ec9c7f77e6ded13c", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"),
        (70, PAD + "9d1015e669c2df831003c5c54ceb48da613d9979", "TQHgMpVzWkhSsRB4BzZgmV8uW4cFL8eaBr"),
        (70, "41" * 32, None),
        # Special addresses as xrpl.org lists them: zero, one, genesis.
        (66, "0" * 64, "rrrrrrrrrrrrrrrrrrrrrhoLvTp"),
        (66, "1".rjust(64, "0"), "rrrrrrrrrrrrrrrrrrrrBZbvji"),
        (66, PAD + "b5f762798a53d543a014caf8b297cff8f2f937e8", "rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh"),
        (66, "12" * 32, None),
        # Key or contract, workchain, kind of script, hash: their bytes do not tell.
        (61, "363eaa3867841fbad0f4ed88c779e4fe66e56a2470dc98c0ec9c073d05c7b103", None),
        *((chain, PAD + "12" * 20, None) for chain in (29, 60, 62, 65)),
        (64999, "22" * 32, None),
        (2, None, None),
        (None, "22" * 32, None),
    ],
)
def test_accounts_as_their_chain_writes_them(chain, address, native) -> None:
    assert one(native_addresses, chain, address) == native


@pytest.mark.parametrize(
    ("chain", "address", "native"),
    [
        (3, "01" + "75757364".rjust(62, "0"), "uusd"),
        (3, PAD + "5378fe730d64921c1465a1fd8f9580882cbe0939", "terra12du0uucdvjfpc9r9587cl9vq3qktuzfe8l974k"),
        (8, "180915f6c0".rjust(64, "0"), "103231649472"),
        (8, "0" * 64, "0"),
        (19, "017038850bf3af746c36803cce35009268f00d22ae2b55ffb59ac5f2a6add40b", "inj"),
        (15, hashlib.sha256(b"token.sweat").hexdigest(), "token.sweat"),
        # Hashes with the bridge's marker, 1 for a denomination and 0 for a contract: null unless listed.
        (18, hashed("uluna"), "uluna"),
        (28, hashed("axpla"), "axpla"),
        (32, hashed("usei"), "usei"),
        *((chain, hashed("factory/someone/coin"), None) for chain in (18, 19, 28, 32, 3104)),
        *((chain, hashed("terra1contract", 0), None) for chain in (18, 19, 28, 32, 3104)),
        (22, hashlib.sha3_256(b"0x1::aptos_coin::AptosCoin").hexdigest(), "0x1::aptos_coin::AptosCoin"),
        (22, hashlib.sha3_256(b"0x5::some_coin::Coin").hexdigest(), None),
        (22, "0" * 63 + "1", None),
        (2, PAD + "a0b86991c6218b36c1d19d4a2e9eb0ce3606eb48", "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"),
        # SEP-23's contract.
        (
            61,
            "363eaa3867841fbad0f4ed88c779e4fe66e56a2470dc98c0ec9c073d05c7b103",
            "CA3D5KRYM6CB7OWQ6TWYRR3Z4T7GNZLKERYNZGGA5SOAOPIFY6YQGAXE",
        ),
        # The three kinds of the ledger: XRP, a currency of an issuer (a hash), a multi-purpose token.
        (66, "0" * 64, "XRP"),
        (66, "01" + "ab" * 31, None),
        (66, "02" + "0" * 14 + "0000abcd" + "12" * 20, "0000ABCD" + "12" * 20),
        (70, PAD + "a614f803b6fd780986a42c78ec9c7f77e6ded13c", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"),
        (65000, PAD + "12" * 20, None),
    ],
)
def test_tokens_as_their_chain_writes_them(chain, address, native) -> None:
    assert one(native_tokens, chain, address) == native


def test_columns_of_many_chains_keep_their_order() -> None:
    rows = [(2, PAD + "0a" * 20), (21, "0b" * 32), (2, PAD + "0c" * 20), (21, "0b" * 32), (15, "0d" * 32)]
    chain, address = (pa.array(column) for column in zip(*rows, strict=True))
    assert native_addresses(chain, address, CHAINS).to_pylist() == [
        "0x" + "0a" * 20,
        "0x" + "0b" * 32,
        "0x" + "0c" * 20,
        "0x" + "0b" * 32,
        None,
    ]


def test_every_native_form_of_the_synthetic_world() -> None:
    """Solana receivers are token accounts there, whose owner only the chain can tell."""
    chains = load_reference(SYNTHETIC / "reference").chains
    payloads = {
        row["row_key"]: row
        for table in ("token_transfer_payload", "nft_transfer_payload")
        for row in synthetic_rows(table)
    }

    def compare(form, rows, column, chain, address):
        rows = [row for row in rows if row["row_key"] in payloads and column not in row.get("_dc", ())]
        told = [payloads[row["row_key"]] for row in rows]
        kept = [i for i, row in enumerate(told) if not (chain == "target_chain" and row[chain] == 1)]
        found = form(
            pa.array([told[i][chain] for i in kept], pa.int32()),
            pa.array([told[i][address] for i in kept]),
            chains,
        )
        assert found.to_pylist() == [rows[i][column] for i in kept]
        return len(kept), {told[i][chain] for i in kept}

    tokens = synthetic_rows("token_transfer_details")
    count, seen = compare(native_tokens, tokens, "origin_token_address", "origin_chain", "origin_address")
    assert count > 400
    assert {1, 2, 3, 8, 18, 21} <= seen
    details = synthetic_rows("chain_details")
    count, seen = compare(native_addresses, details, "receiver_address", "target_chain", "target_address")
    assert count > 300
    assert {2, 3, 8, 18, 19, 21, 22, 28, 32} <= seen


def test_base58_keeps_leading_zeros() -> None:
    assert base58(b"") == ""
    assert base58(b"\0\0\1") == "112"
    assert base58(b"Hello World!") == "2NEpo7TZRRrLZSi2U"
