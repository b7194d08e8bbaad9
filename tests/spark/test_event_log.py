"""Each submit gets a folder for Spark's own log; old ones go."""

from __future__ import annotations

import os
import time

import pytest

from permalake.errors import ConfigError
from permalake.spark import event_log


def test_every_submit_has_a_folder_and_old_ones_go(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(event_log.VARIABLE, str(tmp_path))
    old, recent = (tmp_path / f"shimmer_20220928T000000-{number}" for number in (1, 2))
    foreign = tmp_path / "somebody_elses"
    for folder, days in ((old, 31), (recent, 29), (foreign, 31)):
        folder.mkdir()
        (folder / "local-1.zstd").touch()
        os.utime(folder, (time.time() - days * 86400,) * 2)
    made = event_log.folder("shimmer_2022-09-28_audit")
    assert made.is_dir()
    assert made.parent == tmp_path
    assert not old.exists()
    assert recent.exists()
    assert foreign.exists()
    conf = event_log.conf(made)
    assert conf["spark.eventLog.dir"] == f"file://{made}"


def test_a_folder_is_taken_from_where_the_command_runs(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(event_log.VARIABLE, "logs/spark")
    made = event_log.folder("x")
    assert made.parent == tmp_path / "logs" / "spark"
    assert event_log.conf(made)["spark.eventLog.dir"] == made.as_uri()


def test_a_place_on_another_system_is_refused(monkeypatch) -> None:
    monkeypatch.setenv(event_log.VARIABLE, "hdfs:///spark-logs")
    with pytest.raises(ConfigError, match="not a folder of this machine"):
        event_log.folder("x")


def test_an_empty_variable_turns_it_off(monkeypatch) -> None:
    monkeypatch.setenv(event_log.VARIABLE, "")
    assert event_log.conf(event_log.folder("x")) == {}
