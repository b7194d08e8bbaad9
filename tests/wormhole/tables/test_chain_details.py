"""NFTs, names of tokens and what they become: questions about them, and rows of ``chain_details``."""

from __future__ import annotations

import datetime as dt

import pytest

from permalake.wormhole.codec.native_addresses import base58
from permalake.wormhole.reference import load_reference
from permalake.wormhole.tables.chain_questions import questions
from support.wormhole_queries import ENGINES, enriched_rows

DAY = dt.date(2024, 3, 10)
EMITTER = "0e" * 32
APES, SPL = "00" * 12 + "aa" * 20, "01" * 32
MINT = bytes(range(32))
ROUTE = "row_key string, date date, origin_chain int, origin_address string, target_chain int, "
NFTS = f"{ROUTE} target_address string, symbol string, name string, token_id string"
TRANSFERS = f"{ROUTE} target_address string"
EVENTS = "row_key string, date date, emitter_chain int, initiating_tx_id string, timestamp timestamp"
METADATA = "date date, origin_chain int, origin_address string, decimals int"
ANSWER = ("chain", "question", "subject", "address", "symbol", "name", "date")


@pytest.fixture(scope="module")
def moved(spark):
    """Two NFTs of one collection to BSC and to Solana, an NFT of Solana abroad and another one home, and a
    token of the same address as the collection."""
    rows = [
        (2, APES, 4, "7"),
        (2, APES, 4, "8"),
        (2, APES, 1, "7"),
        (2, APES, 1, str(2**256 - 1)),
        (1, SPL, 4, "9"),
        (1, SPL, 1, str(int.from_bytes(MINT, "big"))),
        (1, MINT.hex(), 1, "0"),
    ]
    named = [
        (f"2:{EMITTER}:{number:016d}", DAY, chain, address, target, "00" * 32, "NFT", "Some NFT", token_id)
        for number, (chain, address, target, token_id) in enumerate(rows)
    ]
    token = (f"2:{EMITTER}:{100:016d}", DAY, 2, APES, 4, "00" * 32)
    return spark.createDataFrame([token], TRANSFERS), spark.createDataFrame(named, NFTS)


def test_a_wrapped_nft_is_asked_for_by_collection_and_on_solana_by_token_id(spark, moved):
    events, metadata = spark.createDataFrame([], EVENTS), spark.createDataFrame([], METADATA)
    asked = questions(*moved, events, metadata, load_reference().chains)
    rows = asked.where("question LIKE 'wrapped%'").select("chain", "question", "subject").collect()
    assert sorted(map(tuple, rows)) == [
        (1, "wrapped_nft", f"2:{APES}:{2**256 - 1}"),
        (1, "wrapped_nft", f"2:{APES}:7"),
        (4, "wrapped", f"2:{APES}"),
        (4, "wrapped_nft", f"1:{SPL}"),
        (4, "wrapped_nft", f"2:{APES}"),
    ]


HASHED = "01" + "ab" * 31


def test_names_are_asked_of_tokens_that_are_hashes_and_not_listed(spark, moved):
    listed = next(one for one in load_reference().tokens.values() if one.chain == 22 and one.native_address)
    tokens = [(18, HASHED), (22, HASHED), (22, listed.token_address), (2, APES), (1, MINT.hex())]
    rows = [
        (f"{chain}:{EMITTER}:{number:016d}", DAY, chain, address, chain, "00" * 32)
        for number, (chain, address) in enumerate(tokens)
    ]
    transfers = spark.createDataFrame(rows, TRANSFERS)
    events, metadata = spark.createDataFrame([], EVENTS), spark.createDataFrame([], METADATA)
    asked = questions(transfers, moved[1].limit(0), events, metadata, load_reference().chains)
    found = asked.where("question = 'native'").select("chain", "subject").collect()
    assert {tuple(row) for row in found} == {(18, HASHED), (22, HASHED)}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_token_has_its_native_form_or_the_name_of_a_registry(spark, engine):
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
    found = enriched_rows(engine, spark, given, "token_transfer_details", "chain_details")
    told = {row["row_key"]: row["origin_token_address"] for row in found["token_transfer_details"]}
    home = {row["row_key"]: row["resulting_token_address"] for row in found["chain_details"]}
    assert told == home == dict(zip((row["row_key"] for row in rows), names.values(), strict=True))


@pytest.mark.parametrize("engine", ENGINES)
def test_what_becomes_of_an_nft(spark, moved, engine):
    answers = [
        (4, "wrapped", f"2:{APES}", "0xcoin", "APE", "ApeCoin (Wormhole)", DAY),
        (4, "wrapped_nft", f"2:{APES}", "0xapes", "BAYC", "Apes", DAY),
        (1, "wrapped_nft", f"2:{APES}:7", "Seven", "BAYC", "Ape 7", DAY),
    ]
    transfers, nfts = (frame.toArrow().to_pylist() for frame in moved)
    given = {
        "token_transfer_payload": transfers,
        "token_transfer_details": [
            {**row, "origin_symbol": "APE", "origin_name": "ApeCoin"} for row in transfers
        ],
        "nft_transfer_payload": nfts,
        "known_answers": [dict(zip(ANSWER, answer, strict=True)) for answer in answers],
    }
    rows = enriched_rows(engine, spark, given, "chain_details")["chain_details"]
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
