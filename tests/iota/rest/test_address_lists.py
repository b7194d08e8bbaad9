"""Lists of an address's outputs over a Chrysalis lake whose rows of one milestone are many or few."""

from __future__ import annotations

from collections import defaultdict

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.domains import domain_of
from permalake.lake.serving import LakeReader
from support import synthetic_lake

NETWORK = "iota"
SIZE = 3


@pytest.fixture(scope="module")
def rows():
    """The synthetic tangle's rows, every third milestone's outputs dust allowances."""
    rows = synthetic_lake.tables("chrysalis")
    for row in rows["legacy_outputs"]:
        row["output_type"] = int(row["milestone_index"] % 3 == 0)
    return rows


@pytest.fixture(scope="module")
def api(rows, tmp_path_factory):
    """A server of that network."""
    folder = tmp_path_factory.mktemp("address_lists")
    settings = synthetic_lake.settings_of(folder / "lake")
    synthetic_lake.publish(settings, NETWORK, rows, synthetic_lake.days(rows))
    with TestClient(create_app(settings, LakeReader(settings, domain_of, cache=folder / "index"))) as client:
        yield client


def walk(api, path, **query):
    """All output ids of a list, page by page."""
    found, cursor = [], {}
    while True:
        answer = api.get(path, params={"pageSize": SIZE, **query, **cursor})
        assert answer.status_code == 200, answer.text
        page = answer.json()["data"]
        found += page["outputIds"]
        if "cursor" not in page:
            return found
        cursor = {"cursor": page["cursor"]}


@pytest.mark.parametrize("prefix", [f"/{NETWORK}/api/v1", f"/api/permanode/v1/{NETWORK}"])
@pytest.mark.parametrize("sort", ["newest", "oldest"])
def test_outputs_are_listed_once_though_a_scan_names_no_milestones(
    api, rows, monkeypatch, prefix, sort
) -> None:
    """As for pages of more than 200 milestones, of which a scan opens files whole."""
    monkeypatch.setattr("permalake.lake.serving.snapshot._NAMED_MILESTONES", 0)
    owned, milestones = defaultdict(list), defaultdict(set)
    for row in rows["legacy_outputs"]:
        milestones[row["address"]].add(row["milestone_index"])
        if row["output_type"] == 1:
            owned[row["address"]].append((row["milestone_index"], row["output_id"]))
    some = [
        address for address in owned if len(milestones[address]) > SIZE + 1 and len(owned[address]) <= SIZE
    ]
    assert some
    for address in some:
        path = f"{prefix}/addresses/{address}/outputs"
        wanted = [output_id for _, output_id in sorted(owned[address], reverse=sort == "newest")]
        assert walk(api, path, type=1, sort=sort, **{"include-spent": "true"}) == wanted
