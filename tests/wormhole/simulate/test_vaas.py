"""Synthetic worlds of VAAs: reproducible, and judged by the real jobs as the generator meant them."""

from collections import Counter

import pytest

from permalake.wormhole.simulate import vaa_generator
from permalake.wormhole.simulate.messages import BAD
from support.worlds import build_vaas, digests, vaas


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
    ],
)
def test_days_hold_what_the_generator_says(built, table, counted):
    made, totals = built
    assert by_day(made.rows(table)) == {day: getattr(total, counted) for day, total in totals.items()}
    assert len(totals) == 2


def test_bad_ones_are_quarantined_for_their_reason(built):
    made, totals = built
    meant = {(day, why): n for day, total in totals.items() for why, n in total.quarantined.items()}
    assert made.quarantine() == meant
    assert {why for _, why in meant} == set(BAD)


def test_good_sequences_have_no_gaps_but_for_bad_ones(built):
    made, _ = built
    sequences = {}
    for row in made.rows("message_publication"):
        sequences.setdefault((row["emitter_chain"], row["emitter_address"]), []).append(int(row["sequence"]))
    busiest = max(sequences.values(), key=len)
    assert len(busiest) > 0.8 * (max(busiest) - min(busiest) + 1)
    assert max(max(found) for found in sequences.values()) > 2**63


def test_tokens_are_known_and_priced(built):
    made, _ = built
    details = made.rows("token_transfer_details")
    priced = [row for row in details if row["notional_usd"] is not None]
    assert 0.5 < len(priced) / len(details) < 1
    by_symbol = {}
    for row in details:
        by_symbol.setdefault(row["origin_symbol"], set()).add(row["origin_token_address"])
    assert len(by_symbol["SYNUSDC"]) > 10


def test_operations_tell_what_the_generator_says(built):
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


def test_a_seed_makes_the_same_bytes(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("permalake.wormhole.simulate.bridge_world._PART", 40)
    world = vaas(messages=150)
    vaa_generator.simulate(spark, world, tmp_path / "a")
    vaa_generator.simulate(None, world, tmp_path / "b")
    vaa_generator.simulate(None, vaas(messages=150, seed=4), tmp_path / "c")
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    assert digests(tmp_path / "a") != digests(tmp_path / "c")
    assert (tmp_path / "a" / "README.md").read_text().startswith("# Synthetic")
