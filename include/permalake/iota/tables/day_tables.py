"""Analytics of IOTA days alone, each table one query.

A query reads base tables of the days, sums that ingest landed (:mod:`permalake.iota.tables.day_sums`) and
tables of queries before it, all under their names. The shared part of the language is described in
:mod:`permalake.engine.duckdb_engine`; columns are cast to the table's contract by whoever runs the query.
"""

from __future__ import annotations

from collections.abc import Iterable

from permalake.iota.codec.reasons import MEANINGS
from permalake.iota.cone.source_records import InclusionState
from permalake.iota.contracts.activity import ADDRESS_METRICS, PAYLOADS, TAG_METRICS, TOP
from permalake.iota.contracts.ledger_changes import KINDS, LEDGER_CHANGES, SIDES
from permalake.iota.contracts.metrics import DAILY_ACTIVITY, MS_ACTIVITY
from permalake.iota.tables.transaction_activity import BUCKETS

_INCLUDED, _CONFLICTING = int(InclusionState.INCLUDED), int(InclusionState.CONFLICTING)
_COUNTS = {
    "no_payload": "no_payload_count",
    "tagged_data": "tagged_data_count",
    "transaction": "transaction_payload_count",
    "milestone": "milestone_payload_count",
    "treasury_transaction": "treasury_transaction_count",
}


def analytics_tables(v_byte_cost: int | None = None) -> dict[str, str]:
    """Return the query of each table, in an order in which none reads a later one.

    ``v_byte_cost``: rent per weighted byte in base tokens (TIP-19), where it is known.
    """
    return {
        "date_cache": _DATE_CACHE,
        "hourly_activity": _hourly_activity(),
        "conflicts_daily": _conflicts_daily(),
        "milestone_intervals": _MILESTONE_INTERVALS,
        "top_tags": _ranked(_PER_TAG, TAG_METRICS, "tag", "text"),
        "tag_families": _TAG_FAMILIES,
        "metrics_cache": _METRICS_CACHE,
        "ledger_changes": ledger_changes(v_byte_cost),
        "balance_changes": BALANCE_CHANGES,
        "top_addresses": _ranked(_PER_ADDRESS, ADDRESS_METRICS, "address"),
        "daily_analytics": _DAILY_ANALYTICS,
        "daily_extended": _DAILY_EXTENDED,
        "daily_activity": _daily_activity(),
    }


_DATE_CACHE = """
SELECT date, min(milestone_index) AS start_ms, max(milestone_index) AS end_ms FROM milestones GROUP BY date
"""

_MILESTONE_INTERVALS = """
SELECT date, seconds, count(*) AS milestones FROM (
    SELECT date, timestamp - lag(timestamp) OVER (PARTITION BY date ORDER BY milestone_index) AS seconds
    FROM milestones
) AS one WHERE seconds IS NOT NULL GROUP BY date, seconds
"""

_PER_TAG = """
SELECT date, tag, max(text) AS text, max(family) AS family, sum(messages) AS messages,
    sum(included_transactions) AS included_transactions, sum(transferred_tokens) AS transferred_tokens
FROM tag_sums GROUP BY date, tag
"""

_TAG_FAMILIES = f"""
SELECT date, family, count(*) AS tags, sum(messages) AS messages,
    sum(included_transactions) AS included_transactions, sum(transferred_tokens) AS transferred_tokens
FROM ({_PER_TAG}) AS tag GROUP BY date, family
"""

# By what included transactions created for an address and what they consumed of it.
_PER_ADDRESS = """
SELECT date, address,
    sum(CASE WHEN is_spent = 0 THEN amount END) AS received_tokens,
    sum(CASE WHEN is_spent = 1 THEN amount END) AS sent_tokens,
    count_if(is_spent = 0) AS received_outputs,
    count_if(is_spent = 1) AS sent_outputs
FROM ledger_updates WHERE transaction_id IS NOT NULL GROUP BY date, address
"""

# Tags count whatever the inclusion state of their messages.
_METRICS_CACHE = """
WITH per_address AS (
    SELECT date, address AS value, max(sent_tokens) > 0 AS has_sent, max(recv_tokens) > 0 AS has_received
    FROM address_analytics GROUP BY date, address
)
SELECT date, variant, metric, value, CAST(NULL AS BINARY) AS metric_value FROM (
    SELECT date, 'address' AS variant, 'sent_or_received' AS metric, value FROM per_address
    UNION ALL SELECT date, 'address', 'sent', value FROM per_address WHERE has_sent
    UNION ALL SELECT date, 'address', 'received', value FROM per_address WHERE has_received
    UNION ALL SELECT DISTINCT date, 'index', 'used', tag FROM tag_sums
) AS every
"""

BALANCE_CHANGES = """
SELECT date, address, sum(change) AS change, max(is_active) AS is_active FROM (
    SELECT date, address, recv_tokens - sent_tokens AS change, 1 AS is_active FROM address_analytics
    UNION ALL SELECT date, address, change, 0 FROM balance_corrections
) AS every GROUP BY date, address
"""

_DAILY_ANALYTICS = """
SELECT year(days.date) AS year, days.date,
    count_if(metric = 'sent_or_received') AS total_addresses,
    count_if(metric = 'sent') AS send_addresses,
    count_if(metric = 'received') AS recv_addresses
FROM date_cache AS days LEFT JOIN metrics_cache AS cache ON days.date = cache.date GROUP BY days.date
"""

_DAILY_EXTENDED = f"""
WITH tangle AS (
    SELECT date, sum(message_count) AS message_count,
        sum(transaction_count) AS included_transaction_count, sum(transferred_tokens) AS transferred_tokens
    FROM ms_analytics GROUP BY date
), conflicts AS (
    SELECT date, count(*) AS conflicting_transaction_count FROM messages
    WHERE inclusion_state = {_CONFLICTING} GROUP BY date
), created AS (
    SELECT date, transaction_id, count(*) AS outputs FROM transactions
    WHERE variant = 'output' AND inclusion_state = {_INCLUDED} GROUP BY date, transaction_id
), sizes AS (
    SELECT date, avg(outputs) AS avg_outputs, max(outputs) AS max_outputs FROM created GROUP BY date
), used AS (
    SELECT date, count(*) AS used_tags FROM metrics_cache WHERE metric = 'used' GROUP BY date
)
SELECT tangle.date, message_count, included_transaction_count,
    coalesce(conflicting_transaction_count, 0) AS conflicting_transaction_count,
    transferred_tokens, avg_outputs, coalesce(max_outputs, 0) AS max_outputs,
    coalesce(used_tags, 0) AS used_tags
FROM tangle
LEFT JOIN conflicts ON tangle.date = conflicts.date
LEFT JOIN sizes ON tangle.date = sizes.date
LEFT JOIN used ON tangle.date = used.date
"""


def ledger_changes(v_byte_cost: int | None) -> str:
    """Return the query of ``ledger_changes``: every kind and side on every day."""
    keys = ("date", "kind", "side")
    measures = [column.name for column in LEDGER_CHANGES.columns if column.name not in keys]

    def total(name: str) -> str:
        is_computable = name != "deposit" or v_byte_cost is not None
        return f"coalesce(sum({name}), 0) AS {name}" if is_computable else f"sum({name}) AS {name}"

    return f"""
SELECT every.date, every.kind, every.side, {", ".join(map(total, measures))}
FROM (
    SELECT date, kind, side FROM date_cache
    CROSS JOIN (VALUES {_listed(KINDS)}) AS kinds(kind) CROSS JOIN (VALUES {_listed(SIDES)}) AS sides(side)
) AS every
LEFT JOIN ledger_sums AS moved
    ON every.date = moved.date AND every.kind = moved.kind AND every.side = moved.side
GROUP BY every.date, every.kind, every.side
"""


def _hourly_activity() -> str:
    other = " - ".join(f"{kind}_bytes" for kind in PAYLOADS[1:])

    def of(payload: str) -> str:
        size = f"message_bytes - {other}" if payload == PAYLOADS[0] else f"{payload}_bytes"
        activity_columns = ("confirmed_count", "conflicting_count", "booked_tokens", "moved_tokens")
        moved = activity_columns if payload == "transaction" else ("0", "0", "0", "0")
        values = (_COUNTS[payload], size, *moved)
        named = (f"{value} AS {name}" for value, name in zip(values, sums, strict=True))
        return f"SELECT date, hour, '{payload}' AS payload, {', '.join(named)} FROM figures"

    figures = ("messages", "message_bytes", "included_transactions", "conflicting_transactions")
    sums = (*figures, "transferred_tokens", "moved_tokens")
    return f"""
WITH figures AS (
    SELECT activity.*, booked.transferred_tokens AS booked_tokens,
        floor((timestamp % 86400) / 3600) AS hour
    FROM milestones AS one
    JOIN ms_activity AS activity
        ON one.date = activity.date AND one.milestone_index = activity.milestone_index
    JOIN ms_analytics AS booked
        ON one.date = booked.date AND one.milestone_index = booked.milestone_index
)
SELECT date, hour, payload, {", ".join(f"sum({name}) AS {name}" for name in sums)}
FROM ({" UNION ALL ".join(map(of, PAYLOADS))}) AS stacked
GROUP BY date, hour, payload HAVING sum(messages) > 0
"""


def _conflicts_daily() -> str:
    cases = " ".join(f"WHEN {int(code)} THEN '{text}'" for code, text in MEANINGS.items() if code)
    return f"""
SELECT date, conflict_reason, CASE conflict_reason {cases} ELSE 'unknown' END AS meaning,
    count(*) AS messages
FROM messages WHERE inclusion_state = {_CONFLICTING} GROUP BY date, conflict_reason
"""


def _daily_activity() -> str:
    shared = [c for c in DAILY_ACTIVITY.columns if c.name in MS_ACTIVITY.names and c.name != "date"]

    def total(name: str, kind: str) -> str:
        if kind != "list<int>":
            return f"sum({name}) AS {name}"
        places = (f"coalesce(sum({name}[{at + 1}]), 0)" for at in range(len(BUCKETS)))
        return f"[{', '.join(places)}] AS {name}"

    return f"""
SELECT activity.date, milestones, max_milestone_bytes, booked_tokens,
    {", ".join(column.name for column in shared)}
FROM (
    SELECT date, count(*) AS milestones, max(message_bytes) AS max_milestone_bytes,
        {", ".join(total(column.name, column.type) for column in shared)}
    FROM ms_activity GROUP BY date
) AS activity
JOIN (SELECT date, sum(transferred_tokens) AS booked_tokens FROM ms_analytics GROUP BY date) AS booked
    ON activity.date = booked.date
"""


def _ranked(sums: str, metrics: Iterable[str], key: str, *others: str) -> str:
    """Return the query of the greatest values of each metric with their rank."""
    columns = ", ".join(("date", key, *others))
    stacked = " UNION ALL ".join(
        f"SELECT {columns}, '{metric}' AS metric, {metric} AS value FROM summed" for metric in metrics
    )
    return f"""
WITH summed AS ({sums}), stacked AS ({stacked}), ranked AS (
    SELECT {columns}, metric, value,
        row_number() OVER (PARTITION BY date, metric ORDER BY value DESC, {key}) AS rank
    FROM stacked WHERE value > 0
)
SELECT {columns}, metric, value, rank FROM ranked WHERE rank <= {TOP}
"""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"('{name}')" for name in names)
