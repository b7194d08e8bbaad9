"""A day with messages of every application's layout, through the real jobs: it passes the audit."""

from __future__ import annotations

import base64
import datetime as dt
import json

import pytest

from permalake.config import CONFIG_VARIABLE, load_settings
from permalake_simulate.wormhole.encode_vaa import encode_vaa, sign_body
from support.application_payloads import GATEWAY_ACCOUNT, made_bodies
from support.guardians import GUARDIAN_SETS, SECRETS, SET
from support.jobs import job
from support.lakes import OpenLake

DAY = dt.date(2024, 3, 10)
NOON = int(dt.datetime(2024, 3, 10, 12, tzinfo=dt.UTC).timestamp())


@pytest.mark.long  # tests/wormhole/laws/test_application_layouts.py asks the laws alone
def test_a_day_with_messages_of_every_layout_is_published(spark, tmp_path, monkeypatch) -> None:
    bodies = made_bodies(NOON)
    vaas = [encode_vaa(SET, sign_body(body, SECRETS), body) for body in bodies]
    lines = [json.dumps({"vaa": base64.b64encode(raw).decode()}) for raw in vaas]
    (tmp_path / "guardian_sets.json").write_text(json.dumps(GUARDIAN_SETS))
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "vaas.jsonl").write_text("\n".join(lines))
    (tmp_path / "permalake.toml").write_text(
        f'[lake]\nwarehouse = "{tmp_path}/lake"\n'
        f'[wormhole]\npath = "{tmp_path}/input"\nreference = "{tmp_path}"\n'
    )
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "permalake.toml"))
    monkeypatch.setattr("permalake.paths.HOME", tmp_path / "home")
    arguments = ["--network", "wormhole", "--start", str(DAY), "--end", str(DAY), "--run-id", "run"]
    for name in ("wormhole_ingest", "wormhole_enrich", "audit"):
        job(name)(arguments, spark)
    lake = OpenLake(load_settings())
    assert lake.pinned("wormhole", "run").verdicts()[DAY][0]
    assert lake.publish("wormhole", "run").days == (DAY,)
    counts = lake.query("select count(*) as messages from wormhole.message_publication").to_pylist()
    assert counts == [{"messages": len(bodies)}]
    rows = lake.query(
        "select bridged.target_chain as bridged_to, moved.target_chain, recipient_native_address "
        "from wormhole.token_transfer_payload as bridged join wormhole.application_transfers as moved "
        "using (date, row_key) join wormhole.application_transfer_details using (date, row_key) "
        "where moved.app_id = 'WORMCHAIN_GATEWAY_TRANSFER'"
    ).to_pylist()
    assert [tuple(row.values()) for row in rows] == [(3104, 20, GATEWAY_ACCOUNT)]
