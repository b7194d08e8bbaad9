"""Walks from a node's tips: what no milestone references yet, within limits, whatever the node does."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from permalake.iota.sources.node_api import NodeAddress
from permalake.iota.sources.node_tips import TipWalk, WalkLimits
from permalake.net.http import RetryPolicy
from support.iota_days import SYNTHETIC
from support.node_server import NodeServer

PROTOCOLS = ("stardust", "chrysalis")


@pytest.fixture
def node(request):
    with NodeServer(SYNTHETIC / request.param / "archive", request.param, seed=3) as server:
        server.confirmed = max(server.milestones) - 4
        server.arrive(max(server.milestones))
        yield server


def walk(server, held=None, referenced=(), seconds=20.0, blocks=10_000):
    patience = RetryPolicy(read=0.3, whole=0.3, attempts=3, back_off=0.01, longest_pause=0.1, failures=1000)
    address = NodeAddress("node", server.url, server.protocol, 5_000, 8, 0.3, patience)
    limits = WalkLimits(time.monotonic() + seconds, blocks)
    with closing(address.connect()) as api, ThreadPoolExecutor(8) as pool:
        return TipWalk(api, pool, held or {}, referenced, limits).run()


def walked(server, walks, **more):
    """What at most so many walks find together, each going on where those before have ended.

    Two walks after all is found show that there is no more.
    """
    held, complete = {}, 0
    for _ in range(walks):
        held |= walk(server, held, **more).unreferenced
        complete += held.keys() >= raw_of(server).keys()
        if complete > 2:
            break
    return held


def raw_of(server):
    return {bytes.fromhex(one): bytes.fromhex(server.blocks[one]["raw"]) for one in server.unreferenced()}


@pytest.mark.parametrize("node", PROTOCOLS, indirect=True)
def test_a_walk_finds_what_lies_above_the_last_milestone_and_no_more(node) -> None:
    assert len(node.unreferenced()) > 10
    assert walked(node, 20) == raw_of(node)
    referenced = walk(node).referenced
    assert referenced
    assert all(node.blocks[one.hex()]["milestone"] <= node.confirmed for one in referenced)


@pytest.mark.parametrize("node", PROTOCOLS, indirect=True)
def test_what_is_held_or_passed_is_not_asked_for_again(node) -> None:
    held = walked(node, 20)
    passed = set().union(*(walk(node, held).referenced for _ in range(20)))
    node.counts.clear()
    assert walk(node, held, passed).unreferenced == {}
    assert {path.rsplit("/", 1)[-1] for path in node.counts} == {"tips"}


@pytest.mark.parametrize(
    "node", ["stardust", pytest.param("chrysalis", marks=pytest.mark.long)], indirect=True
)
def test_a_node_that_misbehaves_delays_walks_and_does_not_end_them(node) -> None:
    node.faulty, node.slow = 0.3, 0.4
    assert walked(node, 40) == raw_of(node)


@pytest.mark.parametrize("node", ["stardust"], indirect=True)
def test_walks_are_limited_and_go_on_where_they_ended(node) -> None:
    assert len(walk(node, blocks=3).unreferenced) == 3
    assert walked(node, len(node.unreferenced()), blocks=3) == raw_of(node)
    node.delay = 0.2
    assert len(walk(node, seconds=0.5).unreferenced) < len(node.unreferenced())


@pytest.mark.parametrize("node", ["stardust"], indirect=True)
def test_a_block_that_the_node_lacks_ends_its_branch_alone(node) -> None:
    lacking = min(one for one in node.unreferenced() if one not in node._tips())
    node.arrived.remove(lacking)
    found = walked(node, 20)
    assert bytes.fromhex(lacking) not in found
    assert 0 < len(found) <= len(node.unreferenced())
    node.arrived.add(lacking)
    assert walked(node, 20) == raw_of(node)


@pytest.mark.parametrize("node", PROTOCOLS, indirect=True)
def test_a_node_without_tips_has_nothing_above(node) -> None:
    root = "/api/core/v2" if node.protocol == "stardust" else "/api/v1"
    node.lost.add(f"{root}/tips")
    assert walk(node).unreferenced == {}
    node.lost.clear()
    node.down = "503"
    assert walk(node).unreferenced == {}
