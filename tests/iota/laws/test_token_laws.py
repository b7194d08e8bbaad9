"""Native tokens are kept: a transaction may burn them, unless it mints them."""

import datetime as dt

import pytest

from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.laws import token_laws
from support.audit_days import scope, violations

DAY = dt.date(2022, 9, 28)
ID, TOKEN = "aa" * 32, "cc" * 38
[KEPT] = [law for law in token_laws.LAWS if law.name == "tokens_are_kept"]
GREAT = 2**256 - 1


@pytest.mark.parametrize(
    ("consumed", "minted", "melted", "created", "wrong"),
    [
        (5, 0, 0, 5, None),
        (5, 0, 0, 3, None),
        (5, 0, 2, 3, None),
        (5, 7, 0, 12, None),
        (GREAT, 0, 0, GREAT, None),
        (GREAT - 1, 0, 0, GREAT, "1 more"),
        (5, 0, 2, 4, "1 more"),
        (5, 7, 0, 11, "less"),
    ],
)
def test_a_transaction_creates_what_it_consumes_and_mints(consumed, minted, melted, created, wrong) -> None:
    held = [{"is_spent": 1, "amount": str(consumed)}, {"is_spent": 0, "amount": str(created)}]
    foundry = {"foundry_id": TOKEN, "newly_minted": str(minted), "newly_melted": str(melted)}
    found = violations(
        [KEPT],
        scope(
            _rows(
                native_tokens=[{"transaction_id": ID, "token_id": TOKEN, **row} for row in held],
                foundry_outputs=[{"output_id": f"{ID}0000", **foundry}],
            )
        ),
    )
    assert [row["found"] for row in found] == ([] if wrong is None else [wrong])


def _rows(**tables):
    rows = {name: [] for name in IOTA_TABLES}
    for name, those in tables.items():
        empty = dict.fromkeys(IOTA_TABLES[name].names)
        rows[name] = [{**empty, "date": DAY, **row} for row in those]
    return rows
