"""The three synthetic worlds, exported, mirrored over HTTP, and equal in rows and digests."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from permalake.domains import domain_of
from permalake_simulate.iota import tangle_generator
from permalake_simulate.wormhole import vaa_generator
from support import whole_runs, worlds
from support.publishers import Side, digests
from support.signed_lakes import NAME, at_home, public_key
from support.web_server import web_server

SMALL = {"messages": 150, "milestones_per_day": 10, "empty_days": ()}
WORLDS = {
    "stardust": lambda: worlds.tangle("stardust", days=2, **SMALL),
    "chrysalis": lambda: worlds.tangle("chrysalis", days=1, **SMALL),
    "wormhole": lambda: worlds.vaas(messages=150, days=1),
}


def _sections(name, world, folder):
    """Write the world below ``folder``; return the configuration that reads it."""
    is_tangle = name != "wormhole"
    (tangle_generator if is_tangle else vaa_generator).simulate(None, world, folder)
    snippet = tangle_generator.network_snippet if is_tangle else vaa_generator.wormhole_snippet
    paths = r'^(path|operations|observations|reference) = "(.*)"$'
    return re.sub(paths, rf'\1 = "{folder}/\2"', snippet(world), flags=re.MULTILINE)


def _digests(side, patch):
    at_home(patch, side.folder / "home")
    return digests(side.folder / "export", public_key())


@pytest.mark.parametrize(
    "name", ["chrysalis", *(pytest.param(name, marks=pytest.mark.long) for name in ("stardust", "wormhole"))]
)
def test_a_mirror_of_a_world_has_its_rows_and_digests(spark, name, tmp_path, monkeypatch) -> None:
    world = WORLDS[name]()
    sections = _sections(name, world, tmp_path / "world")
    first, last = world.start, world.start + timedelta(world.days - 1)
    theirs = Side(spark, tmp_path / "publisher", monkeypatch, sections)
    ours = Side(spark, tmp_path / "mirror", monkeypatch, sections)
    assert theirs.call("keys", "create", "--name", NAME) == 0
    dag = "wormhole" if name == "wormhole" else "iota"
    assert theirs.call("run", dag, "--date", first, "--to", last) == 0
    assert theirs.call("export", theirs.folder / "export") == 0
    with web_server(theirs.folder / "export") as (url, _):
        assert ours.call("mirror", url, "--key", theirs.key()) == 0
    assert ours.call("keys", "create", "--name", "example.org/mirror") == 0
    assert ours.call("export", ours.folder / "export") == 0
    signed = _digests(theirs, monkeypatch)
    assert len(signed) > 15
    assert _digests(ours, monkeypatch) == signed
    network = "wormhole" if name == "wormhole" else world.network
    tables = {table for table, one in domain_of(network).tables.items() if one.commit != "side"}
    held = [
        {table: found for table, found in whole_runs.rows(side.config, network).items() if table in tables}
        for side in (theirs, ours)
    ]
    whole_runs.assert_same(*held)
