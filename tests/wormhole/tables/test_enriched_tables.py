"""Values of transfers and their sums, against figures worked out by hand."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from permalake.wormhole.tables.enriched_tables import enriched_tables
from support.wormhole_queries import enriched_rows

DAY = dt.date(2024, 3, 10)
NOON = dt.datetime(2024, 3, 10, 12, tzinfo=dt.UTC)
EMITTER, TOKEN, OTHER, UNKNOWN = ("0e" * 32, "aa" * 32, "bb" * 32, "cc" * 32)
LARGEST = 2**256 - 1
RECIPIENT = "00" * 12 + "ee" * 20
PRICE = Decimal("0.123456789012345678")


def key(number) -> str:
    return f"2:{EMITTER}:{number:016d}"


def day_of(amounts):
    """A day with a bridged transfer of each (token, amount), published at noon, from Ethereum to BSC."""
    sent = [
        {
            **{"row_key": key(number), "date": DAY, "amount": amount, "timestamp": NOON},
            **{"origin_chain": 2, "origin_address": token, "target_chain": 4, "target_address": "dd" * 32},
        }
        for number, (token, amount) in enumerate(amounts)
    ]
    return {
        "token_transfer_payload": sent,
        "message_publication": sent,
        "token_metadata": [
            {"date": DAY, "origin_chain": 2, "origin_address": token, "decimals": 18, "symbol": symbol}
            for token, symbol in ((TOKEN, "TOK"), (OTHER, "OTH"))
        ],
        "quotes": [
            {
                **{"origin_chain": 2, "origin_address": TOKEN, "at": NOON, "price_usd": PRICE},
                **{"quote_time": NOON + dt.timedelta(seconds=90, microseconds=5), "provider": "file"},
            }
        ],
    }


def test_amounts_and_values_are_exact() -> None:
    given = day_of([(TOKEN, "150000000"), (TOKEN, str(LARGEST)), (OTHER, "1"), (UNKNOWN, "7")])
    found = enriched_rows(given, "token_transfer_details", "notional_transferred_daily")
    rows = sorted(found["token_transfer_details"], key=lambda row: row["row_key"])
    whole, fraction = divmod(LARGEST, 10**8)
    assert [(row["amount"], row["notional_usd"], row["price_distance_seconds"]) for row in rows] == [
        ("1.5", Decimal("0.18518518"), 90),
        (f"{whole}.{fraction:08d}", None, 90),
        ("0.00000001", None, None),
        (None, None, None),
    ]
    assert rows[0]["price_timestamp"] == NOON + dt.timedelta(seconds=90, microseconds=5)
    assert rows[0]["token_price_usd"] == PRICE
    daily = {row["origin_address"]: row for row in found["notional_transferred_daily"]}
    assert {token: (row["symbol"], row["transfers"]) for token, row in daily.items()} == {
        TOKEN: ("TOK", 2),
        OTHER: ("OTH", 1),
        UNKNOWN: (None, 1),
    }
    total = LARGEST + 150_000_000
    assert daily[TOKEN]["amount"] == f"{total // 10**8}.{total % 10**8:08d}"
    assert daily[TOKEN]["notional_usd"] == Decimal("0.18518518")
    assert (daily[UNKNOWN]["amount"], daily[UNKNOWN]["notional_usd"]) == (None, None)


def test_a_missing_value_has_a_reason() -> None:
    given = day_of(
        [(TOKEN, "150000000"), (TOKEN, str(LARGEST)), (OTHER, "1"), (UNKNOWN, "7"), ("ee" * 32, "7")]
    )
    quote = given["quotes"][0]
    given["quotes"] += [
        {**quote, "origin_address": OTHER, "price_usd": None, "unused_price_usd": PRICE, "confidence": 0.1}
        | {"reason": "low_confidence"},
        {**quote, "origin_address": UNKNOWN, "contradicting_price_usd": Decimal(5)},
    ]
    given["application_transfers"] = [
        {**row, "in_token_transfers": 0, "token_chain": 2, "token_address": token, "amount": amount}
        for row, (token, amount) in zip(
            given["token_transfer_payload"][:3], [(TOKEN, None), (None, "1"), (OTHER, "1")], strict=True
        )
    ]
    names = ("token_transfer_details", "application_transfer_details")
    found = enriched_rows(given, *names)
    details, moved = (sorted(found[name], key=lambda row: row["row_key"]) for name in names)
    assert [row["reason"] for row in details] == [
        *(None, "too_large", "low_confidence", "no_decimals", "no_quote"),
    ]
    assert [row["notional_usd"] is None for row in details] == [False, True, True, True, True]
    assert (details[2]["token_price_usd"], details[2]["unused_price_usd"]) == (None, PRICE)
    assert details[2]["price_confidence"] == 0.1
    assert details[3]["contradicting_price_usd"] == 5
    assert [row["reason"] for row in moved] == ["no_amount", "no_token", "low_confidence"]


def test_a_sum_of_values_beyond_the_type_is_null() -> None:
    most = Decimal("999999999999999999999999999999.99999999")
    sent = day_of([(TOKEN, "1"), (TOKEN, "1"), (OTHER, "1")])["token_transfer_payload"]
    values = (most, Decimal("0.00000001"), most)
    details = [{**row, "notional_usd": value} for row, value in zip(sent, values, strict=True)]
    given = {"token_transfer_payload": sent, "token_transfer_details": details}
    rows = enriched_rows(given, "notional_transferred_daily")["notional_transferred_daily"]
    assert {row["origin_address"]: row["notional_usd"] for row in rows} == {TOKEN: None, OTHER: most}


def test_a_transfer_of_an_application_is_valued_once() -> None:
    given = day_of([(TOKEN, "150000000"), (TOKEN, "9"), (TOKEN, "9"), (TOKEN, "9")])
    bridged, *others = given["token_transfer_payload"]
    given["token_transfer_payload"] = [bridged]
    stated = (None, 2, 9)
    own = {"in_token_transfers": 0, "token_chain": 2, "token_address": TOKEN, "target_chain": 4}
    given["application_transfers"] = [
        {**bridged, "in_token_transfers": 1, "token_chain": 2, "token_address": TOKEN},
        *(
            {
                **row,
                **own,
                "amount": "300",
                "amount_decimals": decimals,
                "recipient_address": "00" * 12 + "ee" * 20,
            }
            for row, decimals in zip(others, stated, strict=True)
        ),
    ]
    given["application_messages"] = [
        {"row_key": key(number), "date": DAY, "app_id": "APP", "is_listed": int(number != 1)}
        for number in range(5)
    ]
    names = ("token_transfer_details", "application_transfer_details", "applications_daily")
    found = enriched_rows(given, *names)
    rows = sorted(found["application_transfer_details"], key=lambda row: row["row_key"])
    assert [(row["amount"], row["notional_usd"], row["token_symbol"]) for row in rows] == [
        ("1.5", Decimal("0.18518518"), "TOK"),
        ("0.000003", Decimal("0.00000037"), "TOK"),
        ("3", Decimal("0.37037037"), "TOK"),
        (None, None, "TOK"),
    ]
    assert len({row["token_native_address"] for row in rows}) == 1
    assert [row["recipient_native_address"] for row in rows] == [None, *["0x" + "ee" * 20] * 3]
    assert found["applications_daily"] == [
        {
            **{"date": DAY, "app_id": "APP", "emitter_chain": 2, "messages": 5, "transfers": 4},
            "notional_usd": Decimal("0.55555555"),
        }
    ]


def test_receivers_count_once_by_their_owner() -> None:
    sent = day_of([(TOKEN, "1")] * 3)["token_transfer_payload"]
    sent[2]["target_address"] = "ff" * 32
    details = [{**row, "receiver_address": owner} for row, owner in zip(sent, ("A", "A", None), strict=True)]
    given = {"token_transfer_payload": sent, "chain_details": details}
    assert enriched_rows(given, "addresses_daily")["addresses_daily"] == [
        {"date": DAY, "target_chain": 4, "addresses": 2}
    ]


def test_nfts_are_named_where_no_chain_has_mints() -> None:
    assert "CAST(NULL AS STRING)" in enriched_tables({})["chain_details"]
