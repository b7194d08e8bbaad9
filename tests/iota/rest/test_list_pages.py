"""Lists of IOTA networks: the rows that SQL has, through each filter and order; NFTs by their issuer."""

from __future__ import annotations

import csv
import io

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.iota.rest import list_pages as nft_pages
from permalake.iota.rest.content_words import KINDS, PAYLOADS, payload_type
from permalake.web import list_pages
from support import synthetic_lake
from support.synthetic_lake import NETWORKS as PROTOCOLS

WIDE = {"start": "2000-01-01", "end": "2999-01-01"}


@pytest.fixture(params=("shimmer", "iota"))
def network(request):
    """A network of each protocol."""
    return request.param


def listed(api, network, name, /, status=200, **asked):
    answer = api.get(f"/{network}/explore/{name}", params={**WIDE, "format": "json", **asked})
    assert answer.status_code == status, answer.text
    return answer.json() if status != 200 else answer.json()["rows"]


def rows_of(api, network, table):
    """Every row of a table, from its file."""
    answer = api.get(f"/api/analytics/v1/{network}/{table}", params={"format": "parquet"})
    assert answer.status_code == 200, answer.text
    return pq.read_table(io.BytesIO(answer.content)).to_pylist()


def keys(changes):
    return {(one["output"], one["change"] == "consumed") for one in changes}


def test_ledger_changes_are_filtered_by_each_of_their_columns(synthetic_api, network) -> None:
    rows = rows_of(synthetic_api, network, "ledger_updates")
    assert keys(listed(synthetic_api, network, "changes")) == {
        (row["output_id"], bool(row["is_spent"])) for row in rows
    }
    amount = sorted(row["amount"] for row in rows)[len(rows) // 2]
    coins = f"{amount // 10**6}.{amount % 10**6:06d}"
    address, kind = rows[0]["address"], rows[-1]["kind"]
    cases = {
        "address": (address, lambda row: row["address"] == address),
        "kind": (kind, lambda row: row["kind"] == kind),
        "change": ("consumed", lambda row: row["is_spent"]),
        "minimum": (coins, lambda row: row["amount"] >= amount),
        "maximum": (coins, lambda row: row["amount"] <= amount),
    }
    for name, (text, keeps) in cases.items():
        expected = {(row["output_id"], bool(row["is_spent"])) for row in rows if keeps(row)}
        assert keys(listed(synthetic_api, network, "changes", **{name: text})) == expected, name
        assert expected, name


def test_ledger_changes_are_sorted_and_told_in_words(synthetic_api, network) -> None:
    found = listed(synthetic_api, network, "changes", sort="-amount")
    amounts = [one["amount"] for one in found]
    assert amounts == sorted(amounts, reverse=True)
    assert {one["kind"] for one in found} <= set(KINDS.values())
    times = [one["time"] for one in listed(synthetic_api, network, "changes", sort="time")]
    assert times == sorted(times)


def test_messages_are_filtered_by_what_they_carry(synthetic_api, network) -> None:
    words = {network: PAYLOADS[protocol] for network, protocol in PROTOCOLS.items()}[network]
    carried = {kind: set() for kind in words.values()}
    for row in rows_of(synthetic_api, network, "messages"):
        carried[words[payload_type(row["message"], PROTOCOLS[network])]].add(row["message_id"])
    for kind, expected in carried.items():
        found = listed(synthetic_api, network, "messages", payload=kind)
        assert {one["message"] for one in found} == expected
    assert sum(map(bool, carried.values())) >= 3
    transactions = {row["message_id"] for row in rows_of(synthetic_api, network, "transactions")}
    assert transactions <= carried["transaction"]
    answer = listed(synthetic_api, network, "messages", 400, payload="dust")
    assert "choose from no payload" in answer["detail"]


def test_messages_are_filtered_by_their_state(synthetic_api, network) -> None:
    rows = rows_of(synthetic_api, network, "messages")
    for state, number in {"included": 1, "conflicting": 0, "no transaction": 2}.items():
        expected = {row["message_id"] for row in rows if row["inclusion_state"] == number}
        assert {one["message"] for one in listed(synthetic_api, network, "messages", state=state)} == expected
        assert expected, state
    reason = next(row["conflict_reason"] for row in rows if row["inclusion_state"] == 0)
    found = listed(synthetic_api, network, "messages", reason=reason)
    assert {one["message"] for one in found} == {
        row["message_id"] for row in rows if (row["inclusion_state"], row["conflict_reason"]) == (0, reason)
    }
    assert all(one["conflict"].startswith(str(reason)) for one in found)


def test_files_and_pages_hold_what_the_link_shows(synthetic_api, network) -> None:
    shown = listed(synthetic_api, network, "changes", change="created", sort="-amount")
    asked = {**WIDE, "change": "created", "sort": "-amount", "list": "rows"}
    path = f"/{network}/explore/changes"
    text = synthetic_api.get(path, params={**asked, "format": "csv"}).text
    assert [row["output"] for row in csv.DictReader(io.StringIO(text))] == [one["output"] for one in shown]
    file = synthetic_api.get(path, params={**asked, "format": "parquet"}).content
    assert pq.read_table(io.BytesIO(file)).to_pylist() == shown
    html = synthetic_api.get(path, params=asked, headers={"Accept": "text/html"}).text
    assert shown[0]["output"] in html
    assert 'aria-sort="descending"' in html
    assert '<option value="created" selected' in html


def test_a_collection_holds_the_nfts_of_its_issuer(synthetic_api) -> None:
    rows = rows_of(synthetic_api, "shimmer", "nft_outputs")
    issuer = next(row["issuer"] for row in rows if row["issuer"])
    expected = {row["nft_id"] for row in rows if row["issuer"] == issuer}
    found = synthetic_api.get(f"/shimmer/explore/collection/{issuer}", params={"format": "json"}).json()
    assert {one["nft"] for one in found["rows"]} == expected
    assert found["nfts"] == len(expected)
    assert {one["nft"] for one in listed(synthetic_api, "shimmer", "nfts", issuer=issuer)} == expected
    for one in found["rows"]:
        newest = max(
            (row for row in rows if row["nft_id"] == one["nft"]), key=lambda row: row["milestone_index"]
        )
        assert one["owner"] == newest["address"]
    nft = synthetic_api.get(
        f"/shimmer/explore/nft/{found['rows'][0]['nft']}", headers={"Accept": "text/html"}
    )
    assert f"/shimmer/explore/collection/{issuer}" in nft.text
    assert synthetic_api.get("/iota/explore/nfts", params={"format": "json"}).status_code == 404


def nft_output(like, *, is_new, tokens):
    """The bytes of an NFT output like one (TIP-18): of a new NFT or of a moved one, with native tokens."""
    raw, at = like["data"], 10 + 70 * like["native_token_count"]
    identity = bytes(32) if is_new else b"\xaa" * 32
    return raw[:9] + bytes([tokens]) + bytes(70 * tokens) + identity + raw[at + 32 :]


@pytest.fixture(scope="module")
def minted(tmp_path_factory):
    """A network's API; ten NFTs of two issuers, each with a name of its own; addresses.

    Those of the second issuer are older than the lake. The third address has issued two NFTs that
    move twice in a milestone.
    """
    settings = synthetic_lake.settings_of(tmp_path_factory.mktemp("minted"))
    every = synthetic_lake.tables("stardust")
    like, issuers = every["nft_outputs"][0], sorted({row["address"] for row in every["nft_outputs"]})
    rows = [
        like
        | {"output_id": f"{number:064x}0000", "nft_id": f"{number:064x}", "nft_name": f"Number {number}"}
        | {"address": issuers[number % 2], "issuer": issuers[number // 5], "collection_name": f"{number % 5}"}
        | {"native_token_count": number % 2, "data": nft_output(like, is_new=number < 5, tokens=number % 2)}
        for number in range(10)
    ]
    tables = {name: every[name] for name in ("milestones", "date_cache")}
    tables["nft_outputs"], tables["consumed_outputs"] = [*rows], []
    spent = every["consumed_outputs"][0] | {"kind": "nft", "milestone_index": like["milestone_index"]}
    mover = {"issuer": issuers[2], "nft_name": None, "collection_name": None}
    for nft, (first, last) in (("a" * 64, ("0", "f")), ("b" * 64, ("f", "0"))):
        moved = [f"{digit * 63}{nft[0]}0000" for digit in (first, last)]
        tables["nft_outputs"] += [
            like | {"output_id": output, "nft_id": nft, "address": owner, **mover}
            for output, owner in zip(moved, issuers, strict=False)
        ]
        same_time = {name: like[name] for name in ("date", "ms_timestamp")}
        tables["consumed_outputs"].append(spent | same_time | {"output_id": moved[0]})
    synthetic_lake.publish(settings, "shimmer", tables, synthetic_lake.days(every))
    with TestClient(create_app(settings)) as client:
        yield client, rows, issuers


def test_of_an_nft_that_moves_twice_in_a_milestone_the_last_owner_is_named(minted) -> None:
    api, _, (_, owner, issuer, *_) = minted
    assert [one["owner"] for one in listed(api, "shimmer", "nfts", issuer=issuer)] == [owner, owner]


def test_an_nft_that_is_older_than_the_lake_has_no_time_of_creation(minted) -> None:
    api, rows, _ = minted
    for row in rows[:5]:
        [one] = listed(api, "shimmer", "nfts", name=row["nft_name"])
        assert one["created"] == one["moved"] == f"{row['ms_timestamp']:%Y-%m-%d %H:%M:%S}"
    assert {one["created"] for one in listed(api, "shimmer", "nfts", issuer=rows[5]["issuer"])} == {None}
    for row, is_told in ((rows[0], True), (rows[5], False)):
        path = f"/shimmer/explore/collection/{row['issuer']}"
        assert bool(api.get(path, params={"format": "json"}).json()["first_created"]) is is_told
        page = api.get(path, headers={"Accept": "text/html"})
        assert (page.status_code, "with which the lake begins" in page.text) == (200, not is_told)


def test_nfts_are_counted_and_found_beyond_what_a_file_has(minted, monkeypatch) -> None:
    api, rows, _ = minted
    for module in (list_pages, nft_pages):
        monkeypatch.setattr(module, "MOST", 3)
    for issuer in sorted({row["issuer"] for row in rows}):
        own = [row for row in rows if row["issuer"] == issuer]
        found = api.get(f"/shimmer/explore/collection/{issuer}", params={"format": "json"}).json()
        assert (found["nfts"], found["owners"], found["names"]) == (5, 2, ["0", "1", "2", "3", "4"])
        assert [one["nft"] for one in found["rows"]] == [row["nft_id"] for row in own[:3]]
        of_issuer = listed(api, "shimmer", "nfts", issuer=issuer, sort="-name")
        assert [one["name"] for one in of_issuer] == [row["nft_name"] for row in own[:1:-1]]
    for row in rows:
        assert [one["nft"] for one in listed(api, "shimmer", "nfts", name=row["nft_name"].upper())] == [
            row["nft_id"]
        ]
        answer = api.get("/shimmer/explore", params={"q": row["nft_name"]}, follow_redirects=False)
        assert (answer.status_code, "/explore/nfts?" in answer.headers.get("location", "")) == (303, True)
    of_collection = listed(api, "shimmer", "nfts", collection="4")
    assert [one["nft"] for one in of_collection] == [rows[4]["nft_id"], rows[9]["nft_id"]]


def test_ends_after_the_last_day_ask_the_lake_once(synthetic_api, monkeypatch) -> None:
    reader, asked = synthetic_api.app.state.reader, []
    read = reader.rows
    monkeypatch.setattr(reader, "rows", lambda query: asked.append(query.sql) or read(query))
    lists = [listed(synthetic_api, "shimmer", "nfts", end=end) for end in ("9999-12-31", "9999-12-30")]
    assert lists[0] == lists[1] != []
    assert sum("nft_outputs" in sql for sql in asked) <= 1


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ({"kind": "nosuch"}, "basic"),
        ({"minimum": "much"}, "minimum"),
        ({"maximum": "1e40"}, "maximum"),
        ({"minimum": "0,5"}, "0.5"),
        ({"maximum": "1,00"}, "maximum"),
        ({"address": "smr1x"}, "address"),
        ({"sort": "nosuch"}, "amount"),
        ({"change": "lost"}, "created"),
    ],
)
def test_what_is_wrong_is_named(synthetic_api, asked, word) -> None:
    assert word in listed(synthetic_api, "shimmer", "changes", 400, **asked)["detail"]
