"""Each submit gets a folder for Spark's own log; old ones go."""

from __future__ import annotations

import os
import time

from permalake.spark import event_log


def test_every_submit_has_a_folder_and_old_ones_go(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(event_log.VARIABLE, str(tmp_path))
    old, recent = tmp_path / "old", tmp_path / "recent"
    for folder, days in ((old, 31), (recent, 29)):
        folder.mkdir()
        (folder / "local-1.zstd").touch()
        os.utime(folder, (time.time() - days * 86400,) * 2)
    made = event_log.folder("shimmer_2022-09-28_audit")
    assert made.is_dir()
    assert made.parent == tmp_path
    assert not old.exists()
    assert recent.exists()
    conf = event_log.conf(made)
    assert conf["spark.eventLog.dir"] == f"file://{made}"


def test_an_empty_variable_turns_it_off(monkeypatch) -> None:
    monkeypatch.setenv(event_log.VARIABLE, "")
    assert event_log.conf(event_log.folder("x")) == {}
