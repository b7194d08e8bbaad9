"""``/api/wormhole/v1``: a message with its rows, lists and daily figures, equal to the lake's rows."""

from __future__ import annotations

import pytest

from support.served_wormhole import FAR_CHAIN, FAR_EMITTER, LAST_DAY, SOLANA_TRANSACTION

BASE = "/api/wormhole/v1"


def pages(world, path, size):
    items, cursor = [], None
    while True:
        joined = "&" if "?" in path else "?"
        page = world.get(f"{path}{joined}pageSize={size}" + (f"&cursor={cursor}" if cursor else ""))
        assert len(page["items"]) <= size
        items += page["items"]
        if "cursor" not in page:
            return items
        assert page["cursor"] != cursor
        cursor = page["cursor"]


def test_a_message_has_an_object_per_table(world) -> None:
    transfer = world.rows["token_transfer_payload"][0]
    chain, emitter, sequence = transfer["row_key"].split(":")
    event = world.get(f"{BASE}/events/{chain}/0x{emitter.upper()}/{int(sequence)}")
    assert event["id"] == f"{chain}/{emitter}/{int(sequence)}"
    assert set(event) >= {"message_publication", "quorum_state", "token_transfer_payload", "chain_details"}
    assert event["token_transfer_payload"]["amount"] == transfer["amount"]
    published = next(r for r in world.rows["message_publication"] if r["row_key"] == transfer["row_key"])
    assert event["message_publication"]["payload"] == published["payload"].hex()
    assert event["message_publication"]["sequence"] == str(int(sequence))


def test_an_unknown_message_is_not_found_and_a_bad_id_is_refused(world) -> None:
    world.get(f"{BASE}/events/2/{'0' * 64}/1", 404)
    world.get(f"{BASE}/events/2/nonsense/1", 400)
    world.get(f"{BASE}/events?txId=x'y", 400)


def test_a_transaction_gives_all_its_messages(world) -> None:
    found = world.get(f"{BASE}/events?txId={SOLANA_TRANSACTION}")
    assert [item["id"] for item in found["items"]] == [
        f"{FAR_CHAIN}/{FAR_EMITTER}/8",
        f"{FAR_CHAIN}/{FAR_EMITTER}/7",
    ]
    own = next(r for r in world.rows["message_publication"] if (r["initiating_tx_id"] or "").startswith("0x"))
    for text in (own["initiating_tx_id"], own["initiating_tx_id"][2:].upper()):
        keys = {i["message_publication"]["row_key"] for i in world.get(f"{BASE}/events?txId={text}")["items"]}
        assert own["row_key"] in keys


@pytest.mark.parametrize("size", [7, 1000])
def test_recent_gives_every_message_once_newest_first(world, size) -> None:
    items = pages(world, f"{BASE}/recent", size)
    keys = [item["message_publication"]["row_key"] for item in items]
    assert sorted(keys) == sorted(row["row_key"] for row in world.rows["message_publication"])
    times = [item["message_publication"]["timestamp"] for item in items]
    assert times == sorted(times, reverse=True)


def test_recent_oldest_is_the_mirror(world) -> None:
    newest = [item["id"] for item in pages(world, f"{BASE}/recent?chain=2", 1000)]
    oldest = [item["id"] for item in pages(world, f"{BASE}/recent?chain=2&sort=oldest", 11)]
    assert newest == oldest[::-1]
    assert newest


def test_recent_by_target_and_token(world) -> None:
    transfer = world.rows["token_transfer_payload"][0]
    token = f"{transfer['origin_chain']}:{transfer['origin_address']}"
    found = pages(world, f"{BASE}/recent?token={token}&targetChain={transfer['target_chain']}", 1000)
    expected = [
        row
        for row in world.rows["token_transfer_payload"]
        if (row["origin_chain"], row["origin_address"], row["target_chain"])
        == (transfer["origin_chain"], transfer["origin_address"], transfer["target_chain"])
    ]
    assert {i["token_transfer_payload"]["row_key"] for i in found} == {row["row_key"] for row in expected}


@pytest.mark.parametrize(
    ("route", "table"),
    [
        ("notional-transferred", "notional_transferred_daily"),
        ("addresses-transferred-to", "addresses_daily"),
        ("totals", "messages_daily"),
        ("tvl", "tvl_daily"),
    ],
)
@pytest.mark.parametrize("size", [13, 1000])
def test_a_daily_figure_lists_every_row_once(world, route, table, size) -> None:
    items = pages(world, f"{BASE}/{route}", size)
    keys = [tuple(v for k, v in i.items() if k not in ("amount", "notional_usd", "symbol")) for i in items]
    assert len(keys) == len(set(keys)) == len(world.rows[table])
    assert [i["date"] for i in items] == sorted((i["date"] for i in items), reverse=True)


def test_daily_figures_filter_by_date_chain_and_token(world) -> None:
    row = next(r for r in world.rows["notional_transferred_daily"] if r["notional_usd"] is not None)
    found = world.get(
        f"{BASE}/notional-transferred?start={row['date']}&end={row['date']}&chain={row['emitter_chain']}"
        f"&targetChain={row['target_chain']}&token={row['origin_chain']}:{row['origin_address']}"
    )["items"]
    assert [(i["transfers"], i["notional_usd"]) for i in found] == [
        (row["transfers"], f"{row['notional_usd']:.8f}")
    ]
    assert world.get(f"{BASE}/totals?chain={FAR_CHAIN}")["items"][0]["verified"] == 2
    assert world.get(f"{BASE}/tvl?start={LAST_DAY}&end={LAST_DAY}&pageSize=1000")["items"]


def test_bad_parameters_are_named(world) -> None:
    for query in ("chain=65536", "token=2", "start=yesterday", "nosuch=1", "pageSize=0", "cursor=AAAA"):
        problem = world.get(f"{BASE}/notional-transferred?{query}", 400)
        assert query.partition("=")[0] in problem["detail"]


def test_an_empty_lake_has_empty_lists(no_days) -> None:
    for route in ("recent", "totals", "tvl", "notional-transferred", "addresses-transferred-to"):
        assert no_days.get(f"{BASE}/{route}").json() == {"items": []}
