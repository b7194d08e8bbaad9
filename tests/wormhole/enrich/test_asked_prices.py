"""The memory of what was asked, and spans."""

from __future__ import annotations

import random

import pytest

from permalake.intervals import joined, without
from permalake.lake.database import Database
from permalake.wormhole.enrich.asked_prices import AskedPrices


@pytest.mark.parametrize("seed", range(5))
def test_spans_are_sets_of_seconds(seed) -> None:
    chance = random.Random(seed)
    spans = [(at, at + chance.randrange(-2, 9)) for at in (chance.randrange(60) for _ in range(8))]
    inside = {second for start, end in spans for second in range(start, end)}
    assert {second for start, end in joined(spans) for second in range(start, end)} == inside
    assert all(a[1] < b[0] for a, b in zip(joined(spans), joined(spans)[1:], strict=False))
    left = without((10, 50), spans)
    assert {second for start, end in left for second in range(start, end)} == set(range(10, 50)) - inside


@pytest.fixture
def asked(tmp_path):
    return AskedPrices(Database(f"sqlite:///{tmp_path}/catalog.db"), "coingecko")


def test_spans_that_meet_are_kept_as_one(asked) -> None:
    asked.remember({"gold": [(0, 10)], "lead": [(5, 6)]}, asked_at=100)
    asked.remember({"gold": [(10, 20), (30, 40)]}, asked_at=200)
    assert asked.requests(["gold", "tin"]) == {"gold": [((0, 20), 200), ((30, 40), 200)]}
    assert asked.requests(["lead"]) == {"lead": [((5, 6), 100)]}


def test_the_future_is_remembered_apart_until_it_is_asked_for(asked) -> None:
    asked.remember({"gold": [(0, 100)]}, asked_at=60)
    assert asked.requests(["gold"]) == {"gold": [((0, 60), 60), ((60, 100), 60)]}
    asked.remember({"gold": [(60, 200)]}, asked_at=150)
    assert asked.requests(["gold"]) == {"gold": [((0, 150), 150), ((150, 200), 150)]}
    asked.remember({"gold": [(150, 200)]}, asked_at=300)
    assert asked.requests(["gold"]) == {"gold": [((0, 200), 300)]}


def test_providers_are_remembered_apart(tmp_path, asked) -> None:
    asked.remember({"gold": [(0, 10)]}, asked_at=100)
    other = AskedPrices(Database(f"sqlite:///{tmp_path}/catalog.db"), "defillama")
    assert other.requests(["gold"]) == {}
    assert asked.requests(["gold"]) == {"gold": [((0, 10), 100)]}
