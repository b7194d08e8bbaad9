"""Days of a network built from a node that misbehaves, and what is said of a node that cannot give them."""

import os
from dataclasses import replace
from datetime import date

import pytest

from permalake import paths
from permalake.config.networks import NetworkSettings
from permalake.errors import ConfigError, PermalakeError
from permalake.iota.sources.node import NodeSource
from permalake.iota.sources.node_cache import NodeCache
from permalake.net.http import RetryPolicy
from support.iota_days import DATA, differences, expected
from support.node_server import NodeServer
from support.source_builds import build_from, settings

SPANS = {"stardust": ("2022-09-28", "2022-09-30"), "chrysalis": ("2021-05-10", "2021-05-12")}
TABLES = {
    "stardust": ("basic_outputs", "alias_outputs", "foundry_outputs", "nft_outputs"),
    "chrysalis": ("legacy_outputs", "treasury_outputs"),
}
TANGLE = ("messages", "parents", "tags", "transactions")


def archive(protocol):
    return DATA / "synthetic" / protocol / "archive"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(paths, "HOME", tmp_path / "home")


def network(server, timeout=20, goes_on=True):
    server.goes_on = goes_on
    return settings(server.protocol, source="node", url=server.url, timeout=timeout, rate_per_second=5_000)


def dates(*texts):
    return [date.fromisoformat(text) for text in texts]


@pytest.mark.parametrize("protocol", SPANS)
def test_days_from_a_node_have_exactly_the_expected_rows(protocol, spark, tmp_path) -> None:
    with NodeServer(archive(protocol), protocol, faulty=0.05, seed=2) as server:
        asked = network(server, timeout=0.5)
        node = NodeSource(spark, protocol, asked)
        built = build_from(spark, node, asked, SPANS[protocol], tmp_path / "decoded")
        assert sum(server.counts.values()) > sum(server.answered.values())
        calls = sum(server.counts.values())
        again = NodeSource(spark, protocol, asked)
        assert (
            again.records(again.days(*dates(*SPANS[protocol]))).count()
            == again.records(node.days(*dates(*SPANS[protocol]))).count()
        )
        # The node's state, its first milestone and that what is landed is of its tangle.
        assert sum(server.answered.values()) - calls <= 4 + 2
    assert built.refused == {}
    assert built.quarantine == []
    for name in (*TANGLE, *TABLES[protocol]):
        assert differences(built.rows(name), expected(protocol, name)) == ([], []), name


def test_a_parent_that_the_node_has_lost_is_a_gap_that_names_it(spark, tmp_path, monkeypatch) -> None:
    with NodeServer(archive("chrysalis"), "chrysalis") as server:
        asked = network(server)
        node = NodeSource(spark, "lossy", asked)
        day = server.milestones[server.confirmed]
        lost = next(b for b in server.blocks.values() if b["milestone"] == server.confirmed)["metadata"]
        server.lost = {f"/api/v1/messages/{lost['messageId']}/raw"}
        days = node.days(*dates("2021-05-12", "2021-05-12"))
        monkeypatch.setattr(node, "_begin", node.first_milestone - 200)  # as if it began long before
        monkeypatch.setattr(node, "days", lambda *_: days)
        built = build_from(spark, node, asked, ("2021-05-12", "2021-05-12"), tmp_path / "decoded")
    ((gap_day, reason),) = built.refused.items()
    assert gap_day == date(2021, 5, 12)
    assert f"milestone {day['index']}" in reason
    assert lost["messageId"] in reason
    assert "parent_missing" in reason
    assert "\n" not in reason


def test_what_was_landed_outlives_the_node_s_pruning(spark, tmp_path) -> None:
    with NodeServer(archive("stardust"), "stardust") as server:
        asked = network(server)
        node = NodeSource(spark, "pruning", asked)
        first = node.first_milestone
        node.records(node.days(*dates(*SPANS["stardust"]))).count()
        server.pruned = server.confirmed - 3
        calls = sum(server.counts.values())
        node = NodeSource(spark, "pruning", asked)
        assert node.first_milestone == first
        built = build_from(spark, node, asked, SPANS["stardust"], tmp_path / "decoded")
        assert built.refused == {}
        assert sum(server.counts.values()) - calls <= 6


def test_what_a_build_reads_outlives_the_pruning_of_others(spark) -> None:
    root = paths.HOME / "landing" / "shared"
    with NodeServer(archive("stardust"), "stardust") as server:
        node = NodeSource(spark, "shared", network(server))
        span = dates("2022-09-28", "2022-09-28")
        count = node.records(node.days(*span)).count()
        for stretch in NodeCache(root).stretches():
            os.utime(root / f"{stretch:08d}", (0, 0))
        records = node.records(node.days(*span))
        NodeCache(root).prune(0, 1, 3_600.0)  # as the build of another day does
        assert records.count() == count


def test_a_node_that_begins_anew_or_lags_takes_nothing_of_what_was_landed(spark) -> None:
    with NodeServer(archive("stardust"), "stardust") as server:
        asked = network(server)
        node = NodeSource(spark, "anew", asked)
        first, last = node.first_milestone, server.confirmed
        node.records(node.days(*dates(*SPANS["stardust"]))).count()
        calls = sum(server.counts.values())
        # Begun from a snapshot, and not yet synchronised.
        server.goes_on, server.pruned, server.confirmed = False, last - 4, last - 4
        with pytest.raises(PermalakeError, match=r"networks\.anew\.url: the node holds no milestone"):
            node.refresh()
        server.confirmed = last - 2
        node.refresh()
        assert (node.first_milestone, node.last_milestone) == (first, last - 2)
        # A node that lags behind the one that told how far it is.
        server.confirmed = last
        newest = f"/api/core/v2/milestones/by-index/{last}"
        server.lost = {newest}
        node = NodeSource(spark, "anew", asked)
        assert node.first_milestone == server.pruned + 1, "nothing is proven of what was landed"
        server.lost = set()
        node.refresh()
        assert node.first_milestone == first
        server.goes_on = True
        node = NodeSource(spark, "anew", asked)
        assert node.records(node.days(*dates(*SPANS["stardust"]))).where("kind = 1").count() == len(
            server.blocks
        )
        assert sum(server.counts.values()) - calls < 60, "what was landed is not fetched again"


def test_a_node_may_prune_while_it_is_followed(spark) -> None:
    day = date(2022, 9, 30)
    with NodeServer(archive("stardust"), "stardust") as server:
        nodes = [NodeSource(spark, name, network(server)) for name in ("landed", "not landed")]
        nodes[0].records(nodes[0].days(*dates(*SPANS["stardust"]))).count()
        first = nodes[0].first_of(day)
        (paths.HOME / "landing" / "landed" / "times.json").unlink()
        begin, server.pruned = nodes[0].first_milestone, first
        assert nodes[0].first_of(day) == first
        for node in nodes:
            node.refresh()
        assert [node.first_milestone for node in nodes] == [begin, first + 1]
        assert [node.first_of(day) for node in nodes] == [first, first + 1]


def test_a_pause_that_the_node_asks_for_is_part_of_the_error(spark) -> None:
    with NodeServer(archive("stardust"), "stardust") as server:
        node = NodeSource(spark, "busy", network(server))
        days = node.days(*dates(*SPANS["stardust"]))
        server.after, server.retry_after = {"answers": 0, "fault": "429"}, "500"
        for ask in (node.refresh, lambda: node.records(days)):
            with pytest.raises(PermalakeError, match=r"networks\.busy\.url: HTTP 429") as refused:
                ask()
            assert refused.value.pause == 500


def test_the_node_s_word_on_its_pruning_is_checked(spark) -> None:
    with NodeServer(archive("chrysalis"), "chrysalis") as server:
        first = server.pruned + 1
        for told in (0, first - 1, first, first + 2):
            server.told_pruned = told
            assert NodeSource(spark, "modest", network(server)).first_milestone == first


def test_landed_records_of_another_tangle_are_dropped(spark) -> None:
    for protocol in ("stardust", "chrysalis"):
        with NodeServer(archive(protocol), protocol) as server:
            node = NodeSource(spark, "renamed", network(server))
            count = node.records(node.days(*dates(*SPANS[protocol]))).where("kind = 1").count()
            assert count == len(server.blocks)


def test_days_out_of_the_node_s_reach_are_errors_that_say_why(spark) -> None:
    with NodeServer(archive("stardust"), "stardust") as server:
        node = NodeSource(spark, "short", network(server))
        with pytest.raises(
            PermalakeError, match=r"2022-09-27 cannot be built: the node has pruned"
        ) as before:
            node.days(*dates("2022-09-27", "2022-09-28"))
        with pytest.raises(PermalakeError, match=r"2022-10-02 cannot be built yet") as after:
            node.days(*dates("2022-09-30", "2022-10-02"))
        assert "\n" not in str(before.value) + str(after.value)
        assert node.days(*dates("2022-09-29", "2022-09-29")) == []


def test_a_day_is_complete_once_the_node_has_a_milestone_of_a_later_day(spark, tmp_path) -> None:
    span = SPANS["stardust"]
    with NodeServer(archive("stardust"), "stardust") as server:
        asked = network(server, goes_on=False)
        node = NodeSource(spark, "lagging", asked)
        built = build_from(spark, node, asked, span, tmp_path / "decoded")
        ((day, reason),) = built.refused.items()
        assert day == date(2022, 9, 30)
        assert reason.startswith(f"milestone {server.confirmed}: day_incomplete: ")
        assert "\n" not in reason
        assert {row["date"] for row in built.rows("milestones")} == {span[0]}
        network(server)
        node = NodeSource(spark, "lagging", asked)
        built = build_from(spark, node, asked, span, tmp_path / "again")
    assert built.refused == {}
    assert differences(built.rows("messages"), expected("stardust", "messages")) == ([], [])


def test_a_wrong_address_is_one_line_that_names_the_key(spark) -> None:
    with NodeServer(archive("stardust"), "stardust") as server:
        wrong = NetworkSettings(protocol="chrysalis", bech32_hrp="iota", source="node", url=server.url)
        with pytest.raises(ConfigError, match=r"networks\.main\.url: HTTP 404 .* a chrysalis node\?$"):
            NodeSource(spark, "main", wrong)
        elsewhere = wrong.model_copy(update={"url": "http://127.0.0.1:1", "timeout": 0.2})
    with pytest.raises(PermalakeError, match=r"networks\.main\.url: no connection; .* is it up\?$"):
        NodeSource(spark, "main", elsewhere)


def test_a_node_that_goes_down_is_one_line_and_the_rest_is_fetched_later(spark) -> None:
    with NodeServer(archive("stardust"), "stardust") as server:
        node = NodeSource(spark, "shaky", network(server))
        node._address = replace(node._address, retry_policy=RetryPolicy(attempts=2, back_off=0.01))
        days = node.days(*dates(*SPANS["stardust"]))
        server.after = {"answers": 200, "fault": "503"}
        with pytest.raises(PermalakeError, match=r"networks\.shaky\.url: HTTP 503; what was fetched is kept"):
            node.records(days)
        server.after = {}
        assert node.records(days).where("kind = 1").count() == len(server.blocks)
