"""Small inputs get a driver that starts cheaply, large ones one that runs fast."""

from __future__ import annotations

import os
import subprocess

import pytest

from permalake.config import load_settings
from permalake.config.stores import CassandraSettings
from permalake.iota.day import IOTA
from permalake.iota.sources import inputs
from permalake.pipeline import spark_settings
from permalake.spark import class_archive, jars, sizes, submit


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.delenv("PERMALAKE_SPARK_JAVA_OPTIONS", raising=False)
    monkeypatch.setattr(class_archive, "file", lambda: tmp_path / "classes.jsa")
    (tmp_path / "archive" / "day").mkdir(parents=True)
    file = tmp_path / "permalake.toml"
    file.write_text(
        '[networks.logs]\nprotocol = "chrysalis"\nbech32_hrp = "iota"\npath = "archive"\n'
        'source = "chronicle"\n'
        '[networks.shimmer]\nprotocol = "stardust"\nbech32_hrp = "smr"\npath = "archive"\n'
    )
    return load_settings(file)


def test_the_sum_of_all_files_decides(settings, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(spark_settings, "SMALL_BYTES", 100)
    (tmp_path / "archive" / "day" / "blocks.jsonl").write_bytes(b"x" * 60)
    assert "TieredStopAtLevel=1" in spark_settings.java_options(IOTA.inputs(settings, "logs"))
    assert spark_settings.session_conf(IOTA.inputs(settings, "logs"))["spark.sql.shuffle.partitions"] == "1"
    (tmp_path / "archive" / "day" / "milestones.jsonl.gz").write_bytes(b"x" * 5)
    assert spark_settings.java_options(IOTA.inputs(settings, "logs")) == "-Duser.timezone=UTC"
    assert spark_settings.session_conf(IOTA.inputs(settings, "logs")) == {}


def test_java_starts_cheaply_for_more_where_python_does_the_work(settings, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(spark_settings, "SMALL_BYTES", 10)
    monkeypatch.setattr(spark_settings, "MODERATE_BYTES", 100)
    monkeypatch.setattr(inputs, "PACKED_BYTES", 200)
    file = tmp_path / "archive" / "day" / "blocks.jsonl"

    def chosen(network="shimmer"):
        given = IOTA.inputs(settings, network)
        return "TieredStopAtLevel=1" in spark_settings.java_options(given), spark_settings.session_conf(given)

    file.write_bytes(b"x" * 60)
    is_cheap, conf = chosen()
    assert is_cheap
    assert conf["spark.sql.adaptive.enabled"] == "false"
    assert "spark.sql.codegen.wholeStage" not in conf
    assert int(conf["spark.sql.shuffle.partitions"]) == min(8, os.cpu_count())
    assert chosen("logs") == (False, {})
    monkeypatch.setenv("PERMALAKE_SPARK_MASTER", "spark://host:7077")
    assert chosen() == (True, {}), "a driver that only plans is cheap whatever the size"
    monkeypatch.delenv("PERMALAKE_SPARK_MASTER")
    file.write_bytes(b"x" * 160)
    assert chosen() == (True, {})
    file.write_bytes(b"x" * 260)
    assert chosen() == (False, {})


def test_java_that_copies_rows_to_cassandra_is_not_cheap(settings) -> None:
    assert IOTA.inputs(settings, "shimmer").cheap_below > spark_settings.MODERATE_BYTES
    served = settings.model_copy(update={"cassandra": CassandraSettings(contact_points=["localhost"])})
    assert served.cassandra.configured
    assert IOTA.inputs(served, "shimmer").cheap_below == 0


@pytest.mark.parametrize("memory", ["256m", "1g", "8g"])
def test_java_starts_with_the_options_of_a_small_run_and_any_driver_memory(settings, memory) -> None:
    options = spark_settings.java_options(IOTA.inputs(settings, "shimmer")).split()
    done = subprocess.run(
        [jars.java(), f"-Xmx{memory}", *options, "-version"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_variable_replaces_the_choice(settings, monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_SPARK_JAVA_OPTIONS", "-XX:+UseZGC")
    assert spark_settings.java_options(IOTA.inputs(settings, "shimmer")) == "-Duser.timezone=UTC -XX:+UseZGC"


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077"])
def test_a_driver_maps_archived_classes(settings, tmp_path, monkeypatch, master) -> None:
    monkeypatch.setenv("PERMALAKE_SPARK_MASTER", master)
    assert "SharedArchiveFile" not in spark_settings.java_options(IOTA.inputs(settings, "shimmer"))
    (tmp_path / "classes.jsa").touch()
    assert f"-XX:SharedArchiveFile={tmp_path}/classes.jsa" in spark_settings.java_options(
        IOTA.inputs(settings, "shimmer")
    )
    assert "iceberg" in submit.spark_conf()["spark.driver.extraClassPath"]


def test_jars_reach_executors_elsewhere_but_are_not_copied_on_this_machine(monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_SPARK_MASTER", "spark://host:7077")
    assert "iceberg" in submit.spark_conf()["spark.jars"]
    monkeypatch.setenv("PERMALAKE_SPARK_MASTER", "local[2]")
    conf = submit.spark_conf()
    assert "iceberg" in conf["spark.driver.extraClassPath"]
    assert "spark.jars" not in conf


def test_the_set_up_has_made_the_archive_of_classes() -> None:
    """A rehearsal that fails only warns, and every submit would take longer from then on."""
    assert class_archive.file().stat().st_size > 100 << 20


def test_a_large_day_has_submits_of_its_own_on_one_machine_only() -> None:
    few, many = {"messages": 1}, {"messages": sizes.CHAINED_ROWS, "tags": 1}
    assert sizes.should_chain(few, is_local=True)
    assert not sizes.should_chain(many, is_local=True)
    assert sizes.should_chain(many, is_local=False)
