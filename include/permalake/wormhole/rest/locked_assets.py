"""What the bridges hold, in the shapes of Wormhole's former event database: chain → token → asset."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

from permalake.contracts.rows import Row
from permalake.lake.serving import Scan
from permalake.wormhole.reference import Reference, Token
from permalake.wormhole.rest.edb_answers import LockedAssets, NotionalTvl, NotionalTvlCumulative
from permalake.wormhole.rest.event_database import ALL
from permalake.wormhole.rest.rows import Rows
from permalake.wormhole.rest.scorecards import last_day

_CENTS = 2


def locked(rows: Rows, reference: Reference, *, change: bool) -> NotionalTvl:
    """Return what the bridges hold, chain → token → asset; ``change``: also the last day's difference.

    Negative amounts, of tokens whose first transfers are not in the lake, are shown as they are.
    """
    last = last_day(rows)
    if last is None:
        return {"Last24HoursChange": {}, "AllTime": {}}
    now, before = _held(rows, last), _held(rows, last - timedelta(1)) if change else {}
    changed = {
        token: {
            **row,
            "amount": _number(row["amount"]) - _number(before.get(token, {}).get("amount")),
            "notional_usd": _number(row["notional_usd"]) - _number(before.get(token, {}).get("notional_usd")),
        }
        for token, row in now.items()
    }
    return {
        "Last24HoursChange": _assets(changed.values(), reference) if change else {},
        "AllTime": _assets(now.values(), reference),
    }


def locked_daily(rows: Rows, reference: Reference, days: int) -> NotionalTvlCumulative:
    """Return what the bridges held at the end of each of the last days, oldest first."""
    last = last_day(rows)
    if last is None:
        return {"DailyLocked": {}}
    dates = (last - timedelta(days - number) for number in range(days + 1))
    held = {day.isoformat(): _assets(_held(rows, day).values(), reference) for day in dates}
    return {"DailyLocked": held}


def _held(rows: Rows, day: date) -> dict[tuple[int, str], Row]:
    holdings = rows(
        "SELECT v.origin_chain, v.origin_address, v.amount, v.notional_usd, a.symbol, a.name, a.decimals "
        "FROM tvl_daily v LEFT JOIN attested_tokens a ON a.origin_chain = v.origin_chain "
        "AND a.origin_address = v.origin_address AND a.date = v.date WHERE v.date = $day",
        {"day": day},
        tvl_daily=Scan(day, day),
        attested_tokens=Scan(day, day),
    )
    return {(row["origin_chain"], row["origin_address"]): row for row in holdings}


def _assets(held: Iterable[Row], reference: Reference) -> LockedAssets:
    assets: LockedAssets = {ALL: {ALL: {"Symbol": ALL, "Name": "all", "Notional": 0.0}}}
    for row in held:
        token = reference.tokens.get((row["origin_chain"], row["origin_address"]))
        amount, notional = _number(row["amount"]), _number(row["notional_usd"])
        by_address = assets.setdefault(
            str(row["origin_chain"]), {ALL: {"Symbol": "all", "Address": ALL, "Notional": 0.0}}
        )
        by_address[row["origin_address"]] = {
            "Symbol": row["symbol"] or (token and token.symbol) or "",
            "Name": row["name"] or (token and token.name) or "",
            "Address": (token and token.native_address) or row["origin_address"],
            "CoinGeckoId": (token and token.coingecko_id) or "",
            "Amount": amount,
            "Notional": notional,
            "TokenPrice": notional / amount if amount else 0.0,
            "TokenDecimals": _decimals(row["decimals"], token),
        }
        for sums in (by_address[ALL], assets[ALL][ALL]):
            sums["Notional"] += notional
    for by_address in assets.values():
        for asset in by_address.values():
            asset["Notional"] = round(asset["Notional"], _CENTS)
    return assets


def _decimals(attested: int | None, token: Token | None) -> int | None:
    return attested if attested is not None else token.decimals if token else None


def _number(value: Any) -> float:
    return float(value or 0)
