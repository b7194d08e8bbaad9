"""What days were built with stays, or is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from permalake.config import Settings
from permalake.errors import ConfigError
from permalake.lake.fixed_settings import FIXED_SETTINGS, fix_settings
from permalake.lake.restore import restore
from permalake.paths import ROOT
from support.lakes import DAY1, DAY2, NETWORK, OpenLake, build, pass_audit, stage_day

CHANGED = {
    "protocol": ("chrysalis", "stardust"),
    "bech32_hrp": ("rms", "smr"),
    "chunk_size": (1000, 250000),
    "v_byte_cost": (50, 100),
}


@pytest.fixture
def configured(tmp_path):
    """Function that returns settings with other values of the network's and of Cassandra's."""

    def settings(cassandra: dict[str, object] | None = None, **values: object) -> Settings:
        network = {"protocol": "stardust", "bech32_hrp": "smr", "path": tmp_path, "v_byte_cost": 100}
        return Settings(
            lake={"warehouse": str(tmp_path / "warehouse")},
            networks={NETWORK: network | values},
            cassandra=cassandra or {},
        )

    return settings


def test_every_fixed_setting_is_tested_and_documented() -> None:
    assert {setting.key for setting in FIXED_SETTINGS} == {*CHANGED, "partition_size"}
    text = (ROOT / "docs" / "operating.md").read_text("utf-8")
    assert [setting.key for setting in FIXED_SETTINGS if f"`{setting.key}`" not in text] == []


@pytest.mark.parametrize("key", CHANGED)
def test_a_change_is_refused_by_name_once_days_are_published(configured, key) -> None:
    value, built_with = CHANGED[key]
    other = configured(**{key: value})
    OpenLake(other)
    lake = OpenLake(configured())  # nothing is published yet
    build(configured(), lake, DAY1, 1, 5, "a")
    expected = f"networks.shimmer.{key}: .* built with {built_with}, the setting is {value}; set it back"
    with pytest.raises(ConfigError, match=expected):
        OpenLake(other)
    build(configured(), OpenLake(configured()), DAY2, 2, 7, "b")


def test_runs_with_different_settings_do_not_both_publish(configured) -> None:
    small = configured(chunk_size=1000)
    slow = OpenLake(small)
    attempt = slow.begin(NETWORK, DAY2, DAY2, "slow")
    stage_day(small, attempt, DAY2, 2, 7)
    pinned = pass_audit(attempt)
    build(configured(), OpenLake(configured()), DAY1, 1, 5, "fast")
    with pytest.raises(ConfigError, match=r"networks\.shimmer\.chunk_size"):
        slow.builds.publish(pinned)
    assert [day.date for day in slow.reader.status() if day.published] == [DAY1]


def test_a_value_that_was_missing_may_be_added(configured) -> None:
    build(configured(v_byte_cost=None), OpenLake(configured(v_byte_cost=None)), DAY1, 1, 5, "a")
    build(configured(), OpenLake(configured()), DAY2, 2, 7, "b")
    with pytest.raises(ConfigError, match="built with 100, the setting is None"):
        OpenLake(configured(v_byte_cost=None))


def test_the_size_of_partitions_is_fixed_by_the_first_day_in_cassandra(configured) -> None:
    large, small = configured({"partition_size": 200}), configured({"partition_size": 100})
    lake = OpenLake(large)
    build(large, lake, DAY1, 1, 5, "a")
    OpenLake(small)
    with lake.database.write() as connection:
        fix_settings(connection, large, NETWORK, "cassandra")
    with pytest.raises(ConfigError, match=r"cassandra.partition_size: .* built with 200, the setting is 100"):
        OpenLake(small)
    OpenLake(large)


def test_a_restored_catalog_knows_them(configured) -> None:
    build(configured(), OpenLake(configured()), DAY1, 1, 5, "a")
    (Path(configured().lake.warehouse) / "catalog.db").unlink()
    restore(configured())
    with pytest.raises(ConfigError, match=r"networks\.shimmer\.chunk_size"):
        OpenLake(configured(chunk_size=1000))


def test_a_reader_without_configuration_is_not_asked(configured, tmp_path) -> None:
    build(configured(), OpenLake(configured()), DAY1, 1, 5, "a")
    assert OpenLake(Settings(lake={"warehouse": str(tmp_path / "warehouse")})).reader.status()


def test_a_day_without_rows_fixes_nothing(configured) -> None:
    wrong = configured(bech32_hrp="rms")
    lake = OpenLake(wrong)
    lake.builds.publish(pass_audit(lake.begin(NETWORK, DAY1, DAY1, "empty")))
    attempt = lake.begin(NETWORK, DAY1, DAY2, "its rows are withheld")
    stage_day(wrong, attempt, DAY2, 2, 7)
    pinned = attempt.pin()
    pinned.verdict(DAY2, False, ["a rule"])
    assert lake.builds.publish(pinned).withheld.keys() == {DAY2}
    build(configured(), OpenLake(configured()), DAY1, 1, 5, "corrected")
    with pytest.raises(ConfigError, match=r"networks\.shimmer\.bech32_hrp"):
        OpenLake(wrong)
