"""Proofs of inclusion that a page gives, checked by `permalake verify` with the coordinator's keys."""

from __future__ import annotations

import json

import pytest

from permalake.cli import main as front
from support import synthetic_lake

KINDS = ("shimmer", "iota")
PATHS = {"shimmer": "/api/poi/v1/shimmer/create/{id}", "iota": "/api/poi/v1/iota/create/{id}"}


@pytest.fixture(scope="module")
def config(synthetic_settings, tmp_path_factory):
    file = tmp_path_factory.mktemp("proofs") / "permalake.toml"
    text = f'[lake]\nwarehouse = "{synthetic_settings.lake.warehouse}"\n'
    for name in KINDS:
        section = synthetic_settings.networks[name]
        keys = ", ".join(
            f'{{ key = "{one.key}", start = {one.start}, end = {one.end} }}'
            for one in section.coordinator_public_keys
        )
        text += (
            f'[networks.{name}]\nprotocol = "{section.protocol}"\nbech32_hrp = "{section.bech32_hrp}"\n'
            f'path = "{section.path}"\ncoordinator_public_keys = [{keys}]\ncoordinator_threshold = 2\n'
        )
    file.write_text(text)
    return file


def called(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        front.main(["verify", *map(str, arguments)])
    printed = capsys.readouterr()
    return int(end.value.code or 0), printed.out, printed.err


@pytest.mark.parametrize("network", KINDS)
@pytest.mark.parametrize("state", [0, 1, 2])
def test_a_proof_from_a_page_is_checked(synthetic_api, config, tmp_path, capsys, network, state) -> None:
    rows = synthetic_lake.tables(synthetic_lake.NETWORKS[network])["messages"]
    row = next(one for one in rows if one["inclusion_state"] == state and one["white_flag_index"] > 0)
    answer = synthetic_api.get(PATHS[network].format(id=row["message_id"]))
    assert answer.status_code == 200, answer.text
    file = tmp_path / "proof.json"
    file.write_bytes(answer.content)
    code, out, err = called(capsys, file, "--config", config)
    assert code == 0, err
    assert out.startswith(f"{network}: the proof holds.\nProven:\n  milestone {row['milestone_index']}"[:60])
    proof = answer.json()
    noun = "block" if network == "shimmer" else "message"
    proof[noun] = {**proof[noun], "nonce": "1"}
    file.write_text(json.dumps(proof))
    code, _, err = called(capsys, file, "--config", config)
    assert (code, err.count("\n")) == (1, 1)
    assert "the proof does not hold" in err


def test_whose_keys_count_is_asked_for(synthetic_api, config, tmp_path, capsys) -> None:
    row = synthetic_lake.tables("stardust")["messages"][0]
    file = tmp_path / "proof.json"
    file.write_bytes(synthetic_api.get(PATHS["shimmer"].format(id=row["message_id"])).content)
    assert (
        "networks.nosuch: not configured"
        in called(capsys, file, "--network", "nosuch", "--config", config)[2]
    )
    bare = tmp_path / "bare.toml"
    bare.write_text(f'[lake]\nwarehouse = "{tmp_path}/lake"\n')
    assert "choose with --network: none is configured" in called(capsys, file, "--config", bare)[2]
    keyless = tmp_path / "keyless.toml"
    keyless.write_text(
        bare.read_text()
        + f'[networks.shimmer]\nprotocol = "stardust"\nbech32_hrp = "smr"\npath = "{tmp_path}"\n'
    )
    assert "coordinator_public_keys: set them" in called(capsys, file, "--config", keyless)[2]
