"""NFTs, names of tokens and what they become: questions about them, and rows of ``chain_details``."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from permalake.wormhole.codec.native_addresses import base58
from permalake.wormhole.reference import load_reference
from permalake.wormhole.tables.chain_questions import SCHEMA, WITH_DECIMALS, questions
from support.wormhole_queries import enriched_rows, query_rows

DAY = dt.date(2024, 3, 10)
EMITTER = "0e" * 32
APES, SPL = "00" * 12 + "aa" * 20, "01" * 32
MINT = bytes(range(32))
NOON = dt.datetime(2024, 3, 10, 12, tzinfo=dt.UTC)
TOKEN_OF_DAY = pa.schema(
    [("date", pa.date32()), ("origin_chain", pa.int32()), ("origin_address", pa.string())]
)
ANSWER = ("chain", "question", "subject", "address", "symbol", "name", "date")


def transfer(number, chain, address, target, **more):
    return {
        **{"row_key": f"{chain}:{EMITTER}:{number:016d}", "date": DAY},
        **{"origin_chain": chain, "origin_address": address},
        **{"target_chain": target, "target_address": "00" * 32, **more},
    }


# Two NFTs of one collection to BSC and to Solana, an NFT of Solana abroad and another one home, and a token
# of the same address as the collection.
NFTS = [
    transfer(number, chain, address, target, symbol="NFT", name="Some NFT", token_id=token_id)
    for number, (chain, address, target, token_id) in enumerate(
        [
            (2, APES, 4, "7"),
            (2, APES, 4, "8"),
            (2, APES, 1, "7"),
            (2, APES, 1, str(2**256 - 1)),
            (1, SPL, 4, "9"),
            (1, SPL, 1, str(int.from_bytes(MINT, "big"))),
            (1, MINT.hex(), 1, "0"),
        ]
    )
]
TRANSFERS = [transfer(100, 2, APES, 4)]


def asked(transfers, nfts=(), told=(), **given):
    rows = [dict(zip(TOKEN_OF_DAY.names, one, strict=True)) for one in told]
    tables = {"token_transfer_payload": transfers, "nft_transfer_payload": list(nfts), **given}
    known = {WITH_DECIMALS: pa.Table.from_pylist(rows, TOKEN_OF_DAY)}
    found_rows = query_rows(questions(load_reference().chains), SCHEMA, tables, known)
    return sorted(found_rows, key=lambda row: (row["question"], row["chain"], row["subject"]))


def test_a_wrapped_nft_is_asked_for_by_collection_and_on_solana_by_token_id() -> None:
    rows = asked(TRANSFERS, NFTS)
    wrapped = [row for row in rows if row["question"].startswith("wrapped")]
    assert sorted((row["chain"], row["question"], row["subject"]) for row in wrapped) == [
        (1, "wrapped_nft", f"2:{APES}:{2**256 - 1}"),
        (1, "wrapped_nft", f"2:{APES}:7"),
        (4, "wrapped", f"2:{APES}"),
        (4, "wrapped_nft", f"1:{SPL}"),
        (4, "wrapped_nft", f"2:{APES}"),
    ]


def test_senders_owners_and_untold_tokens_are_asked_for_once() -> None:
    """Chains without a supported RPC are asked nothing, nor is a token whose decimals are known."""
    transfers = [transfer(0, 2, APES, 1), transfer(1, 2, APES, 1), transfer(2, 8, APES, 4)]
    other = "00" * 12 + "bb" * 20
    moved = {
        **{"row_key": transfers[0]["row_key"], "date": DAY, "in_token_transfers": 0},
        **{"token_chain": 2, "token_address": other, "amount_decimals": None},
    }
    stated = {**moved, "token_address": "00" * 12 + "cc" * 20, "amount_decimals": 6}
    published = [
        {
            **{"row_key": row["row_key"], "date": DAY, "emitter_chain": row["origin_chain"]},
            **{"initiating_tx_id": "0xtx", "timestamp": NOON},
        }
        for row in transfers
    ]
    given = {"message_publication": published, "application_transfers": [moved, stated]}
    rows = asked(transfers, told=[(DAY, 2, APES)], **given)
    owner = {"question": "owner", "chain": 1, "subject": "00" * 32, "tx_id": None, "at": 0}
    token = {"question": "token", "chain": 2, "subject": other, "tx_id": None, "at": 0}
    senders = [
        {
            **{"question": "sender", "chain": 2, "subject": transfers[number]["row_key"]},
            **{"tx_id": "0xtx", "at": int(NOON.timestamp())},
        }
        for number in (0, 1)
    ]
    wanted = [{**row, "date": DAY} for row in (owner, *senders, token)]
    assert [row for row in rows if row["question"] != "wrapped"] == wanted


HASHED = "01" + "ab" * 31


def test_names_are_asked_of_tokens_that_are_hashes_and_not_listed() -> None:
    listed = next(one for one in load_reference().tokens.values() if one.chain == 22 and one.native_address)
    tokens = [(18, HASHED), (22, HASHED), (22, listed.token_address), (2, APES), (1, MINT.hex())]
    rows = asked([transfer(n, chain, token, chain) for n, (chain, token) in enumerate(tokens)])
    names = {(row["chain"], row["subject"]) for row in rows if row["question"] == "native"}
    assert names == {(18, HASHED), (22, HASHED)}


def test_a_token_has_its_native_form_or_the_name_of_a_registry() -> None:
    listed = next(one for one in load_reference().tokens.values() if one.chain == 22 and one.native_address)
    names = {
        (18, HASHED): "ibc/7",
        (22, HASHED): None,
        (22, listed.token_address): listed.native_address,
        (2, APES): f"0x{APES[24:]}",
        (1, MINT.hex()): base58(MINT),
    }
    rows = [
        {
            **{"row_key": f"{chain}:{EMITTER}:{number:016d}", "date": DAY, "amount": "1"},
            **{"origin_chain": chain, "origin_address": address},
            **{"target_chain": chain, "target_address": "00" * 32},
        }
        for number, (chain, address) in enumerate(names)
    ]
    given = {
        "token_transfer_payload": rows,
        "message_publication": [{name: row[name] for name in ("row_key", "date")} for row in rows],
        "known_answers": [
            {"chain": 18, "question": "native", "subject": HASHED, "address": "ibc/7", "date": DAY},
            {"chain": 22, "question": "token", "subject": HASHED, "address": "x", "date": DAY},
        ],
    }
    made = enriched_rows(given, "token_transfer_details", "chain_details")
    told = {row["row_key"]: row["origin_token_address"] for row in made["token_transfer_details"]}
    home = {row["row_key"]: row["resulting_token_address"] for row in made["chain_details"]}
    assert told == home == dict(zip((row["row_key"] for row in rows), names.values(), strict=True))


def test_what_becomes_of_an_nft() -> None:
    answers = [
        (4, "wrapped", f"2:{APES}", "0xcoin", "APE", "ApeCoin (Wormhole)", DAY),
        (4, "wrapped_nft", f"2:{APES}", "0xapes", "BAYC", "Apes", DAY),
        (1, "wrapped_nft", f"2:{APES}:7", "Seven", "BAYC", "Ape 7", DAY),
    ]
    given = {
        "token_transfer_payload": TRANSFERS,
        "token_transfer_details": [
            {**row, "origin_symbol": "APE", "origin_name": "ApeCoin"} for row in TRANSFERS
        ],
        "nft_transfer_payload": NFTS,
        "known_answers": [dict(zip(ANSWER, answer, strict=True)) for answer in answers],
    }
    rows = enriched_rows(given, "chain_details")["chain_details"]
    told = {
        int(row["row_key"].split(":")[2]): tuple(
            row[f"resulting_token_{name}"] for name in ("address", "symbol", "name")
        )
        for row in rows
    }
    home = (base58(MINT), "NFT", "Some NFT")
    assert told == {
        0: ("0xapes", "BAYC", "Apes"),
        1: ("0xapes", "BAYC", "Apes"),
        2: ("Seven", "BAYC", "Ape 7"),
        3: (None, None, None),
        4: (None, None, None),
        5: home,
        6: home,
        100: ("0xcoin", "APE", "ApeCoin (Wormhole)"),
    }
