"""Pages: the same content as HTML and JSON, nothing from elsewhere, nothing from a chain as markup."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from html.parser import HTMLParser

import pytest

from permalake.wormhole.reference import load_reference
from permalake.wormhole.rest.flows import Corridor, largest_flows
from permalake.wormhole.rest.rows import exact_sum
from support.served_wormhole import FAR_CHAIN, FAR_EMITTER, HOSTILE_NAME, SOLANA_TRANSACTION

HOSTILE = f"/wormhole/vaa/{FAR_CHAIN}/{FAR_EMITTER}/7"
PAGES = ("/", "/wormhole", HOSTILE, f"/wormhole?q={SOLANA_TRANSACTION}")


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.names, self.text = [], [], [], ""
        self.left = set()  # what a click opens in a new tab, without a word of where it comes from
        self.feed(text)

    def handle_starttag(self, tag, attributes) -> None:
        self.tags.append(tag)
        given = dict(attributes)
        if tag == "a" and (given.get("target"), given.get("rel")) == ("_blank", "noopener noreferrer"):
            self.left.add(given["href"])
        for name, value in attributes:
            self.names.append(name)
            if name in ("href", "src", "action"):
                self.links.append(value)

    def handle_data(self, data) -> None:
        self.text += data


def read(world, path):
    answer = world.client.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return answer, Page(answer.text)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_loads_nothing_from_elsewhere(world, path) -> None:
    answer, page = read(world, path)
    assert len(answer.content) < 150_000
    assert "script" not in page.tags
    assert "style" not in page.tags
    assert not [name for name in page.names if name == "style" or name.startswith("on")]
    assert not [link for link in page.links if "//" in link and link not in page.left]
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.tags.count("h1") == 1
    assert "main" in page.tags


def test_hostile_names_are_text(world) -> None:
    answer, page = read(world, HOSTILE)
    assert "script" not in page.tags
    assert 'alert("1")' in page.text
    assert "\u202e" not in answer.text
    assert "\x00" not in answer.text
    assert "[U+202E]" in page.text
    assert "65,5" in page.text
    whole = world.get(f"{HOSTILE}?format=json")
    facts = dict(whole["sections"][0]["facts"])
    assert facts["Token"] == HOSTILE_NAME


def test_flows_are_the_sums_of_the_daily_figures(world) -> None:
    found = world.get("/wormhole?format=json")
    values = [r["notional_usd"] for r in world.rows["token_transfer_details"]]
    total = exact_sum(value or Decimal(0) for value in values)
    assert Decimal(found["total_usd"]) == total
    assert found["valued"] == sum(value is not None for value in values) < found["of"]
    assert f"{found['valued']} of {found['of']} transfers valued: $" in read(world, "/wormhole")[1].text
    assert exact_sum(Decimal(row["sum"] or 0) for row in found["matrix"]["rows"]) == total
    assert found["of"] == len(values)
    _, page = read(world, "/wormhole")
    assert "svg" in page.tags
    for one in found["corridors"][:5]:
        assert one["source"] in page.text


def test_the_overview_leads_to_the_flows_in_one_click(world) -> None:
    _, page = read(world, "/")
    assert "/wormhole" in page.links
    card = next(one for one in world.get("/?format=json")["cards"] if one["network"] == "wormhole")
    figures = {one["label"]: one["value"] for one in card["figures"]}
    assert int(figures["Messages"]) == sum(r["verified"] for r in world.rows["messages_daily"])
    assert card["published"] == 4


def test_search_goes_to_a_message_or_lists_what_matches(world) -> None:
    row = next(r for r in world.rows["token_transfer_payload"] if r["origin_chain"] == 2)
    chain, emitter, sequence = row["row_key"].split(":")
    name = f"{chain}/{emitter}/{int(sequence)}"
    answer = world.client.get(f"/wormhole?q={row['row_key']}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/wormhole/vaa/{name}")
    found = world.get(f"/wormhole?q={SOLANA_TRANSACTION}&format=json")["found"]
    assert [one["id"].rpartition("/")[2] for one in found] == ["8", "7"]
    token = world.get(f"/wormhole?q=2:{row['origin_address']}&format=json")["found"]
    assert name in [one["id"] for one in token] or len(token) == 25
    _, page = read(world, f"/wormhole?q=2:{row['origin_address']}")
    assert f"/wormhole/token/2/{row['origin_address']}" in page.links
    assert "?start=2024-03-09&end=2024-03-15" in read(world, "/wormhole?end=2024-03-15")[1].links
    assert world.get("/wormhole?q=nothing&format=json")["found"] == []
    assert world.client.get("/wormhole?q=%00").status_code == 400


def test_search_finds_a_payout_and_the_symbol_of_a_token(world) -> None:
    paid = next(row for row in world.rows["redemptions"] if row.get("target_tx_id"))
    for spelling in (paid["target_tx_id"], paid["target_tx_id"].upper().replace("0X", "0x")):
        found = world.get(f"/wormhole?q={spelling}&format=json")["found"]
        assert paid["row_key"].split(":")[2].lstrip("0") in {one["id"].rpartition("/")[2] for one in found}
    tokens = {}
    for row in world.rows["notional_transferred_daily"]:
        tokens.setdefault(row["symbol"], set()).add((row["origin_chain"], row["origin_address"]))
    for symbol in (one for one in tokens if one and not {*one} & {*":/\0"}):
        answer = world.client.get("/wormhole", params={"q": symbol.lower()}, follow_redirects=False)
        chain, address = min(tokens[symbol])
        alone = f"/wormhole/token/{chain}/{address}?start=1970-01-01"
        several = f"/wormhole/tokens?token={symbol.lower()}&start=1970-01-01"
        expected = alone if len(tokens[symbol]) == 1 else several
        assert (answer.status_code, answer.headers["location"]) == (303, expected)
    listed = world.get(f"/wormhole/messages?token={symbol.lower()}&format=json")["rows"]
    assert {row["symbol"] for row in listed} == {symbol}


def test_a_message_page_names_its_guardians(world) -> None:
    row = world.rows["token_transfer_payload"][0]
    name = "/".join((*row["row_key"].split(":")[:2], str(int(row["row_key"].split(":")[2]))))
    found = world.get(f"/wormhole/vaa/{name}?format=json")
    assert len(found["guardians"]) >= found["guardians_of_set"] * 2 // 3 + 1
    assert {(one["observed_at"], one["is_signer"]) for one in found["guardians"]} == {(None, True)}
    world.get("/wormhole/vaa/2/00/1", 400)
    world.get(f"/wormhole/vaa/2/{'0' * 64}/1", 404)


def test_a_message_page_tells_who_observed_it_when_and_who_signed_the_vaa(world) -> None:
    rows = sorted(world.rows["observations"], key=lambda row: row["observed_at"])
    chain, emitter, sequence = rows[0]["row_key"].split(":")
    path = f"/wormhole/vaa/{chain}/{emitter}/{int(sequence)}"
    *seen, unseen = world.get(f"{path}?format=json")["guardians"]
    assert [one["address"] for one in seen] == [f"0x{row['guardian_address']}" for row in rows]
    assert [one["observed_at"][:24] for one in seen] == [
        row["observed_at"].strftime("%Y-%m-%dT%H:%M:%S.25Z") for row in rows
    ]
    assert {one["is_signer"] for one in seen} == {True, False}
    assert (unseen["observed_at"], unseen["is_signer"]) == (None, True)
    text = world.client.get(path, headers={"accept": "text/html"}).text
    assert "2024-03-13T00:00:58.25Z" in text
    assert "not recorded" in text


def test_an_empty_lake_has_an_overview(no_days) -> None:
    answer = no_days.get("/")
    assert answer.status_code == 200
    assert "Nothing is built yet" in answer.text
    assert no_days.get("/static/site.css").headers["content-type"].startswith("text/css")


def test_the_operations_page_counts_what_has_no_answer(world) -> None:
    lists = world.get("/operations?network=wormhole&format=json")["open"]
    found = {one["title"]: one["rows"] for one in lists}
    unpriced = [row for row in world.rows["token_transfer_details"] if row["notional_usd"] is None]
    assert sum(row["requests"] for row in found["Transfers without a value"]) == len(unpriced) > 0
    unknown = [row for row in world.rows["chain_details"] if row["sender_address"] is None]
    told = [
        row
        for row in found.get("Transfers without a sender or receiver", [])
        if row["reason"] == "sender not known"
    ]
    assert sum(row["requests"] for row in told) == len(unknown)
    flying = {row["what"] for row in found["Transfers in flight"]}
    assert flying
    assert all(what.startswith("to ") and what.endswith(")") for what in flying), (
        "chains by name, with their ids"
    )


def test_the_quality_page_tells_of_the_quarantine(world) -> None:
    found = world.get("/quality?network=wormhole&format=json")
    assert sum(one["inputs"] for one in found["reasons"]) == len(world.rows["quarantine"])
    assert len(found["days"]) == 4


def test_a_message_tells_its_redemption(world) -> None:
    row = next(r for r in world.rows["redemptions"] if r["status"] == "completed")
    chain, emitter, sequence = row["row_key"].split(":")
    whole = world.get(f"/wormhole/vaa/{chain}/{emitter}/{int(sequence)}?format=json")
    facts = {one["title"]: dict(one["facts"]) for one in whole["sections"]}["Redemption"]
    assert (facts["Status"], facts["Paid out by"]) == ("completed", row["target_tx_id"])
    assert facts["Time"] == "2024-03-12T12:30:00Z"
    last = whole["timeline"][-1]
    assert (last["step"], last["time"], last["is_done"]) == ("Redeemed", facts["Time"], True)


def test_a_transfer_in_flight_says_so(world) -> None:
    row = next(r for r in world.rows["redemptions"] if r["status"] == "in_flight")
    chain, emitter, sequence = row["row_key"].split(":")
    whole = world.get(f"/wormhole/vaa/{chain}/{emitter}/{int(sequence)}?format=json")
    assert [one["step"] for one in whole["timeline"]] == ["Emitted", "Observed", "Quorum", "In flight"]


def help_of(world, row):
    chain, emitter, sequence = row["row_key"].split(":")
    return world.get(f"/wormhole/vaa/{chain}/{emitter}/{int(sequence)}?format=json")["help"]


def waiting(world):
    """Rows of redemptions by message, of those that were not redeemed."""
    done = {row["row_key"] for row in world.rows["redemptions"] if row["status"] == "completed"}
    return {row["row_key"]: row for row in world.rows["redemptions"] if row["row_key"] not in done}


def test_a_transfer_that_waits_says_what_to_do(world) -> None:
    rows = waiting(world)
    published = {row["row_key"]: row for row in world.rows["message_publication"]}
    payloads = {row["row_key"]: row for row in world.rows["token_transfer_payload"]}
    own = [row for key, row in rows.items() if payloads[key]["payload_id"] == 1]
    found = help_of(world, own[0])
    assert found["status"] == "in_flight"
    assert found["known"].startswith("It was not redeemed on ")
    assert own[0]["asked_at"].strftime("%Y-%m-%dT%H:%M:%SZ") in found["known"]
    sent = published[own[0]["row_key"]]["timestamp"]
    assert found["since"] == (sent.strftime("%Y-%m-%dT%H:%M:%SZ") if sent.timestamp() else None)
    assert found["steps"][0].startswith("Anybody may redeem it on ")
    carried = next(row for key, row in rows.items() if payloads[key]["payload_id"] == 3)
    assert help_of(world, carried)["steps"][0].startswith("Only its receiver on ")


def test_a_transfer_links_the_transaction_that_sent_it_in_its_chains_explorer(world) -> None:
    keys = waiting(world)
    row = next(
        row
        for row in world.rows["message_publication"]
        if row["row_key"] in keys and row["emitter_chain"] == 2 and row["initiating_tx_id"]
    )
    [link] = [
        one for one in help_of(world, row)["links"] if one["text"].startswith("the transaction that sent")
    ]
    assert link["href"] == f"https://etherscan.io/tx/{row['initiating_tx_id']}"
    chain, emitter, sequence = row["row_key"].split(":")
    _, page = read(world, f"/wormhole/vaa/{chain}/{emitter}/{int(sequence)}")
    assert link["href"] in page.left
    assert "Not redeemed yet" in page.text


def test_a_redemption_that_nobody_asked_for_is_unknown(world) -> None:
    told = {row["row_key"]: row["status"] for row in world.rows["redemptions"]}
    row = next(row for row in world.rows["token_transfer_payload"] if row["row_key"] not in told)
    found = help_of(world, row)
    assert found["status"] is None
    assert found["known"].startswith("Whether it was redeemed is unknown: nobody has asked ")
    done = next(row for row in world.rows["redemptions"] if row["status"] == "completed")
    assert help_of(world, done) is None
    other = {row["row_key"] for row in world.rows["token_transfer_payload"]}
    other |= {row["row_key"] for row in world.rows["nft_transfer_payload"]}
    plain = next(row for row in world.rows["message_publication"] if row["row_key"] not in other)
    assert help_of(world, plain) is None


def test_a_message_leads_to_what_it_names(world) -> None:
    row = next(r for r in world.rows["token_transfer_payload"] if r["origin_chain"] == 2)
    chain, emitter, sequence = row["row_key"].split(":")
    path = f"/wormhole/vaa/{chain}/{emitter}/{int(sequence)}"
    links = world.get(f"{path}?format=json")["links"]
    assert links["Token's address"][0] == ["", f"/wormhole/token/2/{row['origin_address']}"]
    assert links["To chain"][0] == ["", f"/wormhole/chain/{row['target_chain']}"]
    _, page = read(world, path)
    ours = {href for some in links.values() for label, href in some if not label}
    assert ours <= set(page.links)
    for href in ours:
        read(world, href)


def test_a_token_and_a_chain_have_pages_of_their_own(world) -> None:
    row = next(r for r in world.rows["notional_transferred_daily"] if r["notional_usd"])
    same = ("origin_chain", "origin_address")
    every = [r for r in world.rows["notional_transferred_daily"] if all(r[n] == row[n] for n in same)]
    path = f"/wormhole/token/{row['origin_chain']}/{row['origin_address']}"
    found = world.get(f"{path}?start=2000-01-01&end=2999-01-01&format=json")
    assert found["of"] == sum(r["transfers"] for r in every)
    assert sum(one["transfers"] for one in found["corridors"]) == found["of"]
    assert {"Transfers", "USD moved"} <= {one["title"] for one in found["charts"]}
    chain = row["emitter_chain"]
    found = world.get(f"/wormhole/chain/{chain}?start=2000-01-01&end=2999-01-01&format=json")
    assert found["corridors"]
    assert all(chain in (one["source_id"], one["target_id"]) for one in found["corridors"])
    world.get("/wormhole/chain/59999", 404)
    world.get(f"/wormhole/token/2/{'07' * 32}", 404)


def test_chains_may_be_given_by_name(world) -> None:
    by_name = world.get("/wormhole/chain/Ethereum?format=json")
    assert by_name["facts"] == world.get("/wormhole/chain/2?format=json")["facts"]
    path = "/api/wormhole/v1/notional-transferred?pageSize=5"
    named = world.get(f"{path}&chain=ethereum&targetChain=solana")
    assert named == world.get(f"{path}&chain=2&targetChain=1")
    world.get(f"{path}&chain=nowhere", 400)


def test_an_application_has_a_page(world) -> None:
    app = next(r["app_id"] for r in world.rows["applications_daily"])
    found = world.get(f"/wormhole/application/{app}?start=2000-01-01&end=2999-01-01&format=json")
    assert {one["title"] for one in found["charts"]} >= {"Messages"}
    world.get("/wormhole/application/nothing", 404)


def test_a_list_is_whole_as_csv(world) -> None:
    found = world.get("/wormhole?format=json")
    text = world.client.get("/wormhole?format=csv&list=corridors").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["transfers"] for row in rows] == [str(one["transfers"]) for one in found["corridors"]]
    assert (rows[0]["source"], rows[0]["usd"]) == (
        found["corridors"][0]["source"],
        found["corridors"][0]["usd"],
    )
    _, page = read(world, "/wormhole?start=2000-01-01&end=2999-01-01")
    [link] = [one for one in page.links if one.endswith("format=csv&list=recent")]
    text = world.client.get(f"/wormhole{link}").text
    whole = world.get("/wormhole?start=2000-01-01&end=2999-01-01&format=json")["recent"]
    assert [row["id"] for row in csv.DictReader(io.StringIO(text))] == [one["id"] for one in whole]
    answer = world.client.get("/wormhole?format=csv&list=nothing")
    assert answer.status_code == 400
    assert "corridors" in answer.json()["detail"]


def test_the_picture_of_flows_adds_up_to_the_table() -> None:
    pairs = [Corridor(2, chain, 1, 1, Decimal(100 - chain)) for chain in range(3, 40)]
    drawn = largest_flows(pairs, load_reference(None), 30)
    assert len(drawn) == 31
    assert drawn[-1].source == drawn[-1].target == "others"
    assert sum(one.value for one in drawn) == sum(one.usd for one in pairs)


@pytest.mark.parametrize("path", ["/wormhole", "/wormhole/chain/2"])
def test_a_range_that_ends_before_it_begins_is_an_error_beside_its_form(world, path) -> None:
    answer = world.client.get(f"{path}?start=2025-01-02&end=2025-01-01", headers={"Accept": "text/html"})
    assert answer.status_code == 400
    assert "end: 2025-01-01 lies before the start, 2025-01-02; exchange the two" in answer.text
    assert 'name="start"' in answer.text
    assert 'value="2025-01-02"' in answer.text
    answer = world.client.get(f"{path}?start=x&end=2025-01-01", headers={"Accept": "text/html"})
    assert (answer.status_code, 'name="start"' in answer.text) == (400, False)
