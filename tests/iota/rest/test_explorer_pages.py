"""The explorer's pages of both protocols: search reaches everything, HTML and JSON agree with the API."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections import Counter
from datetime import UTC, datetime, time
from itertools import pairwise

import pytest

from permalake.config import Settings
from permalake.iota.rest import page_facts
from permalake.iota.rest.chain_states import moments
from permalake.iota.rest.known_networks import coin
from permalake.web.numbers import formatted
from support import held_amounts
from support.iota_days import expected
from support.synthetic_lake import NETWORKS as PROTOCOLS
from support.synthetic_lake import tables

OWNED = {"stardust": "basic_outputs", "chrysalis": "legacy_outputs"}


@pytest.fixture(params=("shimmer", "iota"))
def network(request):
    """A network of each protocol."""
    return request.param


def get(api, path, status=200):
    answer = api.get(path, headers={"Accept": "application/json"})
    assert answer.status_code == status, (path, answer.text)
    return answer.json()


def lands(api, network, text):
    answer = api.get(f"/{network}/explore", params={"q": text}, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def is_known(api, network, output_id):
    """Return whether the lake holds the output; the first days spend older ones."""
    return api.get(f"/{network}/explore/output/{output_id}?format=json").status_code == 200


@pytest.fixture
def newest(synthetic_api, network):
    """The newest milestone with a created output, as its page has it."""
    rows = get(synthetic_api, f"/api/analytics/v1/{network}/ms_analytics?pageSize=1000")["items"]
    for row in rows:
        found = get(synthetic_api, f"/{network}/explore/milestone/{row['milestone_index']}")["found"]
        known = [one for one in found["consumed"] if is_known(synthetic_api, network, one)]
        if found["created"] and known:
            return {**found, "consumed": known}
    raise AssertionError("no milestone changes the ledger")


def test_a_milestone_page_leads_to_its_messages_and_outputs(synthetic_api, network, newest) -> None:
    assert newest["message_count"] == len(newest["messages"])
    assert lands(synthetic_api, network, str(newest["index"])).endswith(f"/milestone/{newest['index']}")
    message = newest["messages"][0]
    found = get(synthetic_api, f"/{network}/explore/message/{message['id']}")["found"]
    assert (found["milestone_index"], found["state"]) == (newest["index"], message["state"])
    assert found["white_flag_index"] == 0
    for text in (message["id"], f"0x{message['id'].upper()}"):
        assert lands(synthetic_api, network, text).endswith(f"/message/{message['id']}")
    parent = get(synthetic_api, f"/{network}/explore/message/{newest['messages'][-1]['id']}")["found"][
        "parents"
    ]
    assert all(len(one) == 64 for one in parent)


def test_an_output_page_says_where_it_came_from_and_went(synthetic_api, network, newest) -> None:
    spent = get(synthetic_api, f"/{network}/explore/output/{newest['consumed'][0]}")["found"]
    assert spent["spent_in"] == newest["index"]
    assert lands(synthetic_api, network, spent["id"]).endswith(f"/output/{spent['id']}")
    transaction = lands(synthetic_api, network, spent["spent_by"])
    assert transaction.endswith(f"/transaction/{spent['spent_by']}")
    page = get(synthetic_api, transaction)["found"]["message"]
    assert (page["state"], page["milestone_index"]) == ("included", newest["index"])
    created = get(synthetic_api, f"/{network}/explore/output/{newest['created'][0]}")["found"]
    assert created["created_in"] == newest["index"]


def test_an_address_page_lists_outputs_and_what_is_unspent(synthetic_api, network) -> None:
    rows = expected(PROTOCOLS[network], OWNED[PROTOCOLS[network]])
    address = rows[-1]["address"]
    found = get(synthetic_api, f"/{network}/explore/address/{address}")["found"]
    own = {row["output_id"] for row in rows if row["address"] == address}
    assert own <= {one["id"] for one in found["outputs"]}
    unspent = sum(int(one["amount"]) for one in found["outputs"] if one["spent_in"] is None)
    assert int(found["unspent"]) == unspent
    assert lands(synthetic_api, network, address.upper()).endswith(address)


def test_a_message_page_says_what_it_changed_in_the_ledger(synthetic_api, network, newest) -> None:
    spent = get(synthetic_api, f"/{network}/explore/output/{newest['consumed'][0]}")["found"]
    [included] = [
        one["message_id"]
        for one in expected(PROTOCOLS[network], "transactions")
        if (one["transaction_id"], one["variant"], one["inclusion_state"]) == (spent["spent_by"], "input", 1)
        and one["data"][2:] == spent["id"]
    ]
    effect = get(synthetic_api, f"/{network}/explore/message/{included}")["found"]["effect"]
    assert spent["id"] in [one["id"] for one in effect["consumed"]["outputs"]]
    created = [one["id"] for one in effect["created"]["outputs"]]
    assert created
    assert created == [f"{spent['spent_by']}{at.to_bytes(2, 'little').hex()}" for at in range(len(created))]
    assert set(created) <= set(newest["created"])
    assert effect["consumed"]["amount"] == effect["created"]["amount"], "transactions conserve"
    page = synthetic_api.get(f"/{network}/explore/message/{included}", headers={"Accept": "text/html"})
    assert f"/explore/output/{created[0]}" in page.text


def test_page_api_and_sql_tell_the_same_of_every_address(synthetic_api, synthetic_settings, network) -> None:
    """Also of those that only spent what they had before the first milestone."""
    every = held_amounts.by_sql(synthetic_settings, network)
    from_before = {address: told for address, told in every.items() if told[1]}
    assert from_before
    of_sql = dict(list(from_before.items())[:20]) | dict(sorted(every.items())[:20])

    def ask(path):
        return get(synthetic_api, path)

    for way in (held_amounts.by_api, held_amounts.by_page):
        assert {address: way(ask, network, address) for address in of_sql} == of_sql


TICKERS = {"shimmer": "SMR", "iota": "MIOTA"}


def test_pages_tell_times_in_utc_and_amounts_in_coins(synthetic_api, network, newest) -> None:
    milestones = expected(PROTOCOLS[network], "milestones")
    seconds = next(row["timestamp"] for row in milestones if row["milestone_index"] == newest["index"])
    when = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    output = get(synthetic_api, f"/{network}/explore/output/{newest['created'][0]}")["found"]
    coins = f"{int(output['amount']) / 10**6:,.6f} {TICKERS[network]}"
    for path in (f"output/{output['id']}", f"address/{output['conditions'][0].split()[0]}"):
        text = synthetic_api.get(f"/{network}/explore/{path}", headers={"Accept": "text/html"}).text
        assert when in text
        assert f'<span title="{int(output["amount"]):,} base tokens">{coins}</span>' in text
    for message in newest["messages"][:3]:
        found = get(synthetic_api, f"/{network}/explore/message/{message['id']}")["found"]
        assert (found["time"], found["payload"]) == (f"{when} UTC", message["payload"])


@pytest.mark.parametrize(("state", "told"), [(0, "conflict reason "), (2, "it carries no transaction")])
def test_a_message_without_effect_says_why(synthetic_api, network, state, told) -> None:
    row = next(one for one in expected(PROTOCOLS[network], "messages") if one["inclusion_state"] == state)
    effect = get(synthetic_api, f"/{network}/explore/message/{row['message_id']}")["found"]["effect"]
    assert effect["none"].startswith(told)
    assert (effect["consumed"]["count"], effect["created"]["count"]) == (0, 0)


def test_an_address_page_has_the_history(synthetic_api, network) -> None:
    address = expected(PROTOCOLS[network], OWNED[PROTOCOLS[network]])[-1]["address"]
    found = get(synthetic_api, f"/{network}/explore/address/{address}")["found"]
    moves = found["history"]["moves"]
    assert found["history"]["count"] == len(moves)
    assert [one["milestone_index"] for one in moves] == sorted(
        (one["milestone_index"] for one in moves), reverse=True
    )
    received = {one["id"][:64] for one in found["outputs"]}
    assert received <= {one["transaction_id"] for one in moves}
    for one in moves:
        assert one["received"] + one["spent"] > 0
        landed = lands(synthetic_api, network, one["transaction_id"]) if one["message_id"] else ""
        assert landed.endswith(one["transaction_id"] if one["message_id"] else "")


@pytest.mark.parametrize("state", [0, 1])
def test_a_transaction_has_a_page_with_every_message_that_carries_it(synthetic_api, network, state) -> None:
    rows = expected(PROTOCOLS[network], "transactions")
    transaction = next(row["transaction_id"] for row in rows if row["inclusion_state"] == state)
    carriers = {row["message_id"] for row in rows if row["transaction_id"] == transaction}
    found = get(synthetic_api, f"/{network}/explore/transaction/{transaction}")["found"]
    assert {one["id"] for one in found["messages"]} == carriers
    states = {one["state"] for one in found["messages"]}
    included = "included" in states
    assert found["message"]["state"] == ("included" if included else "conflicting")
    assert all(one["conflict"] for one in found["messages"] if one["state"] == "conflicting")
    page = synthetic_api.get(f"/{network}/explore/transaction/{transaction}", headers={"Accept": "text/html"})
    assert "<script" not in page.text
    get(synthetic_api, f"/{network}/explore/transaction/{'0' * 64}", 404)


def test_a_day_has_a_page(synthetic_api, network) -> None:
    days = expected(PROTOCOLS[network], "date_cache")
    day = days[0]["date"]
    assert lands(synthetic_api, network, day).endswith(f"/day/{day}")
    found = get(synthetic_api, f"/{network}/explore/day/{day}")["found"]
    assert (found["first"], found["last"]) == (days[0]["start_ms"], days[0]["end_ms"])
    assert (found["hours"], found["figures"]) == ([], []), "what is not held is not zero"
    assert found["notes"] == []
    get(synthetic_api, f"/{network}/explore/day/1999-01-01", 404)
    get(synthetic_api, f"/{network}/explore/day/x", 400)


def test_a_foundry_tells_the_supply_of_its_token(synthetic_api) -> None:
    row = expected("stardust", "foundry_outputs")[-1]
    supply = get(synthetic_api, f"/shimmer/explore/foundry/{row['foundry_id']}")["found"]["supply"]
    assert int(supply["supply"]) == int(supply["minted"]) - int(supply["melted"])
    assert int(supply["maximum"]) >= int(supply["supply"])


def test_a_history_is_a_file(synthetic_api, network) -> None:
    address = expected(PROTOCOLS[network], OWNED[PROTOCOLS[network]])[-1]["address"]
    path = f"/{network}/explore/address/{address}"
    moves = get(synthetic_api, path)["found"]["history"]["moves"]
    assert (
        "format=csv&amp;list=history.moves" in synthetic_api.get(path, headers={"Accept": "text/html"}).text
    )
    text = synthetic_api.get(f"{path}?format=csv&list=history.moves").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["time"], row["change"]) for row in rows] == [(one["time"], one["change"]) for one in moves]


def test_a_history_of_several_days_is_a_chart(synthetic_api, synthetic_settings, network) -> None:
    """Each bar is the balance after the last move of its day, or of the day before that has one."""
    owners = dict.fromkeys(row["address"] for row in expected(PROTOCOLS[network], OWNED[PROTOCOLS[network]]))
    drawn = 0
    for address in list(owners)[:30]:
        path = f"/{network}/explore/address/{address}"
        moves = get(synthetic_api, path)["found"]["history"]["moves"]
        at_end = {one["time"][:10]: one["balance"] for one in reversed(moves)}
        text = synthetic_api.get(path, headers={"Accept": "text/html"}).text
        assert ('id="balances"' in text) is (len(at_end) > 1)
        for day, balance in at_end.items() if len(at_end) > 1 else ():
            drawn += 1
            shown = formatted(balance, "tokens", coin(synthetic_settings, network))
            assert f"<title>{day}\nbalance: {shown}</title>" in text
    assert drawn > 1


def test_the_account_statement_is_a_file_with_the_balances_of_the_history(synthetic_api, network) -> None:
    address = expected(PROTOCOLS[network], OWNED[PROTOCOLS[network]])[-1]["address"]
    path = f"/{network}/explore/address/{address}"
    moves = get(synthetic_api, path)["found"]["history"]["moves"]
    page = html.unescape(synthetic_api.get(path, headers={"Accept": "text/html"}).text)
    [link] = re.findall(r'href="([^"]*account_statement[^"]*format=csv)"', page)
    rows = list(csv.DictReader(io.StringIO(synthetic_api.get(link).text)))
    changes = {(row["milestone_index"], row["amount_base"], row["balance_base"]) for row in rows}
    assert changes == {(str(one["milestone_index"]), one["change"], one["balance"]) for one in moves}


def test_a_chrysalis_history_is_that_of_the_api(synthetic_api) -> None:
    address = expected("chrysalis", "legacy_outputs")[-1]["address"]
    moves = get(synthetic_api, f"/iota/explore/address/{address}")["found"]["history"]["moves"]
    told = synthetic_api.get(f"/iota/api/v1/addresses/{address}/tx-history?pageSize=1000").json()["data"]
    of_api = {one["transactionId"]: one["addressBalanceChange"] for one in told["history"]}
    assert {one["transaction_id"]: int(one["change"]) for one in moves} == of_api


def test_a_tag_is_found_as_text_and_as_hex(synthetic_api, network) -> None:
    rows = expected(PROTOCOLS[network], "tags")
    text = next(row["tag"] for row in rows if bytes.fromhex(row["tag"]).isalpha())
    assert lands(synthetic_api, network, bytes.fromhex(text).decode()).endswith(f"/tag/{text}")
    tag = rows[0]["tag"]
    assert lands(synthetic_api, network, tag).endswith(f"/tag/{tag}")
    found = get(synthetic_api, f"/{network}/explore/tag/{tag}")["found"]
    assert found["messages"]
    page = synthetic_api.get(f"/{network}/explore/tag/{tag}", headers={"Accept": "text/html"})
    assert "<script" not in page.text


CHAINS = {"alias": "alias_id", "nft": "nft_id", "foundry": "foundry_id"}


@pytest.mark.parametrize("kind", CHAINS)
def test_a_chain_page_lists_its_states(synthetic_api, kind) -> None:
    rows = expected("stardust", f"{kind}_outputs")
    chain_id = rows[-1][CHAINS[kind]]
    own = [row["output_id"] for row in rows if row[CHAINS[kind]] == chain_id]
    assert lands(synthetic_api, "shimmer", f"0x{chain_id}").endswith(f"/{kind}/{chain_id}")
    found = get(synthetic_api, f"/shimmer/explore/{kind}/{chain_id}")["found"]
    assert sorted(one["id"] for one in found["outputs"]) == sorted(own)
    created = [one["created_in"] for one in found["outputs"]]
    assert created == sorted(created, reverse=True)
    assert found["conditions"]
    output = get(synthetic_api, f"/shimmer/explore/output/{own[-1]}")["found"]
    assert (output["kind"], output["chain"]) == (kind, chain_id)
    get(synthetic_api, f"/shimmer/explore/{kind}/{'0' * len(chain_id)}", 404)
    get(synthetic_api, f"/shimmer/explore/{kind}/00", 400)


@pytest.mark.parametrize("kind", ["alias", "nft"])
def test_a_chain_lists_its_earlier_states(synthetic_api, kind) -> None:
    rows = tables("stardust")[f"{kind}_outputs"]
    id_of = CHAINS[kind]
    [(chain, count)] = Counter(row[id_of] for row in rows).most_common(1)
    assert count > 1
    own = sorted((row for row in rows if row[id_of] == chain), key=lambda row: -row["milestone_index"])
    found = get(synthetic_api, f"/shimmer/explore/{kind}/{chain}")["found"]["outputs"]
    assert {one["id"] for one in found} == {row["output_id"] for row in own}
    assert [one["created_in"] for one in found] == [row["milestone_index"] for row in own]
    # Each state is consumed by the transaction that creates the next one.
    for later, one in pairwise(found):
        assert one["spent_by"] == later["created_by"] == later["id"][:64]
    owner = "state_controller" if kind == "alias" else "address"
    assert {one["id"]: one["owner"] for one in found} == {row["output_id"]: row[owner] for row in own}
    text = synthetic_api.get(f"/shimmer/explore/{kind}/{chain}", headers={"Accept": "text/html"}).text
    consumed = [one for one in found if one["spent_by"]]
    assert consumed
    assert all(f"/shimmer/explore/transaction/{one['spent_by']}" in text for one in consumed)
    if kind == "alias":
        indices = [one["state_index"] for one in found]
        assert None not in indices
        assert indices == sorted(indices, reverse=True)


def moment(row):
    return {
        "milestone_index": row["milestone_index"],
        "time": row["ms_timestamp"].strftime("%Y-%m-%d %H:%M:%S"),
        "transaction_id": row["output_id"][:64],
    }


@pytest.mark.parametrize("kind", CHAINS)
def test_a_chain_page_says_since_when_it_is_and_is_so(synthetic_api, kind, monkeypatch) -> None:
    """A page that shows the newest states alone says the same as one that shows all."""
    rows = tables("stardust")[f"{kind}_outputs"]
    spends = {row["output_id"]: row for row in tables("stardust")["consumed_outputs"]}
    ends = set()
    for chain in {row[CHAINS[kind]] for row in rows}:
        own = sorted(
            (row for row in rows if row[CHAINS[kind]] == chain), key=lambda row: row["milestone_index"]
        )
        page = f"/shimmer/explore/{kind}/{chain}"
        found = get(synthetic_api, page)["found"]
        assert (found["created"], found["state_since"]) == (moment(own[0]), moment(own[-1]))
        if kind == "alias":
            [first, *_] = (row for row in own if row["state_index"] == own[-1]["state_index"])
            assert found["index_since"] == moment(first)
        end = spends.get(own[-1]["output_id"])
        assert found["destroyed"] == (end and moment(end) | {"transaction_id": end["transaction_id"]})
        ends.add(end is None)
        text = synthetic_api.get(page, headers={"Accept": "text/html"}).text
        assert f'title="{found["created"]["transaction_id"]}"' in text
        assert ('<th scope="row">Destroyed</th>' in text) == (end is not None)
        of_last_milestone = sum(row["milestone_index"] == own[-1]["milestone_index"] for row in own)
        with monkeypatch.context() as patch:
            patch.setattr("permalake.iota.rest.chain_facts.MOST", of_last_milestone)
            part = get(synthetic_api, page)["found"]
        assert part["complete"] == (len(part["outputs"]) == len(own))
        for name in ("created", "state_since", "index_since", "destroyed"):
            assert part[name] == found[name], name
    assert False in ends


def test_an_alias_that_its_governor_changed_has_its_index_from_before(synthetic_api) -> None:
    """What the lake does not hold is told as unknown: here the creation, which is left out."""
    rows = tables("stardust")["alias_outputs"]
    [(chain, _)] = Counter(row["alias_id"] for row in rows).most_common(1)
    own = sorted((row for row in rows if row["alias_id"] == chain), key=lambda row: -row["milestone_index"])
    governed = [own[0] | {"state_index": own[1]["state_index"]}, *own[1:-1]]
    told = moments(None, "alias", chain, governed, {}, is_complete=True)
    assert told == {
        "created": None,
        "state_since": moment(own[0]),
        "index_since": moment(own[1]),
        "destroyed": None,
    }


def test_an_alias_lists_its_foundries_and_a_foundry_its_alias(synthetic_api) -> None:
    row = expected("stardust", "foundry_outputs")[0]
    foundry = get(synthetic_api, f"/shimmer/explore/foundry/{row['foundry_id']}")["found"]
    assert foundry["alias"] == row["address"]
    alias = get(synthetic_api, f"/shimmer/explore/alias/{row['foundry_id'][2:66]}")["found"]
    assert alias["address"] == row["address"]
    assert row["foundry_id"] in alias["foundries"]
    assert len(alias["foundries"]) == alias["foundry_count"]


def test_a_list_that_is_cut_tells_how_many_there_are(synthetic_api, network, newest, monkeypatch) -> None:
    rows = tables(PROTOCOLS[network])
    tag, tagged = Counter(row["tag"] for row in rows["tags"]).most_common(1)[0]
    held = {row["message_id"] for row in rows["messages"]}
    parents = Counter(row["parent_id"] for row in rows["parents"] if row["parent_id"] in held)
    parent, children = parents.most_common(1)[0]
    monkeypatch.setattr(page_facts, "MOST", 1)
    cases = [
        (f"tag/{tag}", "messages", "message_count", tagged, "The newest 1 of"),
        (f"message/{parent}", "children", "children_count", children, "The first 1 of"),
    ]
    for place, name, counted, expected_count, words in cases:
        path = f"/{network}/explore/{place}"
        facts = get(synthetic_api, path)["found"]
        assert (len(facts[name]), facts[counted]) == (1, expected_count)
        assert expected_count > 1
        page = synthetic_api.get(path, headers={"Accept": "text/html"}).text
        assert f"{words} {expected_count}." in page
    path = f"/{network}/explore/milestone/{newest['index']}"
    page = synthetic_api.get(path, headers={"Accept": "text/html"}).text
    for name in ("created", "consumed"):
        count = newest[f"{name}_count"]
        assert (f"1 of {count}." in page) or count <= 1


def test_an_address_page_tells_conditions_and_the_balance(synthetic_api) -> None:
    listed = synthetic_api.get("/shimmer/api/indexer/v1/outputs/basic?hasExpiration=true&state=all").json()
    output_id = listed["items"][-1].removeprefix("0x")
    [first, *_] = get(synthetic_api, f"/shimmer/explore/output/{output_id}")["found"]["conditions"]
    assert first.startswith("Before ")
    owner, back = (word for word in first.split() if word.startswith("smr1"))
    found = get(synthetic_api, f"/shimmer/explore/address/{owner}")["found"]
    told = next(one["conditions"] for one in found["outputs"] if one["id"] == output_id)
    assert told[0] == first
    query = f"hasExpiration=true&state=all&address={owner}&expirationReturnAddress={back}"
    same = synthetic_api.get(f"/shimmer/api/indexer/v1/outputs/basic?{query}").json()["items"]
    assert f"0x{output_id}" in same
    answer = synthetic_api.get(f"/shimmer/api/explorer/v2/balance/{owner}").json()
    assert found["balance"] == {"total": answer["totalBalance"], "available": answer["availableBalance"]}


def test_every_page_is_html_without_inline_scripts(synthetic_api, network, newest) -> None:
    paths = (
        "",
        f"/milestone/{newest['index']}",
        f"/output/{newest['created'][0]}",
    )
    for path in paths:
        answer = synthetic_api.get(f"/{network}/explore{path}", headers={"Accept": "text/html"})
        assert answer.status_code == 200
        assert "<script" not in answer.text
        assert " style=" not in answer.text
        assert len(answer.content) < 150_000
        assert "script" not in answer.headers["content-security-policy"]


def test_the_page_of_a_message_loads_one_script_of_this_server(synthetic_api, network, newest) -> None:
    path = f"/{network}/explore/message/{newest['messages'][0]['id']}"
    answer = synthetic_api.get(path, headers={"Accept": "text/html"})
    script = f"/{network}/explore/scripts/verify.js"
    assert (
        answer.text.count("<script")
        == answer.text.count(f'<script type="module" src="{script}"></script>')
        == 1
    )
    assert " style=" not in answer.text
    assert len(answer.content) < 150_000
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'; connect-src 'self'; default-src 'none'" in policy
    assert "unsafe" not in policy
    served = synthetic_api.get(script)
    assert (served.status_code, served.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert synthetic_api.get(f"/{network}/explore/scripts/message.html").status_code == 404


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        (f"/message/{'0' * 64}", 404, "is not in the published days"),
        ("/output/%3Cb%3E%E2%80%AE", 400, "outputId: not hex digits in pairs"),
        ("/milestone/%3Cb%3E", 400, "index: Input should be a valid integer"),
    ],
)
def test_a_browser_gets_a_page_that_says_what_is_wrong(synthetic_api, network, path, status, told) -> None:
    url = f"/{network}/explore{path}"
    answer = synthetic_api.get(url, headers={"Accept": "text/html,*/*;q=0.8"})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert told in answer.text
    assert f'href="/{network}"' in answer.text
    assert "<b>" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    for other in ({"Accept": "*/*"}, {"Accept": "application/json"}):
        assert synthetic_api.get(url, headers=other).headers["content-type"] == "application/problem+json"


def test_what_is_unknown_or_malformed(synthetic_api, network) -> None:
    assert get(synthetic_api, f"/{network}/explore?q=%3Cb%3Enothing")["query"] == "<b>nothing"
    page = synthetic_api.get(f"/{network}/explore?q=%3Cb%3Enothing", headers={"Accept": "text/html"})
    assert "<b>nothing" not in page.text
    get(synthetic_api, f"/{network}/explore/message/{'0' * 64}", 404)
    get(synthetic_api, f"/{network}/explore/message/xyz", 400)
    get(synthetic_api, f"/{network}/explore/milestone/4000000", 404)
    get(synthetic_api, f"/{network}/explore/milestone/x", 400)
    get(synthetic_api, f"/{network}/explore/milestone/{2**32 - 1}", 404)
    get(synthetic_api, f"/{network}/explore/milestone/{2**63}", 400)
    get(synthetic_api, f"/{network}/explore/address/{json.dumps('x')}", 400)
    get(synthetic_api, f"/{network}/explore/tag/{'0f' * 64}", 404)


MILESTONE = expected("stardust", "milestones")[0]
DIGITS = str(MILESTONE["milestone_index"])


@pytest.fixture(scope="module")
def digits_api(tmp_path_factory):
    """A network with a milestone, and messages whose tags are the digits of its index, as text and as hex."""
    from fastapi.testclient import TestClient

    from permalake.api.app import create_app
    from support import lakes

    folder = tmp_path_factory.mktemp("digits")
    networks = {lakes.NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": str(folder)}}
    settings = Settings(lake={"warehouse": str(folder / "lake")}, networks=networks)
    lake = lakes.OpenLake(settings)
    attempt = lake.begin(lakes.NETWORK, lakes.DAY1, lakes.DAY1, "run")
    index, moment = int(DIGITS), datetime.combine(lakes.DAY1, time(12), UTC)
    lakes.stage_day(settings, attempt, lakes.DAY1, index, 2)
    milestone = {**MILESTONE, "payload": bytes.fromhex(MILESTONE["payload"])}
    lakes.put(settings, attempt, "milestones", [{**milestone, "date": lakes.DAY1}])
    tags = [
        {
            "tag": tag,
            "ms_range_id": 0,
            "milestone_index": index,
            "ms_timestamp": moment,
            "message_id": f"{index:060x}{number:04x}",
            "inclusion_state": 2,
            "date": lakes.DAY1,
        }
        for number, tag in enumerate((DIGITS, DIGITS.encode().hex()))
    ]
    lakes.put(settings, attempt, "tags", tags)
    lake.builds.publish(lakes.pass_audit(attempt))
    with TestClient(create_app(settings)) as client:
        yield client


def test_digits_that_are_a_milestone_and_a_tag_are_offered_as_both(digits_api) -> None:
    found = get(digits_api, f"/shimmer/explore?q={DIGITS}")["places"]
    assert found == [
        {"kind": "milestone", "name": DIGITS},
        {"kind": "tag", "name": DIGITS},
        {"kind": "tag", "name": DIGITS.encode().hex()},
    ]
    shown = digits_api.get(f"/shimmer/explore?q={DIGITS}", headers={"Accept": "text/html"})
    assert shown.status_code == 200
    for place in found:
        assert f'href="/shimmer/explore/{place["kind"]}/{place["name"]}"' in shown.text


def test_a_search_redirects_in_the_form_that_was_asked_for(digits_api) -> None:
    tag = DIGITS.encode().hex()
    for asked, path in ((f"q={tag}&format=json", f"tag/{tag}?format=json"), (f"q={tag}", f"tag/{tag}")):
        answer = digits_api.get(f"/shimmer/explore?{asked}", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/shimmer/explore/{path}")
    landed = digits_api.get(f"/shimmer/explore?q={tag}&format=json")
    assert landed.json()["found"]["tag"] == tag
