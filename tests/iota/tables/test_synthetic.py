"""Synthetic tangles (not made by this project) come out with exactly the expected rows in every table."""

import pytest

from permalake.iota.contracts import IOTA_TABLES, metrics
from permalake.spark.session import CONF, SMALL_CONF
from support.iota_days import SYNTHETIC, build, coordinator_keys, differences, expected, tangle

DAYS = {"stardust": ("2022-09-28", "2022-09-30"), "chrysalis": ("2021-05-10", "2021-05-12")}
# Not among the expected rows of the generator.
OWN = {"quarantine", "consumed_outputs", *(table.name for table in metrics.TABLES)}


@pytest.fixture(scope="module")
def spark(spark):
    """Set as for large inputs: plans are compiled, and adapted while they run."""
    ours = spark.newSession()
    for name in SMALL_CONF:
        ours.conf.unset(name)
        if name in CONF:
            ours.conf.set(name, CONF[name])
    return ours


@pytest.fixture(scope="module", params=["stardust", "chrysalis"])
def world(request, spark, tmp_path_factory):
    protocol = request.param
    built = build(
        spark,
        SYNTHETIC / protocol / "archive",
        *DAYS[protocol],
        tmp_path_factory.mktemp(protocol) / "decoded",
        protocol=protocol,
        hrp=tangle(protocol)["bech32_hrp"],
        keys=coordinator_keys(protocol),
        threshold=2,
    )
    return protocol, built


def test_nothing_is_refused(world):
    _, built = world
    assert built.refused == {}
    assert built.quarantine == []


@pytest.mark.parametrize("name", sorted(set(IOTA_TABLES) - OWN))
def test_rows_of(world, name):
    protocol, built = world
    ours, theirs = built.rows(name), expected(protocol, name)
    if name == "milestones" and protocol == "stardust":
        last = {row["end_ms"] for row in expected(protocol, "date_cache")}
        assert all(row["message_id"] is None for row in ours if row["milestone_index"] in last)
        for row in (*ours, *theirs):
            if row["milestone_index"] in last:
                row["message_id"] = None
    assert differences(ours, theirs) == ([], [])


def test_ledger_changes_add_up_to_the_expected_ledger(world):
    """Unspent outputs at the end are those at the first day's end, and what was created and not consumed."""
    protocol, built = world
    first, last = expected(protocol, "ledger")
    consumed = {row["output_id"] for row in built.rows("consumed_outputs") if row["date"] == last["date"]}
    tables = ("basic_outputs", "alias_outputs", "foundry_outputs", "nft_outputs", "legacy_outputs")
    created = {row["output_id"] for name in tables for row in built.rows(name) if row["date"] == last["date"]}
    unspent = {row["output_id"] for row in first["unspent"]}
    assert (unspent | created) - consumed == {row["output_id"] for row in last["unspent"]}
    assert sum(len(row["output_id"]) == 68 for row in built.rows("consumed_outputs")) == (
        first["consumed_count"] + last["consumed_count"]
    )


def test_a_day_alone_comes_out_as_in_the_range(spark, tmp_path):
    day = "2022-09-30"
    built = build(spark, SYNTHETIC / "stardust" / "archive", day, day, tmp_path / "decoded")
    assert built.refused == {}
    theirs = [row for row in expected("stardust", "messages") if row["date"] == day]
    assert differences(built.rows("messages"), theirs) == ([], [])
    for name in ("consumed_outputs", "address_analytics"):
        assert {row["date"] for row in built.rows(name)} == {day}
