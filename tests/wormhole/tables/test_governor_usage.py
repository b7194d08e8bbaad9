"""What chains sent of governed tokens beside their limits, against sums worked out by hand."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from permalake.wormhole.reference import load_reference
from support.wormhole_queries import enriched_rows

DAY, NEXT = date(2024, 3, 10), date(2024, 3, 11)
LISTED, OTHER = "aa" * 32, "bb" * 32
LIMITS = """chain,daily_limit_usd,big_transaction_usd,since
64001,1000,100,2024-03-01
64001,2000,500,2024-03-11
64002,0,0,2024-03-01
64003,10,1,2024-03-01
64003,,,2024-03-10
64004,50,,2024-03-01
"""
SENT = [  # chain, day, token, value
    (64001, DAY, LISTED, "99.99999999"),
    (64001, DAY, LISTED, "100"),
    (64001, DAY, OTHER, "7"),
    (64001, DAY, LISTED, None),
    (64001, NEXT, LISTED, "100"),
    (64002, DAY, LISTED, "5"),
    (64003, DAY, LISTED, "5"),
    (64004, NEXT, LISTED, "1000000"),
    (64005, DAY, LISTED, "5"),
]


@pytest.fixture
def reference(tmp_path):
    (tmp_path / "governor_limits.csv").write_text(LIMITS)
    return load_reference(tmp_path)


def test_each_day_has_the_limits_that_hold(reference) -> None:
    sent = [
        {
            **{"row_key": f"{chain}:{number}", "date": day, "origin_chain": 2, "origin_address": token},
            "notional_usd": value and Decimal(value),
        }
        for number, (chain, day, token, value) in enumerate(SENT)
    ]
    given = {
        "token_transfer_payload": sent,
        "token_transfer_details": sent,
        "listed_tokens": [{"origin_chain": 2, "origin_address": LISTED}],
        "governor_limits": reference.limit_table().to_pylist(),
    }
    found = enriched_rows(given, "governor_usage_daily")["governor_usage_daily"]
    assert sorted(tuple(row.values()) for row in found) == [
        (DAY, 64001, 1000, 100, 1, Decimal("99.99999999"), 1, Decimal(100)),
        (DAY, 64002, 0, 0, 1, Decimal(5), 0, Decimal(0)),
        (NEXT, 64001, 2000, 500, 1, Decimal(100), 0, Decimal(0)),
        (NEXT, 64004, 50, None, 1, Decimal(1000000), 0, Decimal(0)),
    ]


def test_bundled_limits_hold_one_after_the_other() -> None:
    limits = load_reference().limit_table().to_pylist()
    ethereum = [row for row in limits if row["emitter_chain"] == 2]
    assert [row["until"] for row in ethereum[:-1]] == [row["since"] for row in ethereum[1:]]
    assert ethereum[-1]["until"] is None
    assert {row["emitter_chain"] for row in limits} <= set(load_reference().chains)
