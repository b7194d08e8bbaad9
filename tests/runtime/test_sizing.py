"""Small inputs get a driver that starts cheaply, large ones one that runs fast."""

from __future__ import annotations

import pytest

from permalake.config import load_settings
from permalake.orchestrate import sizing


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.delenv("PERMALAKE_SPARK_JAVA_OPTIONS", raising=False)
    (tmp_path / "archive" / "day").mkdir(parents=True)
    file = tmp_path / "permalake.toml"
    file.write_text('[networks.shimmer]\nprotocol = "stardust"\nbech32_hrp = "smr"\npath = "archive"\n')
    return load_settings(file)


def test_the_sum_of_all_files_decides(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(sizing, "SMALL_BYTES", 100)
    (tmp_path / "archive" / "day" / "blocks.jsonl").write_bytes(b"x" * 60)
    assert "TieredStopAtLevel=1" in sizing.java_options(settings, "shimmer")
    (tmp_path / "archive" / "day" / "milestones.jsonl.gz").write_bytes(b"x" * 5)
    assert sizing.java_options(settings, "shimmer") == "-Duser.timezone=UTC"


def test_a_variable_replaces_the_choice(settings, monkeypatch):
    monkeypatch.setenv("PERMALAKE_SPARK_JAVA_OPTIONS", "-XX:+UseZGC")
    assert sizing.java_options(settings, "shimmer") == "-Duser.timezone=UTC -XX:+UseZGC"
