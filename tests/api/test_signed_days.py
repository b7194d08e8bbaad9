"""The Verify page and proofs to hand on: what they say is what was signed, and a changed proof is refused."""

from __future__ import annotations

import copy
import json
import re
from datetime import UTC, datetime, time

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.cli.main import main
from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.iota.contracts import IOTA_TABLES
from permalake.transparency import keys
from permalake.transparency.proofs import InvalidProofError, check_proof
from support.lakes import (
    DAY1,
    DAY2,
    DAY3,
    NETWORK,
    OpenLake,
    analytics,
    build,
    messages,
    pass_audit,
    put,
    settings_of,
    stage_day,
)
from support.served_wormhole import publish_world, wormhole_settings
from support.signed_lakes import NAME, at_home, grown, public_key, sign

JSON = {"Accept": "application/json"}
ROWS = 700


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    """The API over a lake with two signed days of shimmer and the days of Wormhole; a third is not."""
    folder = tmp_path_factory.mktemp("signed")
    networks = {NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": str(folder)}}
    world = wormhole_settings(folder)
    own = {"lake": world.lake.model_dump(), "wormhole": world.wormhole.model_dump()}
    settings = Settings(networks=networks, **own)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        at_home(patch, folder / "home")
        keys.create_key(NAME)
        lake = OpenLake(settings)
        build(settings, lake, DAY1, 1, ROWS, "first")
        build(settings, lake, DAY2, 2, 40, "second")
        publish_world(settings)
        sign(settings, lake)
        build(settings, lake, DAY3, 3, 4, "third")
        with TestClient(create_app(settings)) as api:
            yield api


def message(at):
    return messages(DAY1, 1, ROWS)[at]


def proof_of(api, path):
    answer = api.get(f"/api/proofs/v1/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_page_tells_what_is_signed_of_a_day(signed) -> None:
    shown = signed.get("/verify", params={"network": NETWORK, "day": str(DAY1)}, headers=JSON).json()
    assert {one["table"]: one["rows"] for one in shown["tables"]} == {
        "messages": ROWS,
        "ms_analytics": 1,
        "date_cache": 1,
    }
    assert (shown["previous"], shown["next"], shown["signed_days"]) == (None, str(DAY2), 2)
    assert (shown["place"], shown["log"]["key"]) == (1, str(public_key()))
    assert "no list of its keys" in " ".join(shown["rests_on"])
    text = signed.get("/verify", params={"network": NETWORK, "day": str(DAY1)}).text
    for one in shown["tables"]:
        assert one["digest"] in text
    assert f"permalake verify --network {NETWORK} --date {DAY1}" in text


def test_the_tables_of_a_signed_day_lead_to_their_pages(signed) -> None:
    asked = {"network": NETWORK, "day": str(DAY1)}
    page = signed.get("/verify", params=asked, headers={"Accept": "text/html"}).text
    linked = re.findall(r'href="(/data/[^"]+)"', page)
    assert f"/data/{NETWORK}/messages" in linked
    assert {signed.get(path).status_code for path in linked} == {200}


def test_without_a_day_the_newest_signed_one_is_shown(signed) -> None:
    shown = signed.get("/verify", params={"network": NETWORK, "day": ""}, headers=JSON).json()
    assert shown["day"] == str(DAY2)
    wormhole = signed.get("/verify", params={"network": "wormhole"}, headers=JSON).json()
    assert wormhole["quarantined"]


@pytest.mark.parametrize("day", [str(DAY3), "1999-01-01"])
def test_a_day_that_is_not_signed_is_said_to_be_none(signed, day) -> None:
    text = signed.get("/verify", params={"network": NETWORK, "day": day}).text
    assert f"{day} of {NETWORK} is not signed" in text
    assert "What is proven" not in text


def test_a_lake_without_a_key_says_how_to_begin(tmp_path) -> None:
    settings = settings_of(tmp_path / "lake")
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 3, "only")
    with TestClient(create_app(settings)) as api:
        assert "permalake keys create" in api.get("/verify").text
        assert api.get("/verify", params={"network": "nowhere"}).status_code == 404
        answer = api.get(f"/api/proofs/v1/{NETWORK}/days/{DAY1}")
        assert (answer.status_code, "keys create" in answer.json()["detail"]) == (501, True)


@pytest.mark.parametrize("at", [0, 255, 256, ROWS - 1])
def test_a_message_is_proven_with_its_bytes(signed, at) -> None:
    wanted = message(at)
    proven = check_proof(proof_of(signed, f"{NETWORK}/messages/{wanted['message_id']}"), public_key())
    assert proven.row == wanted | {"date": DAY1}
    assert proven.manifest["date"] == str(DAY1)


def test_a_vaa_is_proven_with_its_bytes(signed) -> None:
    [entry, *_] = signed.get("/wormhole", headers=JSON).json()["recent"]
    page = signed.get(f"/wormhole/vaa/{entry['id']}", headers=JSON).json()
    proven = check_proof(proof_of(signed, f"wormhole/quorum_state/{page['row_key']}"), public_key())
    assert proven.row["signed_vaa"].hex() == page["vaa"]
    text = signed.get(f"/wormhole/vaa/{entry['id']}").text
    assert f"/api/proofs/v1/wormhole/quorum_state/{page['row_key'].replace(':', '%3A')}" in text
    assert f"/verify?network=wormhole&amp;day={page['day']}" in text


def test_a_day_is_proven(signed) -> None:
    proven = check_proof(proof_of(signed, f"{NETWORK}/days/{DAY2}"), public_key())
    assert (proven.table, proven.manifest["tables"]["messages"]["rows"]) == (None, 40)


def _changes(proof):
    """Every value of a proof changed in turn, one at a time."""
    for path in _paths(proof):
        if path in (("key",), ("manifest", "format")):  # nothing depends on the first one with --key
            continue
        changed = copy.deepcopy(proof)
        *above, last = path
        inner = changed
        for step in above:
            inner = inner[step]
        inner[last] = _other(inner[last])
        yield path, changed


def _paths(value, path=()):
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _paths(one, (*path, name))
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from _paths(one, (*path, at))
    else:
        yield path


def _other(value):
    if isinstance(value, int):
        return value + 1
    if not isinstance(value, str):
        return "x"
    return ("1" if value[0] == "0" else "0") + value[1:]


def test_whatever_is_changed_in_a_proof_is_refused_but_for_the_place_in_a_block(signed) -> None:
    proof = proof_of(signed, f"{NETWORK}/messages/{message(300)['message_id']}")
    accepted = []
    for path, changed in _changes(proof):
        try:
            proven = check_proof(changed, public_key())
        except PermalakeError:
            continue
        accepted.append((path, proven.row["message_id"]))
    # Another place in the same block is another row, which is told and not passed off as the first one.
    assert accepted == [(("row", "row"), message(301)["message_id"])]


def test_another_publishers_key_is_refused(signed, tmp_path, monkeypatch) -> None:
    proof = proof_of(signed, f"{NETWORK}/days/{DAY1}")
    at_home(monkeypatch, tmp_path)
    keys.create_key(NAME)
    with pytest.raises(Exception, match="another key"):
        check_proof(proof, public_key())


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{NETWORK}/messages/{'00' * 32}", 404),
        (f"{NETWORK}/nothing/x", 404),
        ("nowhere/messages/x", 404),
        (f"{NETWORK}/parents/x", 400),
        (f"{NETWORK}/quarantine/x", 400),
        (f"{NETWORK}/address_balances/x", 400),
        (f"{NETWORK}/days/{DAY3}", 404),
        (f"{NETWORK}/days/yesterday", 400),
    ],
)
def test_what_cannot_be_proven_is_said(signed, path, status) -> None:
    assert signed.get(f"/api/proofs/v1/{path}").status_code == status


def signing_lake(folder, monkeypatch):
    """Settings of an empty lake whose days are signed, and the lake."""
    networks = {NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": str(folder)}}
    settings = Settings(lake={"warehouse": str(folder / "lake")}, networks=networks)  # type: ignore[arg-type]
    at_home(monkeypatch, folder)
    keys.create_key(NAME)
    return settings, OpenLake(settings)


def test_a_row_is_found_by_its_own_table(tmp_path, monkeypatch) -> None:
    """Other tables look up ids of outputs too; none of them has this one."""
    settings, lake = signing_lake(tmp_path, monkeypatch)
    attempt = lake.begin(NETWORK, DAY1, DAY1, "first")
    stage_day(settings, attempt, DAY1, 1, 3)
    row = {
        "milestone_index": 1,
        "ms_timestamp": datetime.combine(DAY1, time.min, UTC),
        "idx": 0,
        "output_id": f"{1:068x}",
        "migrated_at": 1,
        "final": 1,
        "tail_transaction_hash": "00" * 49,
        "address": "smr1q0qqqqq",
        "amount": 1_000_000,
        "date": DAY1,
    }
    put(settings, attempt, "receipts", [row])
    lake.builds.publish(pass_audit(attempt))
    sign(settings, lake)
    with TestClient(create_app(settings)) as api:
        proof = proof_of(api, f"{NETWORK}/receipts/{row['output_id']}")
    assert check_proof(proof, public_key()).row == row


def test_a_row_of_a_day_that_is_not_signed_yet_has_no_proof(signed) -> None:
    row = messages(DAY3, 3, 1)[0]
    assert signed.get(f"/api/proofs/v1/{NETWORK}/messages/{row['message_id']}").status_code == 404


def test_a_row_of_a_table_that_is_new_in_a_signed_day_is_not_signed_yet(tmp_path, monkeypatch) -> None:
    settings, lake = signing_lake(tmp_path, monkeypatch)
    attempt = lake.begin(NETWORK, DAY1, DAY1, "first")
    put(settings, attempt, "ms_analytics", analytics(DAY1, 1, 3))
    lake.builds.publish(pass_audit(attempt))
    sign(settings, lake)
    build(settings, lake, DAY1, 1, 3, "second")
    with TestClient(create_app(settings), raise_server_exceptions=False) as api:
        answer = api.get(f"/api/proofs/v1/{NETWORK}/messages/{messages(DAY1, 1, 1)[0]['message_id']}")
    assert (answer.status_code, answer.headers.get("Retry-After")) == (503, "60")


def test_a_row_of_a_day_that_was_signed_before_a_column_came_is_proven(tmp_path, monkeypatch) -> None:
    networks = {NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": str(tmp_path)}}
    settings = Settings(lake={"warehouse": str(tmp_path / "lake")}, networks=networks)  # type: ignore[arg-type]
    at_home(monkeypatch, tmp_path)
    keys.create_key(NAME)
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 3, "first")
    sign(settings, lake)
    before, row = IOTA_TABLES["messages"], messages(DAY1, 1, 3)[2]
    monkeypatch.setitem(IOTA_TABLES, "messages", grown(before))
    lake.ensure(NETWORK)
    with TestClient(create_app(settings)) as api:
        path = f"{NETWORK}/messages/{row['message_id']}"
        assert check_proof(proof_of(api, path), public_key()).row == row
        monkeypatch.setitem(IOTA_TABLES, "messages", grown(before, required=True))
        assert api.get(f"/api/proofs/v1/{path}").status_code == 501


def test_the_command_line_checks_a_proof(signed, tmp_path, capsys) -> None:
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(proof_of(signed, f"{NETWORK}/messages/{message(5)['message_id']}")))

    def call():
        with pytest.raises(SystemExit) as ended:
            main(["verify", str(file), "--key", str(public_key())])
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    code, said, _ = call()
    assert code == 0
    assert (
        f"this row is one of {ROWS:,} of messages of that day:\n    message_id: {message(5)['message_id']}"
        in said
    )
    file.write_text("[]")
    assert call()[::2] == (1, f"permalake: {file} is no proof: it is no JSON object\n")


def test_a_proof_of_another_form_is_refused() -> None:
    with pytest.raises(InvalidProofError, match="permalake-proof-1"):
        check_proof({"format": "other"}, None)
