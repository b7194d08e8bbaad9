"""Official clients read the real Shimmer milestones: what they are given is what the nodes had told.

The lake is built from the archive by a whole run; the other side is the archive itself.
"""

from __future__ import annotations

import json
import subprocess
import sys

import httpx
import pytest

from permalake.api.app import create_app
from permalake.config import load_settings
from permalake.domains import domain_of
from permalake.lake.serving import LakeReader
from permalake.paths import SAMPLE
from support import held_amounts, official_clients
from support.live_api import live_api

SHIMMER = SAMPLE / "shimmer"
CALLS = official_clients.HERE / "iota_sdk_calls.py"


def archive(name):
    return [json.loads(line) for line in (SHIMMER / f"{name}.jsonl").read_text().splitlines()]


BLOCKS, MILESTONES, CHANGES = archive("blocks"), archive("milestones"), archive("utxo_changes")
CREATED, CONSUMED = archive("created_outputs"), archive("consumed_outputs")
UNSPENT = {one["outputId"] for one in CREATED} - {one["outputId"] for one in CONSUMED}
TRANSACTIONS = {one["outputId"][:66]: one["blockId"] for one in CREATED}


@pytest.fixture(scope="module")
def address(undisturbed_settings, tmp_path_factory):
    reader = LakeReader(
        settings := load_settings(undisturbed_settings), domain_of, cache=tmp_path_factory.mktemp("index")
    )
    with live_api(create_app(settings, reader)) as url:
        yield url


def told(command, calls):
    """What a client's process answers, by its place; none is an error."""
    done = subprocess.run(
        command, input=json.dumps(calls), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert not [one for one in found if isinstance(one, dict) and "error" in one]
    return iter(found)


def hexed(raw):
    return raw.removeprefix("0x") if isinstance(raw, str) else bytes(raw).hex()


def same_metadata(found, wanted):
    names = ("blockId", "parents", "referencedByMilestoneIndex", "ledgerInclusionState", "whiteFlagIndex")
    return [found.get(name) for name in names] == [wanted.get(name) for name in names]


def given(value):
    """What a client's object holds: without the attributes that are None."""
    if isinstance(value, list):
        return [given(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: given(one) for name, one in value.items() if one is not None}


def same_output(found, row):
    """Return whether an output and its metadata are those of the archive."""
    metadata, spent = found["metadata"], row["outputId"] not in UNSPENT
    return (
        (metadata["blockId"], metadata["milestoneIndexBooked"], metadata["isSpent"])
        == (row["blockId"], row["milestoneIndexBooked"], spent)
        and f"{metadata['transactionId']}{metadata['outputIndex']:02x}00" == row["outputId"]
        # The archive has an alias' empty metadata, which nodes leave out.
        and {"stateMetadata": "0x", **given(found["output"])} == {"stateMetadata": "0x", **row["output"]}
    )


@pytest.mark.parametrize("library", ["iota-sdk", "sdk-wasm"])
def test_the_sdk_reads_every_block_milestone_and_output(address, library) -> None:
    node = f"{address}/shimmer"
    if library == "iota-sdk":
        command = [sys.executable, CALLS, node]
        names = {
            "raw": "get_block_raw",
            "metadata": "get_block_metadata",
            "output": "get_output",
            "changes": "get_utxo_changes_by_index",
            "included": "get_included_block_metadata",
            "milestone": "get_milestone_by_index_raw",
        }
        calls = [[name, [one]] for name, one in wanted(names)]
    else:
        official_clients.install()
        wasm = official_clients.HERE / "iota_wasm.js"
        command = [official_clients.BIN / "node", wasm, "sdk", "node", node]
        names = {
            "raw": "getBlockRaw",
            "metadata": "getBlockMetadata",
            "output": "getOutput",
            "changes": "getUtxoChangesByIndex",
            "included": "getIncludedBlockMetadata",
        }
        calls = [[name, one] for name, one in wanted(names)]
    found = told(command, calls)
    for block in BLOCKS:
        assert hexed(next(found)) == block["raw"]
        assert same_metadata(next(found), block["metadata"])
    for row in CREATED:
        assert same_output(next(found), row), row["outputId"]
    for row in CHANGES:
        changes = next(found)
        for side in ("createdOutputs", "consumedOutputs"):
            assert sorted(changes[side]) == sorted(row[side])
    for block_id in TRANSACTIONS.values():
        assert next(found)["blockId"] == block_id
    if "milestone" in names:
        for row in MILESTONES:
            assert hexed(next(found)) == hexed(row["rawPayload"])
    assert next(found, None) is None


def wanted(names):
    """Calls of the test above as (method, argument), in its order."""
    for block in BLOCKS:
        for one in ("raw", "metadata"):
            yield names[one], block["metadata"]["blockId"]
    yield from ((names["output"], row["outputId"]) for row in CREATED)
    yield from ((names["changes"], row["index"]) for row in CHANGES)
    yield from ((names["included"], transaction) for transaction in TRANSACTIONS)
    if "milestone" in names:
        yield from ((names["milestone"], row["index"]) for row in MILESTONES)


def test_iota_js_reads_the_same(address) -> None:
    official_clients.install()
    command = [
        *(official_clients.BIN / "node", official_clients.HERE / "iota_nodes.js"),
        *(f"{address}/shimmer", "stardust"),
    ]
    calls = [
        *(["blockRaw", block["metadata"]["blockId"]] for block in BLOCKS),
        *(["output", row["outputId"]] for row in CREATED),
        *(["milestoneByIndex", row["index"]] for row in MILESTONES),
        *(["milestoneUtxoChangesByIndex", row["index"]] for row in CHANGES),
    ]
    found = told(command, calls)
    for block in BLOCKS:
        assert hexed(next(found)) == block["raw"]
    for row in CREATED:
        assert same_output(next(found), row), row["outputId"]
    for row in MILESTONES:
        # Nodes leave out what is empty.
        assert {"metadata": "0x", "options": [], **next(found)} == row["payload"]
    for row in CHANGES:
        assert sorted(next(found)["consumedOutputs"]) == sorted(row["consumedOutputs"])


def test_page_api_and_sql_tell_the_same_of_every_address(address, undisturbed_settings) -> None:
    of_sql = held_amounts.by_sql(load_settings(undisturbed_settings), "shimmer")
    assert len(of_sql) > 40

    def ask(path):
        answer = httpx.get(address + path, headers={"Accept": "application/json"}, timeout=60)
        assert answer.status_code == 200, (path, answer.text)
        return answer.json()

    for way in (held_amounts.by_api, held_amounts.by_page):
        assert {one: way(ask, "shimmer", one) for one in of_sql} == of_sql


def test_the_page_of_the_day_adds_up(address) -> None:
    answer = httpx.get(f"{address}/shimmer/explore/day/2022-09-28?format=json", timeout=60).json()["found"]
    figures = {one["label"]: one["value"] for one in answer["figures"]}
    assert figures["Messages"] == len(BLOCKS) == sum(row["messages"] for row in answer["hours"])
    assert figures["Included transactions"] == len(set(TRANSACTIONS))
    page = httpx.get(f"{address}/shimmer/explore/day/2022-09-28", headers={"Accept": "text/html"}, timeout=60)
    assert page.text.count('<svg class="bars"') == 2
    assert "the source ends with milestone 17340; the day may go on" in answer["notes"]
    assert all(note in page.text for note in answer["notes"])
    last = httpx.get(f"{address}/shimmer/explore/milestone/17340?format=json", timeout=60).json()["found"]
    assert (last["previous"], last["next"]) == (17339, None)
    rows = httpx.get(f"{address}/shimmer/explore/day/2022-09-28?format=csv&list=hours", timeout=60).text
    assert rows.startswith("hour,messages,included,conflicting,moved\n17,")
