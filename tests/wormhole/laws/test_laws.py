"""Laws of a Wormhole day: good days keep them, and each break shows up as that law, where it is broken."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from permalake.domains import domain_of
from permalake.wormhole.contracts import WORMHOLE_TABLES
from support.audit_days import scope, violations

DAY, NEXT = dt.date(2024, 3, 10), dt.date(2024, 3, 11)
TOKEN, DENIED, OTHER = "aa" * 32, "dd" * 32, "bb" * 32
EMITTER = "ee" * 32
GATEWAY = "WORMCHAIN_GATEWAY_TRANSFER"
NOON = dt.datetime(2024, 3, 10, 12, tzinfo=dt.UTC)
VALUE = {
    **{"amount": "1.5", "token_price_usd": Decimal("0.5"), "notional_usd": Decimal("0.75")},
    **{"price_timestamp": NOON, "price_source": "file", "price_distance_seconds": 0},
}
LAWS = domain_of("wormhole").laws()


def key(sequence, chain=2) -> str:
    return f"{chain}:{EMITTER}:{sequence:016}"


def days():
    """Two synthetic days: transfers of three tokens, NTT, an attestation, an NFT, governance."""
    rows = {name: [] for name in WORMHOLE_TABLES}
    for sequence, day in enumerate((DAY, DAY, DAY, DAY, NEXT), start=1):
        _message(rows, key(sequence), day)
        token = (TOKEN, TOKEN, OTHER, DENIED, TOKEN)[sequence - 1]
        _transfer(rows, key(sequence), day, token, receiver=f"0x{min(sequence, 2)}")
        rows["token_transfer_payload"][-1]["payload_id"] = 3 if sequence == 5 else 1
    for sequence, table in (
        (6, "asset_meta_payload"),
        (7, "nft_transfer_payload"),
        (8, "governance_actions"),
    ):
        _message(rows, key(sequence), DAY)
        rows[table].append({"row_key": key(sequence), "date": DAY})
    rows["observations"].append({"row_key": key(1), "guardian_address": "ab" * 20, "date": DAY})
    rows["chain_details"].append({"row_key": key(7), "receiver_address": "0x9", "date": DAY})
    rows["token_prices"].append(_quote(TOKEN))
    _redemption(rows, key(1), receiver_address="0X1", target_tx_id="0xa")
    _redemption(rows, key(2), status="in_flight", redeemed_at=None)
    # A transfer with payload pays the contract that passes the tokens on.
    _redemption(rows, key(5), NEXT, receiver_address="0x4")
    # The audit reads a day more of side tables at either end.
    _redemption(rows, key(50), NEXT + dt.timedelta(1))
    rows["quarantine"].append({"reason": "no_quorum", "date": DAY})
    rows["messages_daily"] += [
        {"date": DAY, "emitter_chain": 2, "messages": 10, "verified": 9, "quarantined": 1},
        {"date": NEXT, "emitter_chain": 2, "messages": 1, "verified": 1, "quarantined": 0},
    ]
    for day, token, transfers, amount, value in (
        (DAY, TOKEN, 2, "3", "1.5"),
        (DAY, OTHER, 1, None, None),
        (DAY, DENIED, 1, "1.5", None),
        (NEXT, TOKEN, 1, "1.5", "0.75"),
    ):
        rows["notional_transferred_daily"].append(
            {
                **_route(day, token),
                "transfers": transfers,
                "amount": amount,
                "notional_usd": value and Decimal(value),
            }
        )
    rows["addresses_daily"] += [
        {"date": DAY, "target_chain": 4, "addresses": 2},
        {"date": NEXT, "target_chain": 4, "addresses": 1},
    ]
    rows["governor_usage_daily"] += [
        {"date": day, "emitter_chain": 2, "transfers": count, "big_transfers": 0}
        for day, count in ((DAY, 2), (NEXT, 1))
    ]
    _applications(rows)
    return rows


def _message(rows, row_key, day):
    moment = dt.datetime.combine(day, dt.time(12), dt.UTC)
    rows["message_publication"].append(
        {"row_key": row_key, "emitter_chain": 2, "timestamp": moment, "date": day}
    )
    rows["quorum_state"].append({"row_key": row_key, "date": day})


def _applications(rows):
    """Every message has an application; TBTC receives the first transfer, the rest of a day belongs together.

    Two messages of NTT move the priced token, one of them by a contract that is not listed; one is delivered.
    Gateway passes the next day's transfer on to chain 20.
    """
    for number, day in ((20, DAY), (21, DAY)):
        _message(rows, key(number), day)
        listed = number == 20
        _application(rows, key(number), day, "NATIVE_TOKEN_TRANSFER", "ntt", listed)
        _moved(rows, key(number), day, "NATIVE_TOKEN_TRANSFER", bridged=False)
    rows["relayer_deliveries"].append({"row_key": key(20), "date": DAY})
    _application(rows, key(1), DAY, "TBTC", "recipient")
    _moved(rows, key(1), DAY, "TBTC", bridged=True)
    _application(rows, key(5), NEXT, GATEWAY, "gateway")
    _moved(rows, key(5), NEXT, GATEWAY, bridged=True, target_chain=20)
    for number in (2, 3, 4, 6):
        _application(rows, key(number), DAY, "PORTAL_TOKEN_BRIDGE", "token_bridge")
    for number in (7, 8):
        _application(rows, key(number), DAY, "UNKNOWN", None, listed=False)
    for day, app_id, messages, transfers, value in (
        (DAY, "NATIVE_TOKEN_TRANSFER", 2, 2, "0.75"),
        (DAY, "TBTC", 1, 1, "0.75"),
        (DAY, "PORTAL_TOKEN_BRIDGE", 4, 3, "0.75"),
        (DAY, "UNKNOWN", 2, 0, None),
        (NEXT, GATEWAY, 1, 1, "0.75"),
    ):
        rows["applications_daily"].append(
            {
                **{"date": day, "app_id": app_id, "emitter_chain": 2, "messages": messages},
                **{"transfers": transfers, "notional_usd": value and Decimal(value)},
            }
        )


def _application(rows, row_key, day, app_id, layout, listed=True):
    rows["application_messages"].append(
        {"row_key": row_key, "date": day, "app_id": app_id, "layout": layout, "is_listed": int(listed)}
    )


def _moved(rows, row_key, day, app_id, *, bridged, target_chain=4):
    rows["application_transfers"].append(
        {
            **{"row_key": row_key, "date": day, "app_id": app_id, "in_token_transfers": int(bridged)},
            **{"token_chain": 2, "token_address": TOKEN, "amount": "150", "target_chain": target_chain},
        }
    )
    rows["application_transfer_details"].append({"row_key": row_key, "date": day, **_value(day)})


def _value(day):
    return {**VALUE, "price_distance_seconds": (day - DAY).days * 86_400}


def _route(day, token):
    return {
        "date": day,
        "emitter_chain": 2,
        "target_chain": 4,
        "origin_chain": 2,
        "origin_address": token,
    }


def _transfer(rows, row_key, day, token, receiver):
    rows["token_transfer_payload"].append(
        {"row_key": row_key, **_route(day, token), "target_address": "00", "amount": "150"}
    )
    value = _value(day)
    if token != TOKEN:
        value = {**dict.fromkeys(VALUE), "amount": None if token == OTHER else "1.5"}
    if token == OTHER:
        value |= {"stand_in": "usd", "stand_in_price_usd": Decimal(1)}
    rows["token_transfer_details"].append({"row_key": row_key, "date": day, **value})
    rows["chain_details"].append({"row_key": row_key, "receiver_address": receiver, "date": day})


def _redemption(rows, row_key, day=DAY, **told):
    moment = dt.datetime.combine(day, dt.time(12, 5), dt.UTC)
    redeemed = {"row_key": row_key, "target_chain": 4, "status": "completed", "redeemed_at": moment}
    rows["redemptions"].append({**redeemed, "source": "wormholescan", "date": day, **told})
    return rows["redemptions"][-1]


def _quote(token):
    return {
        "origin_chain": 2,
        "origin_address": token,
        "provider": "file",
        "quote_time": NOON,
        "price_usd": Decimal("0.5"),
        "date": DAY,
    }


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    reference = tmp_path_factory.mktemp("reference")
    (reference / "deny.json").write_text(
        f'[{{"chain": 2, "token_address": "{DENIED}", "reason": "synthetic"}}]'
    )

    listed = ["chain,token_address,coingecko_id", f"2,{TOKEN},gold", f"2,{DENIED},fake", f"2,{OTHER},"]
    (reference / "token_list.csv").write_text("\n".join(listed))

    def judge(rows, window_hours=36, max_missing=1.0):
        configuration = {"window_hours": window_hours, "max_missing": max_missing}
        return violations(LAWS, scope(rows, WORMHOLE_TABLES, reference=reference, **configuration))

    return judge


def find(rows, table, **where):
    return next(row for row in rows[table] if all(row[name] == value for name, value in where.items()))


def damage(rows):
    """Breaks one value at a time; returns the (law, day, place) that each breaks."""
    rows["quorum_state"].remove(find(rows, "quorum_state", row_key=key(6)))
    for number, table in enumerate(
        ("asset_meta_payload", "nft_transfer_payload", "governance_actions", "observations"), start=90
    ):
        rows[table].append({"row_key": key(number), "date": NEXT})
    rows["chain_details"].append({"row_key": key(91), "receiver_address": "0x7", "date": NEXT})
    rows["token_transfer_payload"].append({"row_key": key(95), **_route(NEXT, OTHER), "target_address": "00"})
    find(rows, "token_transfer_details", row_key=key(1))["notional_usd"] += Decimal("0.00000001")
    denied = find(rows, "token_transfer_details", row_key=key(4))
    denied.update(token_price_usd=Decimal("0.5"), notional_usd=Decimal("0.75"), price_source="file")
    denied.update(price_timestamp=NOON, price_distance_seconds=0)
    find(rows, "messages_daily", date=NEXT)["verified"] = 2
    find(rows, "messages_daily", date=DAY)["quarantined"] = 2
    find(rows, "addresses_daily", date=DAY)["addresses"] = 3
    find(rows, "notional_transferred_daily", date=DAY, origin_address=OTHER)["transfers"] = 4
    find(rows, "notional_transferred_daily", date=NEXT)["amount"] = "1.6"

    def route(token):
        return f"chain 2 to 4, token 2:{token}"

    return {
        ("vaa_of_every_message", DAY, key(6)),
        *(
            (f"{table}_has_message", NEXT, key(number))
            for number, table in enumerate(
                ("asset_meta_payload", "nft_transfer_payload", "governance_actions", "observations"), start=90
            )
        ),
        ("token_transfer_payload_has_message", NEXT, key(95)),
        ("chain_details_have_message", NEXT, key(91)),
        ("details_of_every_transfer", NEXT, key(95)),
        ("chain_details_of_every_transfer", NEXT, key(95)),
        ("receivers_add_up", NEXT, "chain 4"),
        ("notional_is_amount_times_price", DAY, key(1)),
        ("bridged_values_agree", DAY, f"{key(1)} 1.5 0.75000000"),
        ("bridged_values_agree", DAY, f"{key(1)} 1.5 0.75000001"),
        ("application_sums_add_up", DAY, "TBTC of chain 2"),
        ("application_sums_add_up", DAY, "PORTAL_TOKEN_BRIDGE of chain 2"),
        ("sums_add_up", DAY, f"{route(TOKEN)} notional_usd"),
        ("denied_tokens_have_no_price", DAY, key(4)),
        ("quotes_are_kept", DAY, key(4)),
        ("governor_counts_each_transfer", DAY, "chain 2"),
        ("sums_add_up", DAY, f"{route(DENIED)} notional_usd"),
        ("verified_adds_up", NEXT, "chain 2"),
        ("quarantined_is_in_quarantine", DAY, "quarantined"),
        ("receivers_add_up", DAY, "chain 4"),
        ("transfers_add_up", DAY, route(OTHER)),
        ("sums_add_up", NEXT, f"{route(TOKEN)} amount"),
    }


def of_applications(rows):
    """Breaks what the tables of applications say, one value at a time."""
    ntt, unlisted, bridged = key(20), key(21), key(1)
    rows["application_messages"].remove(find(rows, "application_messages", row_key=key(8)))
    find(rows, "application_transfers", row_key=bridged).update(amount="151", target_chain=5)
    find(rows, "application_transfer_details", row_key=ntt)["notional_usd"] += Decimal("0.00000001")
    find(rows, "application_transfer_details", row_key=bridged)["amount"] = "1.6"
    denied = find(rows, "application_transfers", row_key=unlisted)
    denied.update(token_address=DENIED, app_id="M_PORTAL")
    find(rows, "application_transfer_details", row_key=unlisted)["price_distance_seconds"] = 1
    rows["relayer_deliveries"].append({"row_key": key(90), "date": NEXT})
    rows["application_transfers"].append({**denied, "row_key": key(91), "date": NEXT, "app_id": "X"})
    find(rows, "applications_daily", date=NEXT)["messages"] = 2
    find(rows, "applications_daily", app_id="TBTC")["transfers"] = 2
    return {
        ("application_of_every_message", DAY, key(8)),
        ("application_messages_add_up", DAY, "UNKNOWN of chain 2"),
        ("bridged_transfers_agree", DAY, f"{bridged} 150 2:{TOKEN}"),
        ("bridged_transfers_agree", DAY, f"{bridged} 151 2:{TOKEN}"),
        ("bridged_targets_agree", DAY, f"{bridged} to 4"),
        ("bridged_targets_agree", DAY, f"{bridged} to 5"),
        ("application_notional_is_amount_times_price", DAY, ntt),
        ("application_sums_add_up", DAY, "NATIVE_TOKEN_TRANSFER of chain 2"),
        ("bridged_values_agree", DAY, f"{bridged} 1.5 0.75000000"),
        ("bridged_values_agree", DAY, f"{bridged} 1.6 0.75000000"),
        ("application_notional_is_amount_times_price", DAY, bridged),
        ("applications_denied_tokens_have_no_price", DAY, unlisted),
        ("applications_quotes_are_kept", DAY, unlisted),
        ("applications_distance_to_quote", DAY, unlisted),
        ("application_transfers_have_application", DAY, f"{unlisted} M_PORTAL"),
        ("application_transfers_have_application", NEXT, f"{key(91)} X"),
        ("details_of_every_application_transfer", NEXT, key(91)),
        ("deliveries_have_application", NEXT, key(90)),
        ("application_messages_add_up", NEXT, f"{GATEWAY} of chain 2"),
        ("application_transfers_add_up", DAY, "TBTC of chain 2"),
    }


def test_good_days_keep_every_law(found) -> None:
    assert found(days()) == []


def from_afar(rows):
    """One quote lies outside of a window of 12 hours, and a day has no prices."""
    for row in (*rows["token_transfer_details"], *rows["application_transfer_details"]):
        if row["date"] == NEXT:
            row["notional_usd"] = row["token_price_usd"] = None
            row["price_timestamp"] = row["price_source"] = row["price_distance_seconds"] = None
    find(rows, "notional_transferred_daily", date=NEXT)["notional_usd"] = None
    rows["governor_usage_daily"].remove(find(rows, "governor_usage_daily", date=NEXT))
    far = find(rows, "token_transfer_details", row_key=key(2))
    far["price_timestamp"] -= dt.timedelta(hours=12, seconds=1)
    far["price_distance_seconds"] = 12 * 3600 + 1
    rows["token_prices"].append({**_quote(TOKEN), "quote_time": far["price_timestamp"]})
    find(rows, "applications_daily", date=NEXT)["notional_usd"] = None
    ntt = find(rows, "application_transfer_details", row_key=key(20))
    ntt.update({name: far[name] for name in ("price_timestamp", "price_distance_seconds")})
    return {
        ("quote_within_window", DAY, key(2)),
        ("applications_quote_within_window", DAY, key(20)),
        ("few_without_value", NEXT, "share without value"),
    }


def missing(rows):
    """Two of the day's transfers are of a listed token that is not denied; one of them loses its price."""
    for table in ("token_transfer_details", "application_transfer_details"):
        find(rows, table, row_key=key(1)).update({**dict.fromkeys(VALUE), "amount": "1.5"})
    find(rows, "applications_daily", app_id="TBTC")["notional_usd"] = None
    sums = find(rows, "notional_transferred_daily", date=DAY, origin_address=TOKEN)
    sums["notional_usd"] = Decimal("0.75")
    find(rows, "governor_usage_daily", date=DAY)["transfers"] = 1
    return {
        ("few_prices_missing", DAY, "share without price"),
        ("few_without_value", DAY, "share without value"),
    }


def beside_the_quotes(rows):
    """Distances, cross-checks and stand-ins: 5 % apart is no warning, a little more is one."""
    first, second, standing = (find(rows, "token_transfer_details", row_key=key(n)) for n in (1, 2, 3))
    first["price_distance_seconds"] = 1
    for row, price in ((first, "0.52"), (second, "0.5264")):
        row.update(
            check_price_usd=Decimal(price),
            check_price_timestamp=NOON,
            check_price_source=f"other{price}",
        )
    rows["token_prices"].append({**_quote(TOKEN), "provider": "other0.52", "price_usd": Decimal("0.52")})
    second["stand_in"] = "gold"
    first["price_confidence"], second["price_confidence"] = 0.5, 0.4
    second["contradicting_price_usd"] = Decimal("5.1")
    standing.update(amount="2", stand_in_notional_usd=Decimal("2.1"))
    find(rows, "notional_transferred_daily", date=DAY, origin_address=OTHER)["amount"] = "2"
    return {
        ("distance_to_quote", DAY, key(1)),
        ("providers_agree", DAY, key(2)),
        ("quotes_are_kept", DAY, key(2)),
        ("prices_have_no_outliers", DAY, key(2)),
        ("prices_are_confident", DAY, key(2)),
        ("stand_ins_are_apart", DAY, key(2)),
        ("stand_in_value_is_amount_times_price", DAY, key(3)),
    }


def misled(rows):
    """What others tell of redemptions is wrong: the transfer, the chain, the time, who and what was paid."""
    _redemption(rows, key(9))
    _redemption(rows, key(6), target_chain=5)
    _redemption(rows, key(2), target_chain=5)
    early = _redemption(rows, key(1), redeemed_at=NOON - dt.timedelta(seconds=1), target_tx_id="0xb")
    _redemption(rows, key(1), source="rpc", target_tx_id="0xa")
    early["receiver_address"] = "0x7"
    _redemption(rows, key(3), token_address="0x9")
    find(rows, "chain_details", row_key=key(3))["resulting_token_address"] = "0x5"
    return {
        ("redemptions_are_of_transfers", DAY, key(9)),
        ("redemptions_are_of_transfers", DAY, key(6)),
        ("redemptions_are_of_transfers", DAY, key(2)),
        ("redeemed_after_transfer", DAY, key(1)),
        ("redeemed_once", DAY, key(1)),
        ("redemptions_reach_receivers", DAY, key(1)),
        ("redemptions_pay_resulting_tokens", DAY, key(3)),
    }


DAMAGES = {
    beside_the_quotes: {},
    damage: {},
    of_applications: {},
    from_afar: {"window_hours": 12},
    missing: {"max_missing": 0.4},
    misled: {},
}
"""Each damage with the configuration that it is audited with."""


@pytest.mark.parametrize("spoil", DAMAGES)
def test_each_break_is_found_where_it_is_and_no_other(found, spoil) -> None:
    rows = days()
    wanted = spoil(rows)
    assert {
        (row["law"], dt.date.fromisoformat(row["date"]), row["place"])
        for row in found(rows, **DAMAGES[spoil])
    } == wanted


@pytest.mark.parametrize("max_missing", [0.5, 1.0])
def test_as_many_missing_prices_as_allowed_are_no_failure(found, max_missing) -> None:
    rows = days()
    missing(rows)
    assert "few_prices_missing" not in {row["law"] for row in found(rows, max_missing=max_missing)}


def test_every_law_is_violated_by_a_damage() -> None:
    assert {law for spoil in DAMAGES for law, _, _ in spoil(days())} == {law.name for law in LAWS}
