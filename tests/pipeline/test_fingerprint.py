"""Whatever a day is built from changes the fingerprint, and nothing else does."""

from __future__ import annotations

import os

import pytest

from permalake.config import load_settings
from permalake.domains import domain_of
from permalake.pipeline import fingerprint as fingerprints
from permalake.pipeline.fingerprint import fingerprint


def digest(settings, network):
    return fingerprint(domain_of(network).inputs(settings, network))


def test_the_same_input_has_the_same_fingerprint(config, settings) -> None:
    assert digest(settings, "shimmer") == digest(load_settings(config), "shimmer")
    assert len(digest(settings, "shimmer")) == 64
    assert digest(settings, "shimmer") != digest(settings, "testnet")


@pytest.mark.parametrize("change", ["content", "time", "added", "a name of bytes", "removed", "renamed"])
def test_a_changed_file_changes_it(settings, change) -> None:
    before = digest(settings, "testnet")
    folder = settings.networks["testnet"].path / "2022"
    file = folder / "blocks.jsonl"
    if change == "content":
        file.write_text("{} \n")
    elif change == "time":
        os.utime(file, ns=(1, 1))
    elif change == "added":
        (folder / "more.jsonl").write_text("")
    elif change == "a name of bytes":
        (folder / os.fsdecode(b"\xff:.jsonl")).write_text("")
    elif change == "removed":
        file.unlink()
    else:
        file.rename(folder / "other.jsonl")
    assert digest(settings, "testnet") != before


def test_another_networks_files_do_not_matter(settings) -> None:
    before = digest(settings, "shimmer")
    (settings.networks["testnet"].path / "more.jsonl").write_text("x")
    (settings.wormhole.path / "more.jsonl").write_text("x")
    assert digest(settings, "shimmer") == before


def test_prices_and_reference_belong_to_wormhole(settings, tmp_path, config) -> None:
    before = digest(settings, "wormhole")
    settings.prices.path.write_text("time,price\n1,2\n")
    after = digest(settings, "wormhole")
    assert after != before
    (tmp_path / "own").mkdir()
    config.write_text(config.read_text().replace('path = "wormhole"', 'path = "wormhole"\nreference = "own"'))
    assert digest(load_settings(config), "wormhole") != after


def test_configuration_and_version_matter(settings, config, monkeypatch) -> None:
    before = digest(settings, "shimmer")
    config.write_text(config.read_text().replace('bech32_hrp = "smr"', 'bech32_hrp = "smr"\nchunk_size = 5'))
    assert digest(load_settings(config), "shimmer") != before
    monkeypatch.setattr(fingerprints, "VERSION", "99")
    assert digest(settings, "shimmer") != before


def test_a_live_source_has_none(config) -> None:
    config.write_text(
        config.read_text().replace('path = "shimmer"', 'source = "node"\nurl = "http://localhost:1"')
    )
    settings = load_settings(config)
    assert digest(settings, "shimmer") is None
    assert digest(settings, "testnet") is not None


def test_an_rpc_of_a_chain_belongs_to_wormhole_alone(settings, config) -> None:
    before, iota = digest(settings, "wormhole"), digest(settings, "shimmer")
    config.write_text(config.read_text() + '\n[chains.2]\nrpc_url = "http://localhost:1"\n')
    first = digest(load_settings(config), "wormhole")
    config.write_text(config.read_text().replace("localhost:1", "localhost:2"))
    assert len({before, first, digest(load_settings(config), "wormhole")}) == 3
    assert digest(load_settings(config), "shimmer") == iota


def test_a_link_to_nothing_is_no_error(settings) -> None:
    before = digest(settings, "testnet")
    (settings.networks["testnet"].path / "gone.jsonl").symlink_to("nowhere")
    assert digest(settings, "testnet") != before
