"""Synthetic tangles: reproducible, and built by the real jobs without a problem into what they say."""

import json
from collections import Counter
from dataclasses import replace
from itertools import accumulate

import pytest

from permalake.config import load_settings
from permalake.errors import ConfigError
from permalake_simulate.iota import tangle_generator
from permalake_simulate.iota.tangle_world import IotaWorld
from support.worlds import START, build_tangle, digests, figures, tangle

KINDS = ("basic", "alias", "foundry", "nft", "legacy")


@pytest.fixture(scope="module", params=["stardust", "chrysalis"])
def built(request, spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield build_tangle(spark, folder, monkeypatch, tangle(request.param))


def test_every_day_holds(built) -> None:
    made, _ = built
    assert made.attempt.record.refused == {}
    assert not made.quarantine()


def test_milestones_add_up_as_the_generator_says(built) -> None:
    made, totals = built
    ours = {
        row["milestone_index"]: (row["message_count"], row["transaction_count"], row["transferred_tokens"])
        for row in made.rows("ms_analytics")
    }
    assert ours == figures(made.out)
    assert sum(messages for messages, _, _ in ours.values()) == made.world.messages
    spans = {row["date"]: (row["start_ms"], row["end_ms"]) for row in made.rows("date_cache")}
    assert spans == {day: (total.first_milestone, total.last_milestone) for day, total in totals.items()}
    assert len(spans) == 2


def test_conflicts_have_their_reasons(built) -> None:
    made, totals = built
    found = Counter((row["date"], str(row["conflict_reason"])) for row in made.rows("messages"))
    expected = {(day, why): n for day, total in totals.items() for why, n in total.conflicts.items()}
    assert {key: count for key, count in found.items() if key[1] != "0"} == expected
    wanted = {"1", "2", "3", "4", "5"} | ({"6"} if made.world.protocol == "chrysalis" else {"7", "10", "11"})
    assert wanted <= {why for _, why in expected}


def test_supply_is_conserved(built) -> None:
    made, totals = built
    outputs = [row for kind in KINDS for row in made.rows(f"{kind}_outputs")]
    change = Counter()
    for row in outputs:
        change[row["date"]] += row["amount"]
    for row in made.rows("consumed_outputs"):
        if row["kind"] != "treasury":
            change[row["date"]] -= row["amount"]
    genesis = made.world.funds.supply - made.world.funds.treasury
    unspent = list(accumulate((change[day] for day in totals), initial=genesis))[1:]
    assert unspent == [total.unspent for total in totals.values()]
    assert [total.unspent + total.treasury for total in totals.values()] == [made.world.funds.supply] * 2
    left = {row["date"]: row["amount"] for row in sorted(made.rows("treasury_outputs"), key=_index)}
    assert left == {day: total.treasury for day, total in totals.items() if total.migrated_tokens}
    assert bool(left) == (made.world.protocol == "chrysalis")


def _index(row):
    return row["milestone_index"]


def test_outputs_live_and_end(built) -> None:
    made, _ = built
    consumed = Counter(row["kind"] for row in made.rows("consumed_outputs"))
    if made.world.protocol == "chrysalis":
        assert set(consumed) == {"legacy", "treasury"}
        return
    created = {kind: len(made.rows(f"{kind}_outputs")) for kind in ("alias", "foundry", "nft")}
    assert all(created.values())
    assert consumed["nft"]
    assert consumed["alias"]
    chains = Counter(row["nft_id"] for row in made.rows("nft_outputs"))
    assert max(chains.values()) > 1


def test_an_output_outlives_its_day(built) -> None:
    made, totals = built
    first, last = totals
    born = {
        row["output_id"] for kind in KINDS for row in made.rows(f"{kind}_outputs") if row["date"] == first
    }
    assert any(row["output_id"] in born for row in made.rows("consumed_outputs") if row["date"] == last)


def test_the_snippet_checks_the_signers(built) -> None:
    network = load_settings(built[0].out / "network.toml").networks[built[0].world.network]
    assert len(network.coordinator_public_keys) == network.coordinator_threshold == 2


@pytest.mark.parametrize("protocol", ["stardust", "chrysalis"])
def test_a_seed_makes_the_same_bytes(spark, tmp_path, protocol, monkeypatch) -> None:
    monkeypatch.setattr("permalake_simulate.iota.tangle_world._EPOCH_MESSAGES", 300)
    world = tangle(protocol, messages=900, milestones_per_day=9)
    assert world.epoch_count > 2
    tangle_generator.simulate(spark, world, tmp_path / "a")
    tangle_generator.simulate(None, world, tmp_path / "b")
    tangle_generator.simulate(None, replace(world, seed=4), tmp_path / "c")
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    assert digests(tmp_path / "a") != digests(tmp_path / "c")


def test_it_says_that_it_is_synthetic(tmp_path) -> None:
    tangle_generator.simulate(
        None, tangle("stardust", messages=500, milestones_per_day=5), tmp_path / "a", packed=False
    )
    assert (tmp_path / "a" / "README.md").read_text().startswith("# Synthetic")
    assert json.loads((tmp_path / "a" / "world.json").read_text())["network"] == "synthetic-smr"
    [line, *_] = (tmp_path / "a" / START.isoformat() / "milestones.jsonl").read_text().splitlines()
    assert json.loads(line)["protocolParameters"]["network_name"] == "synthetic-smr"


def test_sizes_are_uneven_and_add_up() -> None:
    world = IotaWorld("stardust", 1_000_000, 2, START, 1, "smr")
    sizes = [size for epoch in world.epochs() for size in epoch.sizes]
    assert (len(sizes), sum(sizes)) == (2 * 8_640, 1_000_000)
    assert min(sizes) >= 4
    assert max(sizes) > 2 * 1_000_000 / len(sizes)
    assert max(sum(epoch.sizes) for epoch in world.epochs()) < 100_000


def test_days_have_a_rhythm() -> None:
    """Weekends and nights are quiet, whatever the chance of a day; all messages are there."""
    world = IotaWorld("stardust", 50_000, 28, START, 1, "smr", milestones_per_day=24, rhythm=True)
    by_day, by_hour = Counter(), Counter()
    for epoch in world.epochs():
        by_day[epoch.day.weekday()] += sum(epoch.sizes)
        by_hour.update(dict(enumerate(epoch.sizes)))
    assert sum(by_day.values()) == 50_000
    assert max(by_day[5], by_day[6]) < 0.8 * min(by_day[day] for day in range(5))
    assert max(by_hour[hour] for hour in range(1, 6)) < 0.6 * min(by_hour[hour] for hour in range(13, 18))


def test_one_ledger_goes_on_from_day_to_day(tmp_path) -> None:
    """Outputs of the first day are spent on the last one, and no day but the first is funded."""
    world = tangle("stardust", empty_days=(), rhythm=True, one_ledger=True)
    tangle_generator.simulate(None, world, tmp_path, packed=False)
    [file] = (tmp_path / "2022-09-30").glob("consumed_outputs*")
    booked = [json.loads(line)["milestoneIndexBooked"] for line in file.read_text().splitlines()]
    last_of_first_day = world.index(world.per_day - 1)
    assert sum(index <= last_of_first_day for index in booked) > 10
    moved = {path.parent.name: figures(path.parent) for path in tmp_path.glob("*/synthetic_ms_analytics.csv")}
    tokens = {day: sum(row[2] for row in rows.values()) for day, rows in moved.items()}
    assert tokens["2022-09-28"] > world.funds.bank
    assert 0 < tokens["2022-09-30"] < world.funds.bank


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"messages": 100}, "messages: 100 do not fill"),
        ({"empty_days": (0, 1, 2)}, "empty_days"),
        ({"wallets": 0}, "wallets"),
    ],
)
def test_what_cannot_be_is_refused(changes, named) -> None:
    with pytest.raises(ConfigError, match=named):
        tangle("stardust", **changes)


def test_a_folder_in_use_is_left_alone(tmp_path) -> None:
    (tmp_path / "kept").write_text("kept")
    with pytest.raises(ConfigError, match="not empty"):
        tangle_generator.simulate(None, tangle("stardust"), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["kept"]
