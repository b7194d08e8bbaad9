"""Lists of an address's outputs: each row once, and none that the balance beside them does not count."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.domains import domain_of
from permalake.iota.rest.holdings import OWNERS
from permalake.lake.serving import LakeReader
from support import synthetic_lake

NETWORKS = ("shimmer", "iota")
SIZE = 3


@contextmanager
def served(folder, rows_of_networks):
    """A server of a lake with these rows."""
    settings = synthetic_lake.settings_of(folder / "lake")
    for network, rows in rows_of_networks.items():
        synthetic_lake.publish(settings, network, rows, synthetic_lake.days(rows))
    with TestClient(create_app(settings, LakeReader(settings, domain_of, cache=folder / "index"))) as client:
        yield client


def get(api, path, **query):
    answer = api.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def walk(api, path, **query):
    """All output ids of a list, page by page."""
    found, cursor = [], {}
    while True:
        page = get(api, path, pageSize=SIZE, **query, **cursor)["data"]
        found += page["outputIds"]
        if "cursor" not in page:
            return found
        cursor = {"cursor": page["cursor"]}


@pytest.fixture(scope="module")
def few_allowances():
    """Rows of the synthetic Chrysalis tangle; outputs of every third milestone are dust allowances."""
    rows = synthetic_lake.tables("chrysalis")
    for row in rows["legacy_outputs"]:
        row["output_type"] = int(row["milestone_index"] % 3 == 0)
    return rows


@pytest.fixture(scope="module")
def api(few_allowances, tmp_path_factory):
    with served(tmp_path_factory.mktemp("allowances"), {"iota": few_allowances}) as client:
        yield client


@pytest.mark.parametrize("prefix", ["/iota/api/v1", "/api/permanode/v1/iota"])
@pytest.mark.parametrize("sort", ["newest", "oldest"])
def test_outputs_are_listed_once_though_a_scan_names_no_milestones(
    api, few_allowances, monkeypatch, prefix, sort
) -> None:
    """As for pages of more than 200 milestones, of which a scan opens files whole."""
    monkeypatch.setattr("permalake.lake.serving.snapshot._NAMED_MILESTONES", 0)
    owned, milestones = defaultdict(list), defaultdict(set)
    for row in few_allowances["legacy_outputs"]:
        milestones[row["address"]].add(row["milestone_index"])
        if row["output_type"] == 1:
            owned[row["address"]].append((row["milestone_index"], row["output_id"]))
    some = [one for one in owned if len(milestones[one]) > SIZE + 1 and len(owned[one]) <= SIZE]
    assert some
    for address in some:
        wanted = [output_id for _, output_id in sorted(owned[address], reverse=sort == "newest")]
        path = f"{prefix}/addresses/{address}/outputs"
        assert walk(api, path, type=1, sort=sort, **{"include-spent": "true"}) == wanted


def without_milestone(rows, gap):
    """The rows of a lake that lacks a milestone, the last one of a day."""
    kept = {name: [row for row in found if row.get("milestone_index") != gap] for name, found in rows.items()}
    days = [row | {"end_ms": gap - 1} if row["end_ms"] == gap else row for row in kept["date_cache"]]
    return kept | {"date_cache": days}


@pytest.fixture(scope="module")
def gap():
    """The last milestone of the first day, which the lake lacks."""
    rows = synthetic_lake.tables("chrysalis")
    return min(row["end_ms"] for row in rows["date_cache"])


@pytest.fixture(scope="module")
def rows_with_gap(gap):
    """Rows by network and table."""
    return {
        network: without_milestone(synthetic_lake.tables(synthetic_lake.NETWORKS[network]), gap)
        for network in NETWORKS
    }


@pytest.fixture(scope="module")
def api_with_gap(rows_with_gap, tmp_path_factory):
    with served(tmp_path_factory.mktemp("gap"), rows_with_gap) as client:
        yield client


@pytest.mark.parametrize("network", NETWORKS)
def test_no_list_goes_on_behind_a_gap(api_with_gap, rows_with_gap, network, gap) -> None:
    owned, amounts = defaultdict(dict), {}
    for table, owner in OWNERS.items():
        for row in rows_with_gap[network].get(table, ()):
            owned[row[owner]][row["output_id"]] = row["milestone_index"]
            amounts[row["output_id"]] = row["amount"]
    some = [one for one, outputs in owned.items() if min(outputs.values()) < gap < max(outputs.values())][:10]
    assert some
    for address in some:
        page = get(api_with_gap, f"/api/permanode/v1/{network}/addresses/{address}/outputs")["data"]
        assert page["ledgerIndex"] == gap - 1
        assert set(page["outputIds"]) == {one for one, index in owned[address].items() if index < gap}
        if network == "iota":
            path = f"/iota/api/v1/addresses/{address}"
            unspent = get(api_with_gap, f"{path}/outputs")["data"]["outputIds"]
            assert get(api_with_gap, path)["data"]["balance"] == sum(amounts[one] for one in unspent)


@pytest.mark.parametrize("network", NETWORKS)
def test_an_output_behind_a_gap_is_spent_if_the_lake_says_so(
    api_with_gap, rows_with_gap, network, gap
) -> None:
    """One before the gap is as it was at the ledger index."""
    rows = rows_with_gap[network]
    created = {row["output_id"]: row["milestone_index"] for table in OWNERS for row in rows.get(table, ())}
    used = [row for row in rows["consumed_outputs"] if row["milestone_index"] > gap]
    behind = [row for row in used if created.get(row["output_id"], 0) > gap]
    before = [row for row in used if created.get(row["output_id"], gap) < gap]
    assert behind
    assert before
    for row, index in [(row, row["milestone_index"]) for row in behind] + [(row, None) for row in before]:
        name = row["output_id"]
        if network == "iota":
            found = get(api_with_gap, f"/iota/api/v1/outputs/{name}")["data"]
        else:
            found = get(api_with_gap, f"/shimmer/api/core/v2/outputs/0x{name}/metadata")
        assert (found["isSpent"], found.get("milestoneIndexSpent")) == (index is not None, index)
        page = get(api_with_gap, f"/{network}/explore/output/{name}", format="json")["found"]
        assert page["spent_in"] == index


def test_an_address_that_has_spent_all_is_read_in_few_questions(tmp_path, monkeypatch) -> None:
    every = synthetic_lake.tables("chrysalis")
    [day, *_] = synthetic_lake.days(every)
    count, like, start = 300, every["legacy_outputs"][0], every["milestones"][0]
    spent = {**every["consumed_outputs"][0], "kind": "legacy", "address": like["address"]}
    [dates, *_] = every["date_cache"]
    dates = dates | {"start_ms": start["milestone_index"], "end_ms": start["milestone_index"] + count - 1}
    rows = {"date_cache": [dates], "milestones": [], "legacy_outputs": [], "consumed_outputs": []}
    for number in range(count):
        place = {"milestone_index": start["milestone_index"] + number, "date": day}
        output = {"output_id": f"{number:064x}0000"}
        rows["milestones"].append(start | place)
        rows["legacy_outputs"].append(like | place | output | {"output_type": 0})
        rows["consumed_outputs"].append(spent | place | output)
    with served(tmp_path, {"iota": rows}) as api:
        reader, questions = api.app.state.reader, []
        read = reader.rows
        monkeypatch.setattr(reader, "rows", lambda query: questions.append(query) or read(query))
        path = f"/iota/api/v1/addresses/{like['address']}/outputs"
        assert get(api, path, pageSize=1)["data"]["outputIds"] == []
        assert get(api, path, pageSize=1, type=1, **{"include-spent": True})["data"]["outputIds"] == []
    assert len(questions) < count / 5
