"""A day inside which its source ended is stale once the source goes on, as `permalake status` tells."""

from __future__ import annotations

import json
import shutil

from typer.testing import CliRunner

from permalake import paths
from permalake.cli.main import app
from permalake.config import load_settings
from permalake.iota.sources.source_ends import END_NOTE
from support.iota_days import SYNTHETIC
from support.lakes import DAY1, DAY2, NETWORK, OpenLake, messages, pass_audit, put

LAST_OF_DAY = 249_999


def test_status_tells_a_day_whose_source_goes_on(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(paths, "HOME", tmp_path / "home")
    root = shutil.copytree(SYNTHETIC / "stardust" / "archive", tmp_path / "archive")
    config = tmp_path / "permalake.toml"
    config.write_text(
        f'[lake]\nwarehouse = "{tmp_path}/lake"\n[networks.{NETWORK}]\nprotocol = "stardust"\n'
        f'bech32_hrp = "smr"\npath = "{root}"\n'
    )
    settings = load_settings(config)
    lake = OpenLake(settings)
    for number, (day, last) in enumerate([(DAY1, LAST_OF_DAY - 1), (DAY2, 2**31 - 1)]):
        attempt = lake.begin(NETWORK, day, day, f"run {number}")
        put(settings, attempt, "messages", messages(day, 1, 2))
        attempt.record.note(END_NOTE.format(last), day)
        lake.builds.publish(pass_audit(attempt))

    def told():
        done = CliRunner().invoke(app, ["status", "--format", "json", "--config", str(config)])
        assert done.exit_code == 0, done.output
        return {one["date"]: one["stale"] for one in json.loads(done.output)}

    expected = {str(DAY1): f"the source goes on after milestone {LAST_OF_DAY - 1}", str(DAY2): None}
    assert told() == expected
    assert told() == expected
    assert lake.reader.stale(NETWORK) == [(DAY1, DAY1)]
