"""What the bridges hold, in the shapes of Wormhole's former event database: chain → token → asset."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal

from permalake.contracts.rows import Row
from permalake.lake.serving import Scan
from permalake.wormhole.reference import Reference, Token
from permalake.wormhole.rest.edb_answers import LockedAssets, NotionalTvl, NotionalTvlCumulative
from permalake.wormhole.rest.event_database import ALL
from permalake.wormhole.rest.rows import Rows
from permalake.wormhole.rest.scorecards import carried_days, last_day

_CENTS = 2
_Held = dict[tuple[int, str], Row]
"""What is held of each token, by its chain and address."""


def locked(rows: Rows, reference: Reference, *, change: bool) -> NotionalTvl:
    """Return what the bridges hold, chain → token → asset; ``change``: also how the last day changed it.

    Negative amounts, of tokens whose first transfers are not in the lake, are shown as they are.
    """
    last = last_day(rows)
    days = [] if last is None else carried_days(rows, last, 2)
    held = _held(rows, days[-1], days[0]) if days else {}
    now, before = ([held[day] for day in days] + [{}, {}])[:2]
    changed = [_change(row, before.get(token)) for token, row in now.items()] if change and before else []
    return {
        "Last24HoursChange": _assets(changed, reference) if change else {},
        "AllTime": _assets(now.values(), reference),
    }


def locked_daily(rows: Rows, reference: Reference, days: int) -> NotionalTvlCumulative:
    """Return what the bridges held at the end of each of the last days, oldest first."""
    last = last_day(rows)
    newest = [] if last is None else carried_days(rows, last, 1)
    held = _held(rows, newest[0] - timedelta(days), newest[0]) if newest else {}
    return {
        "DailyLocked": {day.isoformat(): _assets(assets.values(), reference) for day, assets in held.items()}
    }


def _held(rows: Rows, first: date, last: date) -> dict[date, _Held]:
    """Return what was held at the ends of the days of a range, oldest first."""
    holdings = rows(
        "SELECT v.date, v.origin_chain, v.origin_address, v.amount, v.notional_usd, "
        "a.symbol, a.name, a.decimals "
        "FROM tvl_daily v LEFT JOIN attested_tokens a ON a.origin_chain = v.origin_chain "
        "AND a.origin_address = v.origin_address AND a.date = v.date "
        "WHERE v.date BETWEEN $first AND $last ORDER BY v.date, v.origin_chain, v.origin_address",
        {"first": first, "last": last},
        tvl_daily=Scan(first, last),
        attested_tokens=Scan(first, last),
    )
    held: dict[date, _Held] = defaultdict(dict)
    for row in holdings:
        token = row["origin_chain"], row["origin_address"]
        held[row["date"]][token] = {**row, "price": _price(row["notional_usd"], row["amount"])}
    return held


def _price(notional: Decimal | None, amount: str | None) -> float | None:
    """Return the price in USD that a value is counted with; None where there is none."""
    units = float(amount or 0)
    return float(notional) / units if units and notional is not None else None


def _change(now: Row, before: Row | None) -> Row:
    """Return how a token's amount and value changed, with its present price.

    Nothing was held of one that was not met before.
    """

    def difference(name: str) -> Decimal | None:
        old = before[name] if before else 0
        return None if now[name] is None or old is None else Decimal(now[name]) - Decimal(old)

    return {**now, **{name: difference(name) for name in ("amount", "notional_usd")}}


def _assets(held: Iterable[Row], reference: Reference) -> LockedAssets:
    assets: LockedAssets = {ALL: {ALL: {"Symbol": ALL, "Name": "all", "Notional": None}}}
    for row in held:
        token = reference.tokens.get((row["origin_chain"], row["origin_address"]))
        amount, notional = (
            None if row[name] is None else float(row[name]) for name in ("amount", "notional_usd")
        )
        by_address = assets.setdefault(
            str(row["origin_chain"]), {ALL: {"Symbol": "all", "Address": ALL, "Notional": None}}
        )
        by_address[row["origin_address"]] = {
            "Symbol": row["symbol"] or (token and token.symbol) or "",
            "Name": row["name"] or (token and token.name) or "",
            "Address": (token and token.native_address) or row["origin_address"],
            "CoinGeckoId": (token and token.coingecko_id) or "",
            "Amount": amount,
            "Notional": notional,
            "TokenPrice": row["price"],
            "TokenDecimals": _decimals(row["decimals"], token),
        }
        for sums in (by_address[ALL], assets[ALL][ALL]):
            if notional is not None:
                sums["Notional"] = (sums["Notional"] or 0.0) + notional
    for by_address in assets.values():
        for asset in by_address.values():
            if asset["Notional"] is not None:
                asset["Notional"] = round(asset["Notional"], _CENTS)
    return assets


def _decimals(attested: int | None, token: Token | None) -> int | None:
    return attested if attested is not None else token.decimals if token else None
