"""Synthetic worlds of VAAs: reproducible, and judged by the real jobs as the generator meant them."""

import csv
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal

import pytest

from permalake_simulate.wormhole import vaa_generator
from permalake_simulate.wormhole.messages import BAD
from support.worlds import build_vaas, digests, vaas

EXACT = Context(prec=200, rounding=ROUND_HALF_EVEN)


@pytest.fixture(scope="module")
def built(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("vaas")
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield build_vaas(spark, folder, monkeypatch, vaas())


TRANSFERS = ("token_transfer_payload", "nft_transfer_payload")


def by_day(rows):
    return Counter(row["date"] for row in rows)


@pytest.mark.parametrize(
    ("table", "counted"),
    [
        ("message_publication", "published"),
        ("token_transfer_payload", "token_transfers"),
        ("asset_meta_payload", "attestations"),
        ("nft_transfer_payload", "nft_transfers"),
        ("application_messages", "published"),
        ("relayer_deliveries", "deliveries"),
    ],
)
def test_days_hold_what_the_generator_says(built, table, counted) -> None:
    made, totals = built
    assert by_day(made.rows(table)) == {day: getattr(total, counted) for day, total in totals.items()}
    assert len(totals) == 2


def test_bad_ones_are_quarantined_for_their_reason(built) -> None:
    made, totals = built
    meant = {(day, why): n for day, total in totals.items() for why, n in total.quarantined.items()}
    assert made.quarantine() == meant
    assert {why for _, why in meant} == set(BAD)


def test_good_sequences_have_no_gaps_but_for_bad_ones(built) -> None:
    made, _ = built
    sequences = {}
    for row in made.rows("message_publication"):
        sequences.setdefault((row["emitter_chain"], row["emitter_address"]), []).append(int(row["sequence"]))
    busiest = max(sequences.values(), key=len)
    assert len(busiest) > 0.8 * (max(busiest) - min(busiest) + 1)
    assert max(max(found) for found in sequences.values()) > 2**63


def test_tokens_are_known_and_priced(built) -> None:
    made, _ = built
    details = made.rows("token_transfer_details")
    priced = [row for row in details if row["notional_usd"] is not None]
    assert 0.5 < len(priced) / len(details) < 1
    by_symbol = {}
    for row in details:
        by_symbol.setdefault(row["origin_symbol"], set()).add(row["origin_token_address"])
    assert len(by_symbol["SYNUSDC"]) > 10


def test_operations_tell_what_the_generator_says(built) -> None:
    """The world says of each day how many transfers are redeemed, in flight, and untold of."""
    made, totals = built
    best = {}
    for row in made.attempt.table(made.spark, "redemptions").collect():
        assert row["row_key"] not in best, "an answer per transfer"
        best[row["row_key"]] = row
    sent = [row for name in TRANSFERS for row in made.rows(name)]
    states = Counter((row["date"], _state(best.get(row["row_key"]))) for row in sent)
    assert states == {
        (day, name): getattr(total, name)
        for day, total in totals.items()
        for name in ("redeemed", "in_flight", "untold")
    }
    known = {row["row_key"]: row for row in made.rows("chain_details")}
    paid = [row for row in best.values() if row["receiver_address"]]
    assert len(paid) > 50
    for row in paid:
        assert row["receiver_address"] == known[row["row_key"]]["receiver_address"]
        assert row["token_address"] == known[row["row_key"]]["resulting_token_address"]


def _state(row):
    if row is None:
        return "untold"
    return "redeemed" if row["status"] == "completed" else "in_flight"


def test_applications_move_what_the_generator_says(built) -> None:
    made, totals = built
    carried = {row["row_key"]: row["carrier_app_id"] for row in made.rows("application_messages")}
    rows = made.rows("application_transfers")
    own = [row for row in rows if not row["in_token_transfers"] and carried[row["row_key"]] is None]
    assert by_day(own) == {day: total.application_transfers for day, total in totals.items()}
    assert {row["app_id"] for row in own} == {
        *("CCTP_WORMHOLE_INTEGRATION", "NATIVE_TOKEN_TRANSFER", "MAYAN_SWIFT")
    }
    assert {carried[row["row_key"]] for row in rows if row not in own} == {
        *("PORTAL_TOKEN_BRIDGE", "GENERIC_RELAYER")
    }


def test_what_applications_move_has_the_value_that_plain_python_finds(built) -> None:
    """Decimals from list and attestations, quotes from the file, by other means than the job's."""
    made, _ = built
    times = {row["row_key"]: row["timestamp"].astimezone(UTC) for row in made.rows("message_publication")}
    details = {row["row_key"]: row for row in made.rows("application_transfer_details")}
    rows = made.rows("application_transfers")
    assert details.keys() == {row["row_key"] for row in rows}
    quotes, decimals, denied = quotes_of(made.out), decimals_of(made), denied_of(made.out)
    valued = Counter()
    for row in rows:
        token = (row["token_chain"], row["token_address"])
        known = row["amount_decimals"]
        known = decimals.get((row["date"], *token)) if known is None else known
        amount = None if known is None else Decimal(row["amount"]).scaleb(-min(known, 8), EXACT)
        at = times[row["row_key"]]
        near = [
            (abs(when - at), when, price)
            for when, price in quotes.get(token, ())
            if abs(when - at) <= timedelta(hours=12)
        ]
        price = min(near)[2] if near and token not in denied else None
        value = (
            None
            if None in (amount, price)
            else EXACT.multiply(amount, price).quantize(Decimal("1e-8"), context=EXACT)
        )
        if value is not None and value >= 10**30:
            value = None
        found = details[row["row_key"]]
        assert (found["amount"] is None) == (amount is None)
        assert amount is None or Decimal(found["amount"]) == amount
        assert (found["token_price_usd"], found["notional_usd"]) == (price, value)
        valued[row["app_id"]] += value is not None
    assert len(valued) == 6
    assert all(valued.values())


def test_days_of_applications_are_the_sums_of_their_messages(built) -> None:
    made, _ = built
    moved = {row["row_key"]: row["notional_usd"] for row in made.rows("token_transfer_details")}
    own = {row["row_key"] for row in made.rows("application_transfers") if not row["in_token_transfers"]}
    moved |= {
        row["row_key"]: row["notional_usd"]
        for row in made.rows("application_transfer_details")
        if row["row_key"] in own
    }
    sums = {}
    for row in made.rows("application_messages"):
        key, at = row["row_key"], (row["date"], row["app_id"], int(row["row_key"].split(":")[0]))
        messages, transfers, values = sums.get(at, (0, 0, ()))
        value = (moved.get(key),) if row["is_listed"] and moved.get(key) is not None else ()
        sums[at] = messages + 1, transfers + (key in moved), values + value
    daily = made.rows("applications_daily")
    assert {
        (row["date"], row["app_id"], row["emitter_chain"]): (
            row["messages"],
            row["transfers"],
            row["notional_usd"],
        )
        for row in daily
    } == {at: (*counted, sum(values) if values else None) for at, (*counted, values) in sums.items()}
    assert sum(row["messages"] for row in daily) == len(made.rows("message_publication"))


def quotes_of(world):
    quotes = {}
    with (world / "price_history.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            token = (int(row["chain"]), row["token_address"])
            at = datetime.fromisoformat(row["quoted_at"])
            quotes.setdefault(token, []).append((at, Decimal(row["price_usd"])))
    return quotes


def denied_of(world):
    listed = json.loads((world / "reference" / "deny.json").read_text())
    return {(row["chain"], row["token_address"]) for row in listed}


def decimals_of(made):
    """Decimals of a token on a day: as attested last until then by its own chain, else as listed."""
    days = [made.world.start + timedelta(day) for day in range(made.world.days)]
    with (made.out / "reference" / "token_list.csv").open(newline="") as lines:
        listed = {
            (day, int(row["chain"]), row["token_address"]): int(row["decimals"])
            for row in csv.DictReader(lines)
            for day in days
        }
    for row in made.rows("asset_meta_payload"):
        token = (row["token_chain"], row["token_address"])
        if row["row_key"].startswith(f"{row['token_chain']}:"):
            listed |= {(day, *token): row["decimals"] for day in days if day >= row["date"]}
    return listed


def test_a_seed_makes_the_same_bytes(spark, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("permalake_simulate.wormhole.bridge_world._PART", 40)
    world = vaas(messages=150)
    vaa_generator.simulate(spark, world, tmp_path / "a")
    vaa_generator.simulate(None, world, tmp_path / "b")
    vaa_generator.simulate(None, vaas(messages=150, seed=4), tmp_path / "c")
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    assert digests(tmp_path / "a") != digests(tmp_path / "c")
    assert (tmp_path / "a" / "README.md").read_text().startswith("# Synthetic")
