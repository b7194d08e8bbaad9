"""Wormholescan's figures over the published days; "now" is the end of the last published real day.

Synthetic days count only where nothing else is published.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from permalake.contracts.rows import Row
from permalake.lake.serving import Scan
from permalake.web.ranges import newest_real
from permalake.web.synthetic import is_synthetic
from permalake.wormhole.reference import Reference
from permalake.wormhole.rest.rows import Rows, exact_sum, plain_decimal, utc_text
from permalake.wormhole.rest.vaa_documents import native_token
from permalake.wormhole.rest.wormholescan_answers import (
    ChainCount,
    ChainPair,
    ChainShare,
    MessagesOfTime,
    Scorecards,
    SendingChain,
    TopAsset,
)

_PYTH = 26
_TOP = 10
# DuckDB has no decimal wider than 38 digits: dollars and their fractions are summed apart.
_SUMS = {
    "notional_usd": "coalesce(sum(trunc(notional_usd)), 0) AS whole, "
    "coalesce(sum(notional_usd - trunc(notional_usd)), 0) AS fraction",
    "transfers": "CAST(coalesce(sum(transfers), 0) AS BIGINT) AS whole, 0 AS fraction",
}

SPANS: dict[str, int | None] = {"7d": 7, "15d": 15, "30d": 30, "90d": 90, "1y": 365, "all-time": None}
"""Days of a time span; None: all."""
SAMPLES: dict[tuple[str, str], tuple[int, timedelta]] = {
    ("1d", "1h"): (1, timedelta(hours=1)),
    ("1w", "1d"): (7, timedelta(days=1)),
    ("1mo", "1d"): (30, timedelta(days=1)),
}
"""Days and steps of ``timeSpan`` and ``sampleRate``."""


def last_day(rows: Rows) -> date | None:
    """Return the last published day that is real, else the last synthetic one; None for an empty lake."""
    dates = rows("SELECT DISTINCT date FROM messages_daily", {}, messages_daily=Scan())
    return newest_real({row["date"] for row in dates})


def carried_days(rows: Rows, last: date, count: int) -> list[date]:
    """Return the newest days up to ``last`` with the value locked, newest first: it comes after its day."""
    dates = rows(
        "SELECT DISTINCT date FROM tvl_daily WHERE date <= $last ORDER BY date DESC LIMIT $count",
        {"last": last, "count": count},
        tvl_daily=Scan(None, last),
    )
    return [row["date"] for row in dates]


def first_day(last: date, span: str) -> date:
    """Return the first day of a time span that ends with ``last``."""
    days = SPANS[span]
    return date.min if days is None else last - timedelta(days - 1)


def last_transactions(rows: Rows, span: str, rate: str) -> list[MessagesOfTime]:
    """Return ``[{time, count}]``, newest first: messages without Pyth's, a step each."""
    days, step = SAMPLES[span, rate]
    last = last_day(rows)
    if last is None:
        return []
    end = datetime.combine(last + timedelta(1), datetime.min.time(), UTC)
    unit = "hour" if step < timedelta(days=1) else "day"
    counted = rows(
        f"SELECT date_trunc('{unit}', timestamp) AS time, count(*) AS messages "  # noqa: S608
        "FROM message_publication WHERE timestamp >= $start AND timestamp < $end "
        "AND emitter_chain <> $pyth GROUP BY 1",
        {"start": end - timedelta(days), "end": end, "pyth": _PYTH},
        message_publication=Scan(last - timedelta(days - 1), last),
    )
    counts = {row["time"]: row["messages"] for row in counted}
    times = [end - step * number for number in range(1, timedelta(days) // step + 1)]
    return [{"time": utc_text(time), "count": counts.get(time, 0)} for time in times]


def scorecards(rows: Rows) -> Scorecards:
    """Return the figures of ``/api/v1/scorecards`` as text; zeros for an empty lake.

    ``valued`` and ``of``: how many transfers ``total_volume`` covers, and how many there are.
    ``tvl``: of the newest day that has it.
    ``is_synthetic``: there only where no real day is published, and all figures are made up.
    """
    last = last_day(rows) or date.min
    messages = rows(
        "SELECT coalesce(sum(verified), 0) AS every, "
        "coalesce(sum(verified) FILTER (emitter_chain <> $pyth), 0) AS total, "
        "coalesce(sum(verified) FILTER (emitter_chain <> $pyth AND date = $last), 0) AS day "
        "FROM messages_daily WHERE date <= $last",
        {"pyth": _PYTH, "last": last},
        messages_daily=Scan(None, last),
    )[0]
    [covered] = rows(
        "SELECT count(notional_usd) AS valued, count(*) AS all_of_them FROM token_transfer_details "
        "WHERE date <= $last",
        {"last": last},
        token_transfer_details=Scan(None, last),
    )

    def volume(days: int | None) -> str:
        """Return the value of the transfers of the last days; of all without a number."""
        first = date.min if days is None or last == date.min else last - timedelta(days - 1)
        return plain_decimal(_sum(rows, "notional_transferred_daily", first, last))

    [carried] = carried_days(rows, last, 1) or [last]
    figures: Scorecards = {
        "24h_messages": str(messages["day"]),
        "total_messages": str(messages["every"]),
        "total_tx_count": str(messages["total"]),
        "tvl": plain_decimal(_sum(rows, "tvl_daily", carried, carried)),
        "total_volume": volume(None),
        "24h_volume": volume(1),
        "7d_volume": volume(7),
        "30d_volume": volume(30),
        "valued": covered["valued"],
        "of": covered["all_of_them"],
    }
    if is_synthetic(last):
        figures["is_synthetic"] = True
    return figures


def _sum(rows: Rows, table: str, first: date, last: date) -> Decimal:
    sums = rows(
        f"SELECT {_SUMS['notional_usd']} FROM {table} WHERE date >= $first AND date <= $last",  # noqa: S608
        {"first": first, "last": last},
        **{table: Scan(first, last)},
    )
    return _total(sums[0])


def _total(row: Row) -> Decimal:
    return exact_sum((Decimal(row["whole"]), Decimal(row["fraction"])))


def chain_activity(rows: Rows, span: str, by: Literal["notional", "tx"]) -> list[SendingChain]:
    """Return what each chain sent, in USD or in transfers, with shares and destinations, largest first."""
    last = last_day(rows)
    if last is None:
        return []
    value = "transfers" if by == "tx" else "notional_usd"
    by_source: dict[int, dict[int, Decimal]] = defaultdict(dict)
    for (source, target), volume, _ in _grouped(rows, last, span, ("emitter_chain", "target_chain"), value):
        by_source[source][target] = volume
    sent = {chain: exact_sum(targets.values()) for chain, targets in by_source.items()}
    whole = exact_sum(sent.values())
    return [
        {**share, "destinations": _shares(by_source[share["chain"]], sent[share["chain"]])}
        for share in _shares(sent, whole)
    ]


def _shares(volumes: dict[int, Decimal], whole: Decimal) -> list[ChainShare]:
    ordered = sorted(volumes.items(), key=lambda pair: (-pair[1], pair[0]))
    return [
        {
            "chain": chain,
            "volume": plain_decimal(volume),
            "percentage": float(round(volume * 100 / whole, 4)) if whole else 0.0,
        }
        for chain, volume in ordered
    ]


def top_assets(rows: Rows, span: str, reference: Reference) -> list[TopAsset]:
    """Return the tokens with the highest value sent, by sending chain and token."""
    keys = ("emitter_chain", "origin_chain", "origin_address")
    groups = _largest(rows, span, keys, "notional_usd")
    return [
        {
            "emitterChain": key[0],
            "symbol": symbol or "",
            "tokenChain": key[1],
            "tokenAddress": native_token(reference, key[1], key[2]) or key[2],
            "volume": plain_decimal(volume),
        }
        for key, volume, symbol in groups
    ]


def top_chain_pairs(rows: Rows, span: str) -> list[ChainPair]:
    """Return the pairs of chains with the most transfers."""
    return [
        {"emitterChain": key[0], "destinationChain": key[1], "numberOfTransfers": int(count)}
        for key, count, _ in _largest(rows, span, ("emitter_chain", "target_chain"), "transfers")
    ]


_Group = tuple[tuple[Any, ...], Decimal, str | None]
"""A key, the sum of its rows, and a symbol that stands in one of them."""


def _largest(rows: Rows, span: str, columns: Sequence[str], value: str) -> list[_Group]:
    last = last_day(rows)
    return [] if last is None else _grouped(rows, last, span, columns, value)[:_TOP]


def _grouped(rows: Rows, last: date, span: str, columns: Sequence[str], value: str) -> list[_Group]:
    """Return the sums by key, largest first."""
    keys, first = ", ".join(columns), first_day(last, span)
    grouped = rows(
        f"SELECT {keys}, max(symbol) AS symbol, {_SUMS[value]} FROM notional_transferred_daily "  # noqa: S608
        f"WHERE date >= $first AND date <= $last AND {value} IS NOT NULL GROUP BY {keys}",
        {"first": first, "last": last},
        notional_transferred_daily=Scan(first, last),
    )
    groups = [(tuple(row[name] for name in columns), _total(row), row["symbol"]) for row in grouped]
    return sorted(groups, key=lambda group: (-group[1], group[0]))


def message_counts(rows: Rows) -> list[ChainCount]:
    """Return the published VAAs of every chain, up to the last day."""
    last = last_day(rows) or date.min
    return [
        {"chainId": row["emitter_chain"], "count": row["messages"]}
        for row in rows(
            "SELECT emitter_chain, CAST(sum(verified) AS BIGINT) AS messages FROM messages_daily "
            "WHERE date <= $last GROUP BY emitter_chain HAVING sum(verified) > 0 ORDER BY emitter_chain",
            {"last": last},
            messages_daily=Scan(None, last),
        )
    ]
