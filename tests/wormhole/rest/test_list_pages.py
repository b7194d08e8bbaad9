"""Lists with filters and orders: the rows of the world's tables that a filter lets through, and no other."""

from __future__ import annotations

import csv
import io
from collections import Counter
from decimal import Decimal

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.wormhole.rest.identifiers import of_row_key
from support.served_wormhole import FAR_CHAIN, LAST_DAY, publish_days, world_rows, wormhole_settings

WIDE = {"start": "2000-01-01", "end": "2999-01-01"}


@pytest.fixture(scope="module")
def client(published_world):
    with TestClient(create_app(published_world[0]), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def rows(published_world):
    """Every message of the world with its transfer, details and application, by message id."""
    tables = published_world[1]
    found = {of_row_key(row["row_key"]).text: dict(row) for row in tables["message_publication"]}
    for name in ("application_messages", "token_transfer_payload", "token_transfer_details"):
        for row in tables[name]:
            found[of_row_key(row["row_key"]).text] |= row
    return found


def listed(client, name, status=200, **asked):
    answer = client.get(f"/wormhole/{name}", params={**WIDE, "format": "json", **asked})
    assert answer.status_code == status, answer.text
    return answer.json()


def ids(client, **asked):
    return {row["message"] for row in listed(client, "messages", **asked)["rows"]}


def test_without_a_filter_every_message_is_listed(client, rows) -> None:
    assert ids(client) == set(rows)


def test_messages_are_filtered_by_each_of_their_columns(client, rows) -> None:
    transfer = next(one for one in rows.values() if one.get("notional_usd"))
    chain, target, app = transfer["emitter_chain"], transfer["target_chain"], transfer["app_id"]
    token = (transfer["origin_chain"], transfer["origin_address"])
    value = transfer["notional_usd"]
    cases = {
        "chain": (str(chain), lambda one: one["emitter_chain"] == chain),
        "target": (str(target), lambda one: one.get("target_chain") == target),
        "either": (str(chain), lambda one: chain in (one["emitter_chain"], one.get("target_chain"))),
        "token": (
            f"{token[0]}:{token[1]}",
            lambda one: (one.get("origin_chain"), one.get("origin_address")) == token,
        ),
        "application": (app, lambda one: app in (one["app_id"], one["carrier_app_id"])),
        "minimum": (
            str(value),
            lambda one: one.get("notional_usd") is not None and one["notional_usd"] >= value,
        ),
        "maximum": (
            str(value),
            lambda one: one.get("notional_usd") is not None and one["notional_usd"] <= value,
        ),
    }
    for name, (text, keeps) in cases.items():
        expected = {key for key, one in rows.items() if keeps(one)}
        assert 0 < len(expected) < len(rows), name
        assert ids(client, **{name: text}) == expected, name
    together = {name: text for name, (text, _) in cases.items()}
    assert ids(client, **together) == {
        key for key, one in rows.items() if all(keeps(one) for _, keeps in cases.values())
    }


def test_a_token_is_found_by_its_symbol_and_a_chain_by_its_name(client, rows) -> None:
    symbol = next(one["origin_symbol"] for one in rows.values() if one.get("origin_symbol"))
    expected = {key for key, one in rows.items() if one.get("origin_symbol") == symbol}
    assert ids(client, token=symbol.lower()) >= expected
    assert ids(client, chain="ethereum") == ids(client, chain="2")


def test_the_range_applies_to_the_list(client, rows) -> None:
    day = next(one["date"] for one in rows.values() if one.get("notional_usd"))
    found = ids(client, start=day.isoformat(), end=day.isoformat())
    assert found == {key for key, one in rows.items() if one["date"] == day}


@pytest.mark.parametrize("sort", ["usd", "-usd"])
def test_messages_are_sorted_by_value_and_those_without_one_stand_last(client, rows, sort) -> None:
    values = [row["usd"] for row in listed(client, "messages", sort=sort)["rows"]]
    filled = [Decimal(one) for one in values if one is not None]
    assert values[len(filled) :] == [None] * (len(values) - len(filled))
    assert filled == sorted(filled, reverse=sort == "-usd")
    assert len(filled) == sum(one.get("notional_usd") is not None for one in rows.values())


def test_pages_give_every_message_once(client, rows) -> None:
    seen, page = [], 1
    while True:
        params = {**WIDE, "sort": "time", "page": page}
        text = client.get("/wormhole/messages", params=params, headers={"Accept": "text/html"}).text
        seen += [part.split('"')[0] for part in text.split('href="/wormhole/vaa/')[1:]]
        if 'rel="next"' not in text:
            break
        page += 1
    assert page > 1
    assert sorted(seen) == sorted(rows)


def test_files_hold_what_the_link_shows(client) -> None:
    asked = {**WIDE, "chain": "2", "sort": "-usd", "list": "rows"}
    shown = listed(client, "messages", chain="2", sort="-usd")["rows"]
    text = client.get("/wormhole/messages", params={**asked, "format": "csv"}).text
    assert [row["message"] for row in csv.DictReader(io.StringIO(text))] == [row["message"] for row in shown]
    answer = client.get("/wormhole/messages", params={**asked, "format": "parquet"})
    assert answer.headers["content-disposition"] == 'attachment; filename="rows.parquet"'
    assert pq.read_table(io.BytesIO(answer.content)).to_pylist() == shown


def test_corridors_and_tokens_follow_their_filters_and_add_up(client) -> None:
    flows = client.get("/wormhole", params={**WIDE, "format": "json"}).json()
    for name in ("corridors", "tokens"):
        whole = listed(client, name)["rows"]
        assert sum(row["transfers"] for row in whole) == flows["of"]
        values = [row["usd"] for row in whole]
        assert Counter(values) == Counter(row["usd"] for row in flows[name])
        filled = [Decimal(one) for one in values if one is not None]
        assert filled == sorted(filled, reverse=True)
        assert values[len(filled) :] == [None] * (len(values) - len(filled))
        counts = [row["transfers"] for row in listed(client, name, sort="-transfers")["rows"]]
        assert counts == sorted(counts, reverse=True)
    pair = flows["corridors"][0]
    [only] = listed(client, "corridors", chain=pair["source"], target=pair["target"])["rows"]
    assert only == pair
    tokens = listed(client, "tokens", chain=pair["source"], target=pair["target"])["rows"]
    assert sum(row["transfers"] for row in tokens) == pair["transfers"]
    of_token = listed(client, "corridors", token=f"{tokens[0]['chain_id']}:{tokens[0]['address']}")["rows"]
    assert sum(row["transfers"] for row in of_token) >= tokens[0]["transfers"]


@pytest.fixture(scope="module")
def odd_client(tmp_path_factory):
    """A day whose symbols and names of chains look like numbers, some of them, as one address does."""
    settings, tables = wormhole_settings(tmp_path_factory.mktemp("odd")), world_rows()
    transfers = [row for row in tables["token_transfer_payload"] if row["date"] == LAST_DAY]
    transfers[0]["origin_chain"] = FAR_CHAIN
    tokens = {row["row_key"]: (row["origin_chain"], row["origin_address"]) for row in transfers}
    symbols = dict(zip(sorted(set(tokens.values())), ("404", "NaN", "Infinity", "1e5", "x"), strict=False))
    for row in tables["token_transfer_details"]:
        row["origin_symbol"] = symbols.get(tokens.get(row["row_key"]), row["origin_symbol"])
    publish_days(settings, tables, [LAST_DAY])
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize("name", ["corridors", "tokens"])
def test_every_column_sorts_names_as_text_and_figures_as_numbers(odd_client, name) -> None:
    for head in listed(odd_client, name)["heads"]:
        column, is_number = head["name"], head["kind"] in {"figure", "usd"}
        for sign in ("", "-"):
            values = [row[column] for row in listed(odd_client, name, sort=sign + column)["rows"]]
            filled = [value for value in values if value is not None]
            keys = [Decimal(value) if is_number else value.casefold() for value in filled]
            assert keys == sorted(keys, reverse=sign == "-"), column
            assert values[len(filled) :] == [None] * (len(values) - len(filled))
            assert is_number or column == "target" or {value.isdecimal() for value in filled} == {True, False}


@pytest.mark.parametrize(
    ("name", "asked", "word"),
    [
        ("messages", {"sort": "nosuch"}, "usd"),
        ("messages", {"minimum": "much"}, "minimum"),
        ("messages", {"minimum": "NaN"}, "minimum"),
        ("messages", {"minimum": "$0,5"}, "0.5"),
        ("messages", {"chain": "nosuch"}, "nosuch"),
        ("tokens", {"token": "2:xyz"}, "xyz"),
        ("corridors", {"sort": "time"}, "transfers"),
        ("corridors", {"start": "2024-03-12", "end": "2024-03-10"}, "before"),
    ],
)
def test_what_is_wrong_is_named(client, name, asked, word) -> None:
    assert word in listed(client, name, 400, **asked)["detail"]


def test_an_empty_list_leads_to_all_days(client) -> None:
    empty = listed(client, "messages", start="2001-01-01", end="2001-01-02", chain="2")
    assert empty["rows"] == []
    assert "start=1970-01-01" in empty["everywhere"]
    assert "chain=2" in empty["everywhere"]
    assert client.get(f"/wormhole/messages{empty['everywhere']}&format=json").json()["rows"]


def test_the_form_keeps_what_was_asked_and_hostile_text_is_escaped(client) -> None:
    params = {**WIDE, "token": '"><script>', "chain": str(FAR_CHAIN)}
    text = client.get("/wormhole/messages", params=params, headers={"Accept": "text/html"}).text
    assert "<script>" not in text
    assert "Nothing matches" in text
    assert f'<option value="{FAR_CHAIN}" selected' in text
