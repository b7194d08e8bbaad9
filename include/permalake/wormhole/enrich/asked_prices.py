"""Requests to price services, with or without a quote; ``token_prices`` has only the quotes.

A span of a coin is known once it was asked for after it had ended. One that was asked for while it lasted is
known up to that moment, and is done with for wants before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, delete, insert, select

from permalake.intervals import Span, joined, without
from permalake.lake.database import Database
from permalake.lake.state import price_asks as asks

_AT_ONCE = 500

Asked = tuple[Span, int]
"""A span and when it was asked for, in unix seconds."""


class AskedPrices:
    """The memory of one provider's answers, in the catalog database."""

    def __init__(self, database: Database, provider: str) -> None:
        self._database = database
        self._provider = provider

    def requests(self, coins: Iterable[str]) -> dict[str, list[Asked]]:
        """Return the requests for some coins."""
        with self._database.read() as connection:
            return _read(connection, self._provider, list(coins))

    def remember(self, answered: Mapping[str, Iterable[Span]], asked_at: int) -> None:
        """Record that these spans were answered; spans that meet become one."""

        def work(connection: Connection) -> None:
            before = _read(connection, self._provider, list(answered))
            for coin, spans in answered.items():
                old = before.get(coin, [])
                new = _merged([*old, *((span, asked_at) for span in spans)])
                here = (asks.c.provider == self._provider, asks.c.coin == coin)
                connection.execute(delete(asks).where(*here))
                rows = [
                    {"provider": self._provider, "coin": coin, "start": a, "end": b, "asked_at": at}
                    for (a, b), at in new
                ]
                if rows:
                    connection.execute(insert(asks), rows)

        self._database.make_sure(work)


def _read(connection: Connection, provider: str, coins: list[str]) -> dict[str, list[Asked]]:
    spans: dict[str, list[Asked]] = {}
    for at in range(0, len(coins), _AT_ONCE):
        some = coins[at : at + _AT_ONCE]
        query = select(asks).where(asks.c.provider == provider, asks.c.coin.in_(some))
        for row in connection.execute(query):
            spans.setdefault(row.coin, []).append(((row.start, row.end), row.asked_at))
    return spans


def _merged(asked: list[Asked]) -> list[Asked]:
    """Known spans joined, and what else was asked for, the latest time of it."""
    answered = joined(part for span, at in asked if (part := (span[0], min(span[1], at)))[0] < part[1])
    latest = max(at for _, at in asked)
    result: list[Asked] = [(span, latest) for span in answered]
    open_spans: dict[Span, int] = {}
    for span, at in asked:
        for rest in without(span, answered):
            open_spans[rest] = max(at, open_spans.get(rest, at))
    return result + sorted(open_spans.items())
