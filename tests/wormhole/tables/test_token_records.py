"""Decimals, symbol and name of a token come from one record: attestation, token list, chain."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from permalake.wormhole.tables.enriched_tables import ANSWERS, INPUTS, METADATA
from permalake.wormhole.tables.moved_tokens import SCHEMAS, TOKENS
from permalake.wormhole.tables.token_metadata import ATTESTED, ENTRIES, ENTRY, completed
from support.quotes import LOCAL

ONE, TWO = dt.date(2024, 3, 1), dt.date(2024, 3, 2)


def table(schema, *rows):
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=False)) for row in rows], schema)


def test_the_first_record_that_has_a_token_gives_all_three_values() -> None:
    tokens = [(day, 2, token) for day in (ONE, TWO) for token in ("aa", "bb", "cc", "dd", "ee")]
    answered = [
        {"chain": 2, "question": question, "subject": subject, "symbol": "R", "decimals": decimals}
        for question, subject, decimals in (
            ("token", "cc", 3),
            ("token", "dd", 4),
            ("token", "aa", 5),
            ("owner", "ee", 6),
        )
    ]
    given = {
        TOKENS: table(SCHEMAS[TOKENS], *tokens),
        ATTESTED: table(INPUTS[METADATA], (TWO, 2, "aa", 8, None, "attested"), (TWO, 4, "bb", 1, "X", "X")),
        ENTRIES: table(
            ENTRY, (2, "aa", 18, "L", "listed"), (2, "bb", None, "B", "b"), (2, "dd", None, "D", "d")
        ),
        ANSWERS: pa.Table.from_pylist(answered, INPUTS[ANSWERS]),
    }
    query = {METADATA: completed(TOKENS, ANSWERS)}
    rows = LOCAL.results(query, {METADATA: INPUTS[METADATA]}, given)[METADATA].to_pylist()
    found = {
        (row["date"].day, row["origin_address"]): (row["decimals"], row["symbol"], row["name"])
        for row in rows
    }
    assert len(rows) == len(found)
    assert found == {
        (1, "aa"): (18, "L", "listed"),
        (2, "aa"): (8, None, "attested"),
        (1, "bb"): (None, "B", "b"),
        (2, "bb"): (None, "B", "b"),
        (1, "cc"): (3, "R", None),
        (2, "cc"): (3, "R", None),
        (1, "dd"): (4, "R", None),
        (2, "dd"): (4, "R", None),
    }
