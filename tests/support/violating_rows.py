"""For each table a valid row, and for each rule a row that violates it.

Rows for the rules of a contract are derived from it; those for the rules of a suite stand in ``BROKEN``.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

from permalake.audit.catalogue import audited
from permalake.iota.contracts import IOTA_TABLES
from permalake.wormhole.contracts import WORMHOLE_TABLES

DOMAINS = {"iota": audited(IOTA_TABLES.values()), "wormhole": audited(WORMHOLE_TABLES.values())}
EVERY = {table.name: table for tables in DOMAINS.values() for table in tables}

DAY = dt.date(2024, 3, 10)
NOON = dt.datetime(2024, 3, 10, 12, tzinfo=dt.UTC)
ONE_DAY = dt.timedelta(1)
TEXTS = (
    *("ab" * 32, "ab" * 34, "ab" * 38, "ab" * 49, "ab" * 20, "1.5", "5", "smr1qqqqqqqq"),
    f"2:{'ee' * 32}:0000000000000005",
)
"""A text for every pattern of the contracts."""
BUCKETS = [0] * 11


def output_data(kind, size=10):
    """Bytes of an output of amount 0."""
    return bytes([kind]) + bytes(size - 1)


VALID = {
    "milestones": {"payload": bytes.fromhex("07000000") + bytes(9)},
    "parents": {"parent_id": "cd" * 32},
    "transactions": {"data": bytes(35)},
    "basic_outputs": {"data": output_data(3)},
    "alias_outputs": {"data": output_data(4)},
    "foundry_outputs": {"data": output_data(5)},
    "nft_outputs": {"data": output_data(6)},
    "legacy_outputs": {"data": output_data(0, size=42)},
    "treasury_outputs": {"data": output_data(2, size=9)},
    "receipts": {"output_id": "ab" * 32 + "0000"},
    "protocol_parameters": {"target_milestone_index": 1},
    "consumed_outputs": {
        "address": "smr1qqqqqqqq",
        "transaction_id": "ab" * 32,
        "message_id": "ab" * 32,
    },
    "conflicting_transactions": {"is_signer": 1},
    "daily_analytics": {"year": DAY.year},
    "balance_changes": {"change": 1},
    "token_distribution": {"bucket": 0, "amount": 1},
    "quorum_state": {"signed_vaa": b"\x01" + bytes(200)},
    "message_publication": {"emitter_chain": 2, "emitter_address": "ee" * 32, "sequence": Decimal(5)},
    "observations": {"signature": "ab" * 65},
    "token_transfer_payload": {"fee": "0"},
    "token_transfer_details": {"reason": "no_quote"},
    "application_transfer_details": {"reason": "no_quote"},
    "attested_tokens": {"origin_chain": 2},
    "messages_daily": {"verified": 1},
    "chain_answers": {"reason": "not found"},
    "redemptions": {"status": "completed"},
    "token_custody": {"status": "known", "balance": "5", "block": 1},
    "application_messages": {"layout": "ntt"},
    "relayer_deliveries": {
        **dict.fromkeys(("target_address", "refund_address", "refund_delivery_provider"), "ab" * 32),
        **{"refund_chain": 4, "extra_receiver_value": "5"},
    },
}
"""What a valid row has beyond the values derived from the contract."""

_ACTIVITY = {
    "payloads_are_states": {"no_payload_count": 1},
    "input_buckets_add_up": {"input_buckets": [1, *BUCKETS[1:]]},
    "output_buckets_add_up": {"output_buckets": [1, *BUCKETS[1:]]},
}
_OUTPUT = {"amount_in_data": {"amount": 5}}
_STARDUST_OUTPUT = {
    **_OUTPUT,
    "kind_in_data": {"data": output_data(255)},
    "native_tokens_in_data": {"native_token_count": 1},
}
_ADDRESS = "smr1qqqqqqqq"
_METADATA = {"metadata_in_data": {"immutable_metadata": b"\xff"}}


def _conditions(return_address):
    """What breaks the rules of unlock conditions."""
    return {
        "expiration_is_whole": {"expiration_time": 5},
        "storage_return_is_whole": {return_address: _ADDRESS},
        "storage_return_within_amount": {"storage_return_amount": 5, return_address: _ADDRESS},
    }


_VALUE = {
    "price_is_whole": {"token_price_usd": Decimal(1), "price_source": "file"},
    "notional_needs_price": {"amount": "1", "notional_usd": Decimal(1), "reason": None},
    "reason_without_value": {"reason": None},
}
_TEXTS_TOO_LONG = {"symbol_fits": {"symbol": "x" * 97}}
BROKEN = {
    "milestones": {"payload_is_a_milestone": {"payload": bytes(13)}},
    "messages": {
        "reason_only_of_conflicts": {"conflict_reason": 7, "inclusion_state": 1},
        "message_not_empty": {"message": b""},
    },
    "parents": {"no_self_approval": {"parent_id": "ab" * 32}},
    "tags": {"tag_length": {"tag": "ab" * 65}},
    "transactions": {
        "input_length": {"data": bytes(34)},
        "data_not_empty": {"variant": "output", "data": b""},
    },
    "basic_outputs": _STARDUST_OUTPUT | _conditions("storage_return_address"),
    "alias_outputs": {
        **_STARDUST_OUTPUT,
        **_METADATA,
        "state_metadata_in_data": {"state_metadata": b"\xff"},
    },
    "foundry_outputs": {**_STARDUST_OUTPUT, **_METADATA, "scheme_adds_up": {"melted_tokens": "6"}},
    "nft_outputs": _STARDUST_OUTPUT | _METADATA | _conditions("dust_return_address"),
    "legacy_outputs": {
        "amount_in_data": {"data": output_data(0, size=34)},
        "kind_in_data": {"data": output_data(1, size=42)},
    },
    "treasury_outputs": _OUTPUT,
    "receipts": {"output_of_position": {"idx": 1}},
    "protocol_parameters": {"announced_before": {"milestone_index": 1}},
    "consumed_outputs": {
        "spender_but_of_treasury": {"transaction_id": None},
        "owner_but_of_treasury": {"address": None},
    },
    "native_tokens": {
        "amount_not_zero": {"amount": "0"},
        "token_amount_is_u256": {"amount": "1" * 79},
    },
    "ledger_updates": {"consumed_by_transaction": {"is_spent": 1}},
    "conflicting_transactions": {"signer_or_owner": {"is_signer": 0, "amount": 0}},
    "ms_analytics": {
        "transactions_within_messages": {"transaction_count": 1},
        "tokens_need_transactions": {"transferred_tokens": 1},
    },
    "ms_activity": {**_ACTIVITY, "bytes_within_bytes": {"milestone_bytes": 1}},
    "date_cache": {"start_before_end": {"start_ms": 1}},
    "metrics_cache": {
        "metric_of_variant": {"metric": "used"},
        "metric_value_null": {"metric_value": b"x"},
    },
    "daily_activity": {
        **_ACTIVITY,
        "largest_within_all": {"max_milestone_bytes": 1},
        "moved_within_booked": {"moved_tokens": 1},
    },
    "daily_analytics": {
        "year_of_date": {"year": 1999},
        "total_within_bounds": {"total_addresses": 1},
    },
    "daily_extended": {
        "average_within_most": {"avg_outputs": 2.0, "included_transaction_count": 1},
        "average_of_transactions": {"included_transaction_count": 1},
    },
    "hourly_activity": {
        "only_transactions_move": {"transferred_tokens": 1},
        "transactions_have_states": {"payload": "transaction"},
        "moved_within_transferred": {
            "payload": "transaction",
            "included_transactions": 1,
            "moved_tokens": 1,
        },
    },
    "top_tags": {"text_of_tag": {"text": "x"}},
    "tag_families": {
        "within_messages": {"tags": 2},
        "tokens_of_tags_need_transactions": {"transferred_tokens": 1},
    },
    "active_addresses": {
        "period_begins": {"start_date": DAY - ONE_DAY},
        "days_within_period": {"days": 2},
    },
    "ledger_changes": {
        "conditions_within_outputs": {"timelock_count": 1},
        "deposit_within_amount": {"deposit": 1},
    },
    "balance_changes": {"something_changed": {"change": 0}},
    "ledger_outputs": {"known_ledger_is_not_negative": {"unspent_bytes": -1}},
    "unlock_conditions": {
        "only_deposits_are_returned": {"created_amount": 1, "created_return_amount": 1},
        "returns_within_amounts": {"condition": "storage_deposit_return", "consumed_return_amount": 1},
        "known_ledger_is_not_negative": {"unspent_amount": -1},
    },
    "ledger_totals": {
        "keys_weigh_34_bytes": {"key_bytes": 1, "data_bytes": 1},
        "sizes_together": {"key_bytes": 0},
        "checkpoint_in_month": {"checkpoint": DAY - 10 * ONE_DAY},
    },
    "address_balances": {
        "known_balance_is_not_negative": {"balance": -1},
        "active_before_end": {"active_on": DAY + ONE_DAY},
    },
    "token_distribution": {
        "amount_within_bucket": {"amount": 10},
        "nobody_below_zero": {"bucket": -1, "amount": -1},
    },
    "message_publication": {
        "key_of_parts": {"sequence": Decimal(6)},
        "date_of_timestamp": {"timestamp": NOON + ONE_DAY},
    },
    "quorum_state": {
        "version_1": {"signed_vaa": b"\x02" + bytes(200)},
        "holds_signatures": {"signed_vaa": b"\x01" + bytes(121)},
    },
    "observations": {"signature_fits": {"signature": "ab" * 64}},
    "messages_daily": {"messages_add_up": {"quarantined": 1}},
    "token_transfer_payload": {
        "fee_of_payload_1": {"fee": None},
        "sender_of_payload_3": {"app_payload": b"x"},
        "amount_is_u256": {"amount": "1" * 79},
    },
    "asset_meta_payload": _TEXTS_TOO_LONG,
    "nft_transfer_payload": {**_TEXTS_TOO_LONG, "token_id_is_u256": {"token_id": "1" * 79}},
    "governance_actions": {
        "module_fits": {"module": "x" * 33},
        "fields_of_known_actions": {"fields": "{}"},
    },
    "token_transfer_details": {
        **_VALUE,
        "check_is_whole": {"check_price_usd": Decimal(1), "check_price_source": "file"},
        "stand_in_is_whole": {"stand_in": "gold", "stand_in_price_usd": Decimal(1)},
        "unused_price_has_reason": {"unused_price_usd": Decimal(1)},
    },
    "application_messages": {
        "application_has_layout": {"layout": None},
        "only_known_is_listed": {"app_id": "UNKNOWN", "layout": None, "is_listed": 1},
        "carried_by_another": {"carrier_app_id": "x"},
    },
    "application_transfers": {
        "token_is_whole": {"token_chain": 2},
        "amounts_are_u256": {"fee": "1" * 79},
        "bridged_by_others": {"app_id": "PORTAL_TOKEN_BRIDGE", "in_token_transfers": 1},
    },
    "relayer_deliveries": {
        "delivery_is_whole": {"refund_chain": None},
        "only_redeliveries_repeat": {"delivered_row_key": f"2:{'ee' * 32}:0000000000000005"},
        "gas_is_whole": {"gas_limit": "5"},
        "values_are_u256": {"requested_receiver_value": "1" * 79},
    },
    "application_transfer_details": _VALUE,
    "applications_daily": {
        "transfers_within_messages": {"transfers": 2},
        "notional_needs_transfers": {"notional_usd": Decimal(1)},
    },
    "governor_usage_daily": {
        "big_transfers_are_big": {
            "big_transfers": 2,
            "big_transaction_usd": 10,
            "big_notional_usd": Decimal(19),
        }
    },
    "chain_details": {"token_name_needs_token": {"resulting_token_name": "Token"}},
    "token_prices": {
        "date_of_quote": {"quote_time": NOON + ONE_DAY},
        "correction_is_whole": {"former_price_usd": Decimal(1)},
    },
    "chain_answers": {
        "answer_has_address": {"told": 1, "reason": None},
        "reason_where_none": {"reason": None},
    },
    "redemptions": {
        "in_flight_tells_nothing": {"status": "in_flight", "redeemer": "0x1"},
        "chain_tells_whether_completed": {"status": "failed", "source": "rpc"},
    },
    "token_custody": {
        "known_has_balance": {"balance": None},
        "reason_unless_known": {"reason": "reverted"},
        "balance_has_block": {"block": None},
        "amount_has_decimals": {"decimals": 6},
    },
    "notional_transferred_daily": {"notional_needs_amount": {"notional_usd": Decimal(1)}},
    "attested_tokens": {
        "attested_by_then": {"attested_on": DAY + ONE_DAY},
        "attested_at_home": {"origin_chain": 3},
    },
    "tvl_daily": {
        "amount_not_negative": {"amount": "-1.5"},
        "notional_needs_amount": {"notional_usd": Decimal(1)},
    },
}
"""By table and rule of its suite: what makes the valid row violate this rule and no other."""


def valid_row(table):
    """A row that meets every rule of a table: optional columns are null where no rule asks for them."""
    row = {column.name: _valid(column) if column.required else None for column in table.columns}
    if table.time_column:
        is_unix = table.column(table.time_column).type == "long"
        row[table.time_column] = int(NOON.timestamp()) if is_unix else NOON
    return row | VALID.get(table.name, {})


def broken_by_contract(table):
    """By rule of the contract: what makes the valid row violate it."""
    broken = {}
    for column in table.columns:
        if column.required:
            broken[f"{column.name}_present"] = {column.name: None}
        if column.values is not None:
            is_text = isinstance(column.values[0], str)
            broken[f"{column.name}_known"] = {column.name: "?" if is_text else max(column.values) + 1}
        as_number = {"decimal": Decimal, "double": float}.get(column.type.partition("(")[0], int)
        if column.minimum is not None:
            value = as_number(column.minimum - 1)
            broken[f"{column.name}_at_least_{column.minimum}"] = {column.name: value}
        if column.maximum is not None:
            value = as_number(column.maximum + 1)
            broken[f"{column.name}_at_most_{column.maximum}"] = {column.name: value}
        if column.pattern is not None:
            broken[f"{column.name}_well_formed"] = {column.name: "?"}
    if table.time_column:
        value = valid_row(table)[table.time_column]
        later = value + 86_400 if isinstance(value, int) else value + ONE_DAY
        broken["date_of_milestone"] = {table.time_column: later}
    return broken


def violating(tables):
    """All violating rows of tables, the valid row twice and on another day."""
    rows = {}
    for table in tables:
        valid = valid_row(table)
        broken = {**broken_by_contract(table), **BROKEN.get(table.name, {})}
        elsewhere = valid | {"date": DAY + 3 * ONE_DAY}
        rows[table.name] = [valid, valid, elsewhere, *(valid | change for change in broken.values())]
    return rows


def _valid(column):
    if column.values is not None:
        return column.values[0]
    if column.pattern is not None:
        return next(text for text in TEXTS if re.search(column.pattern, text))
    lowest = max(column.minimum or 0, 0)
    plain = {"string": "x", "binary": b"x", "double": 1.0, "list<int>": BUCKETS, "date": DAY}
    if column.type in plain:
        return plain[column.type]
    if column.type == "timestamptz":
        return NOON
    return Decimal(lowest) if column.type.startswith("decimal") else lowest
