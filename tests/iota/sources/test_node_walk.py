"""What is fetched from a node, and how often: a real HTTP server of both protocols that misbehaves."""

import datetime as dt
import gzip
import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict, deque
from dataclasses import replace
from itertools import pairwise
from math import log2

import pytest

from permalake.errors import PermalakeError
from permalake.iota.codec.from_json import pack_json_block, pack_json_milestone, pack_json_output
from permalake.iota.codec.milestones import decode_milestone
from permalake.iota.cone.source_records import Record
from permalake.iota.sources.node_answers import parents_of
from permalake.iota.sources.node_api import NodeAddress
from permalake.iota.sources.node_cache import REFERENCE, STRETCH, NodeCache
from permalake.iota.sources.node_fetch import land
from permalake.iota.sources.node_time import Timeline
from support import node_walks, places
from support.node_server import NodeServer
from support.node_walks import HASTY, wanted

DATA = places.DATA
ARCHIVES = {protocol: DATA / "synthetic" / protocol / "archive" for protocol in ("stardust", "chrysalis")}
SHORT = replace(HASTY, read=0.5)
ONE_TRY = replace(HASTY, attempts=1)
LOOK_BACK = 8


def address(server, retry_policy=HASTY, concurrency=8):
    return NodeAddress("the node", server.url, server.protocol, 5_000, concurrency, 0.5, retry_policy)


def fetch(server, root, first=None, last=None, begin=None, retry_policy=HASTY, look_back=40):
    first, last = first or server.pruned + 1, last or server.confirmed
    asked = wanted(first, last)
    entry_end = (first if begin is None else begin) + look_back
    return list(land(address(server, retry_policy), NodeCache(root), asked, entry_end))


def landed(root):
    landing = NodeCache(root)
    tables = (table for stretch in landing.stretches() for table in landing.read(stretch))
    return [row for table in tables for row in table.to_pylist()]


def blocks_in(root):
    return {row["id"].hex() for row in landed(root) if row["kind"] == Record.BLOCK}


def lines(protocol, name):
    with gzip.open(ARCHIVES[protocol] / f"{name}.jsonl.gz", "rt") as text:
        return [json.loads(line) for line in text]


def told(text):
    return bytes.fromhex(text.removeprefix("0x"))


def assert_complete(root, protocol) -> None:
    """All that the archive holds is landed, bit for bit, once."""
    rows = {kind: [row for row in landed(root) if row["kind"] == kind] for kind in Record}
    blocks = lines(protocol, "blocks" if protocol == "stardust" else "messages")
    states = ("conflicting", "included", "noTransaction")
    ours = [
        (r["milestone"], r["id"], r["raw"], states[r["state"]], r["conflict"]) for r in rows[Record.BLOCK]
    ]
    assert Counter(ours) == Counter(
        (
            row["milestone"],
            told(row["metadata"].get("blockId") or row["metadata"]["messageId"]),
            told(row["raw"]),
            row["metadata"]["ledgerInclusionState"],
            row["metadata"].get("conflictReason", 0),
        )
        for row in blocks
    )
    milestones = lines(protocol, "milestones")
    assert Counter((r["milestone"], r["id"], r["raw"]) for r in rows[Record.MILESTONE]) == Counter(
        (row["index"], told(row["milestoneId"]), told(row["rawPayload"])) for row in milestones
    )
    consumed = lines(protocol, "consumed_outputs")
    assert Counter((r["milestone"], r["id"], r["raw"]) for r in rows[Record.CONSUMED]) == Counter(
        (row["milestone"], told(row["outputId"]), told(row["rawOutput"])) for row in consumed
    )
    changes = lines(protocol, "utxo_changes")
    assert Counter((r["milestone"], r["raw"], r["link"]) for r in rows[Record.CHANGES]) == Counter(
        (row["index"], joined(row["createdOutputs"]), joined(row["consumedOutputs"])) for row in changes
    )


def joined(ids):
    return b"".join(map(told, ids))


@pytest.mark.parametrize("protocol", ARCHIVES)
def test_all_is_fetched_once_bit_for_bit_whatever_the_node_does(protocol, tmp_path) -> None:
    with NodeServer(ARCHIVES[protocol], protocol, faulty=0.08, seed=5) as server:
        assert [one.error for one in fetch(server, tmp_path, retry_policy=SHORT)] == [None]
        assert sum(server.counts.values()) > 1.05 * sum(server.answered.values())
    assert_complete(tmp_path, protocol)


def test_a_node_that_answers_in_json_gives_the_same_bytes(tmp_path) -> None:
    with NodeServer(ARCHIVES["stardust"], "stardust", raw=False) as server:
        assert [one.error for one in fetch(server, tmp_path)] == [None]
        assert max(server.answered.values()) == 1
        assert server.most_at_once <= 8
    assert_complete(tmp_path, "stardust")


@pytest.mark.parametrize("protocol", ARCHIVES)
def test_what_a_failed_run_had_fetched_is_not_fetched_again(protocol, tmp_path) -> None:
    with NodeServer(ARCHIVES[protocol], protocol) as server:
        for answers in (40, 150, 400):
            server.after = {"answers": answers, "fault": "503"}
            (failed,) = fetch(server, tmp_path, retry_policy=ONE_TRY)
            assert failed.error == "the node: HTTP 503"
            assert failed.path is None
        server.after = {}
        assert [one.error for one in fetch(server, tmp_path)] == [None]
        # What is landed is whole blocks: metadata of those on their way may be asked for twice.
        again = [path for path, count in server.answered.items() if count > 1]
        assert not [path for path in again if not TELLS_OF.search(path)]
        assert len(again) <= 3 * (8 + 16)
        before = sum(server.counts.values())
        assert [one.error for one in fetch(server, tmp_path)] == [None]
        assert sum(server.counts.values()) == before
    assert_complete(tmp_path, protocol)


# Calls that only tell where to look: metadata of a block, the message of a milestone.
TELLS_OF = re.compile(r"/metadata$|/v1/milestones/[0-9]+$")


def test_what_a_killed_run_had_landed_is_not_fetched_again(tmp_path) -> None:
    with NodeServer(ARCHIVES["stardust"], "stardust") as server:
        server.delay = 0.02
        span = (str(server.pruned + 1), str(server.confirmed))
        run = subprocess.Popen([sys.executable, node_walks.__file__, server.url, str(tmp_path), *span])
        while len(blocks_in(tmp_path)) < 20 and run.poll() is None:
            time.sleep(0.05)
        run.send_signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
        server.delay = 0.0
        kept = blocks_in(tmp_path)
        assert 20 <= len(kept) < 250
        first = server.answered.copy()
        assert [one.error for one in fetch(server, tmp_path)] == [None]
        again = [path for path, count in (server.answered - first).items() if first[path] and count]
        assert not [path for path in again if any(one in path for one in kept)]
    assert_complete(tmp_path, "stardust")


def test_a_live_node_is_asked_for_what_is_new_only(tmp_path) -> None:
    with NodeServer(ARCHIVES["chrysalis"], "chrysalis") as server:
        first, end = server.pruned + 1, server.confirmed
        for confirmed in (end - 9, end - 4, end):
            server.confirmed = confirmed
            assert [one.error for one in fetch(server, tmp_path, begin=first)] == [None]
        assert max(server.answered.values()) == 1
    assert_complete(tmp_path, "chrysalis")


def test_retry_after_holds_every_thread_back(tmp_path) -> None:
    with NodeServer(ARCHIVES["stardust"], "stardust") as server:
        server.after, server.retry_after = {"answers": 100, "fault": "429", "times": 1}, "2"
        assert [one.error for one in fetch(server, tmp_path)] == [None]
        pauses = [after - before for (before, _), (after, _) in pairwise(server.times)]
        assert max(pauses) >= 1.0
        assert sum(server.counts.values()) - sum(server.answered.values()) <= 1 + 8
    assert_complete(tmp_path, "stardust")


def test_a_parent_that_is_gone_leaves_its_milestone_incomplete_until_it_is_there(tmp_path) -> None:
    with NodeServer(ARCHIVES["stardust"], "stardust") as server:
        first, last = server.pruned + 1, server.confirmed
        lost = next(b for b in lines("stardust", "blocks") if b["milestone"] == first + 4)["metadata"]
        server.lost = {f"/api/core/v2/blocks/{lost['blockId']}"}
        (done,) = fetch(server, tmp_path, begin=first - 100)
        assert done.error is None
        whole = NodeCache(tmp_path).whole(first // STRETCH)
        # What the milestones before the first refer to is gone as well: the node is too young for it.
        assert whole.last == first - 1
        assert told(lost["blockId"]) not in {row["id"] for row in landed(tmp_path)}
        assert NodeCache(tmp_path).holds(first + 4) is None
        server.lost = set()
        before = server.answered.copy()
        fetch(server, tmp_path, begin=first)
        assert NodeCache(tmp_path).holds(first + 4).last == last
        assert max((server.answered - before).values()) == 1
        assert not [p for p in server.answered - before if before[p] and "metadata" not in p]
    assert_complete(tmp_path, "stardust")


def children_in_order(protocol):
    """Milestones that refer to each block, in the order in which one request at a time walks the cones."""
    blocks = {told(row["metadata"]["blockId"]): row for row in lines(protocol, "blocks")}
    children = defaultdict(list)
    queue = deque(
        (parent, row["index"])
        for row in lines(protocol, "milestones")
        for parent in decode_milestone(told(row["rawPayload"]), protocol).parents
    )
    while queue:
        block_id, child = queue.popleft()
        children[block_id].append(child)
        if block_id in blocks and len(children[block_id]) == 1:
            row = blocks[block_id]
            queue.extend((parent, row["milestone"]) for parent in parents_of(told(row["raw"]), protocol))
    return children


def test_what_lay_before_a_node_s_beginning_is_asked_of_one_that_begins_earlier(tmp_path) -> None:
    with NodeServer(ARCHIVES["stardust"], "stardust") as server:
        begin, server.pruned = server.pruned, server.pruned + 8
        assert [one.error for one in fetch(server, tmp_path)] == [None]
        assert [row for row in landed(tmp_path) if row["kind"] == REFERENCE and row["milestone"] == 0]
        server.pruned = begin
        assert [one.error for one in fetch(server, tmp_path)] == [None]
    assert_complete(tmp_path, "stardust")


def test_a_block_that_is_gone_is_missed_by_the_earliest_cone_that_has_it(tmp_path) -> None:
    with NodeServer(ARCHIVES["stardust"], "stardust") as server:
        first, last = server.pruned + 1, server.confirmed
        lost, earliest = next(
            (block_id.hex(), min(asked))
            for block_id, asked in children_in_order("stardust").items()
            if block_id.hex() in server.blocks and asked[0] > min(asked) > first + LOOK_BACK
        )
        server.lost = {f"/api/core/v2/blocks/0x{lost}/metadata"}
        one_at_a_time = address(server, concurrency=1)
        (done,) = land(one_at_a_time, NodeCache(tmp_path), wanted(first, last), first + LOOK_BACK)
        assert done.error is None
        assert NodeCache(tmp_path).whole(first // STRETCH).last == earliest - 1


def test_a_node_that_contradicts_itself_is_an_error_that_names_milestone_and_block(tmp_path) -> None:
    with NodeServer(ARCHIVES["stardust"], "stardust") as server:
        row = next(row for row in server.blocks.values() if row["milestone"] == server.confirmed - 1)
        row["metadata"] = row["metadata"] | {"referencedByMilestoneIndex": None}
        (failed,) = fetch(server, tmp_path)
    block = row["metadata"]["blockId"].removeprefix("0x")
    assert failed.error.startswith("milestone ")
    assert block in failed.error
    assert "no milestone" in failed.error
    assert "\n" not in failed.error


def test_a_day_is_found_in_few_calls(tmp_path) -> None:
    begin, step, n = 1_600_000_000, 10, 3_000_000
    asked = []

    def ask(index):
        asked.append(index)
        return begin + step * index

    times = Timeline(ask, 1, n, tmp_path / "times.json")
    day = times.day(time_to_date(begin + step * 2_000_000))
    assert len(asked) <= 2 * (log2(n) + 1)
    midnight = (begin + step * 2_000_000) // 86_400 * 86_400
    assert (day.first, day.last) == (-(-(midnight - begin) // step), (midnight + 86_399 - begin) // step)
    times.save()
    before = len(asked)
    known = Timeline(ask, 1, n, tmp_path / "times.json")
    assert known.day(day.date) == day
    known.day(time_to_date(midnight + 86_400))
    assert len(asked) - before <= log2(n)


def test_a_milestone_that_a_node_should_have_is_a_gap(tmp_path) -> None:
    times = Timeline(lambda index: None if index == 5 else index, 1, 9, tmp_path / "times.json")
    with pytest.raises(PermalakeError, match="milestone 5: milestone_gap"):
        times.day(time_to_date(0))


def time_to_date(moment):
    return dt.datetime.fromtimestamp(moment, dt.UTC).date()


@pytest.mark.parametrize(
    ("name", "protocol"), [("stardust_blocks", "stardust"), ("chrysalis_messages", "chrysalis")]
)
def test_real_messages_are_packed_from_their_json(name, protocol) -> None:
    rows = [json.loads(line) for line in (DATA / "iota" / f"{name}.jsonl").read_text().splitlines()]
    assert [pack_json_block(row["json"], protocol).hex() for row in rows] == [row["raw"] for row in rows]


@pytest.mark.parametrize("protocol", ARCHIVES)
def test_milestones_and_outputs_are_packed_from_their_json(protocol) -> None:
    for row in lines(protocol, "milestones"):
        assert pack_json_milestone(row["payload"], protocol) == told(row["rawPayload"])
    for row in lines(protocol, "consumed_outputs"):
        assert pack_json_output(row["output"]) == told(row["rawOutput"])
