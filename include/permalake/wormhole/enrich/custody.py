"""Custody from the RPCs of the tokens' own chains, stored in ``token_custody``.

A balance of a finalized block is final, so it is asked for once. What a node did not answer is stored as
unknown with its reason, and asked for again. The newest days come first: a node that is no archive has
forgotten all days before the first one that it cannot tell.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby, islice
from typing import Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from permalake.contracts.sql_text import same
from permalake.engine.rows import Relation
from permalake.pipeline.relations import QueryRunner, rows_where
from permalake.wormhole.contracts.custody_tables import (
    BALANCE_KNOWN,
    BALANCE_UNKNOWN,
    NO_BALANCE,
    TOKEN_CUSTODY,
)
from permalake.wormhole.enrich.collector import AnswerCache, Batch, Inquiry, Row, collect, counted
from permalake.wormhole.enrich.evm_custody import CustodyAnswer
from permalake.wormhole.enrich.questions import ChainRpc, Node
from permalake.wormhole.tables.chain_questions import among

_AT_ONCE = 500
_HELD, _KEPT, _ASKED = "held_tokens", "kept_custody", "asked_tokens"
_TOKEN = pa.schema([("date", pa.date32()), ("origin_chain", pa.int32()), ("origin_address", pa.string())])


@runtime_checkable
class CustodyRpc(Node, Protocol):
    """The RPC of a chain that tells what a contract held at a block of the past."""

    def custody(self, day: date, tokens: Sequence[str]) -> list[CustodyAnswer]:
        """Return what the token bridge held of every token at the day's end, in order."""
        ...


class Custody:
    """The RPCs of the configured chains behind ``token_custody``.

    ``seconds``: after that long no further day is begun; the newest one is always asked for.
    """

    def __init__(
        self,
        rpcs: Mapping[int, ChainRpc],
        cache: AnswerCache,
        *,
        seconds: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._rpcs = {number: rpc for number, rpc in rpcs.items() if isinstance(rpc, CustodyRpc)}
        self._cache = cache
        self._seconds = seconds
        self._clock = clock

    def ask(self, runner: QueryRunner, held: Relation, days: tuple[date, date]) -> None:
        """Store the balances of the tokens of these days (rows of ``tvl_daily``) that are not known yet.

        A chain without an RPC is not asked, and the fault of one is a remark, never an error.
        """
        if not self._rpcs:
            return
        first, last = days
        query = f"""
SELECT held.date, held.origin_chain, held.origin_address FROM {_HELD} AS held
ANTI JOIN (SELECT * FROM {_KEPT} WHERE status <> '{BALANCE_UNKNOWN}')
    AS final ON {same("held", "final", *_TOKEN.names)}
WHERE held.date BETWEEN DATE '{first}' AND DATE '{last}' AND {among("held.origin_chain", self._rpcs)}
ORDER BY held.date DESC, held.origin_address
"""
        given = {_HELD: held, _KEPT: self._cache.read(*days)}
        asked = runner.results({_ASKED: query}, {_ASKED: _TOKEN}, given)[_ASKED]
        until = time.monotonic() + (math.inf if self._seconds is None else self._seconds)
        inquiries = {
            number: Inquiry(self._rpcs[number], total, self._batches(number, asked, until))
            for number, total in counted(asked, "origin_chain").items()
        }
        collect(inquiries, lambda rows: self._cache.add(pa.Table.from_pylist(rows, TOKEN_CUSTODY.nullable)))
        for number, inquiry in sorted(inquiries.items()):
            self._remark_open(number, inquiry)

    def _batches(self, chain: int, asked: Relation, until: float) -> Iterator[Batch]:
        """Ask a chain of the next tokens of a day; after ``until`` no further day is begun."""
        rows = rows_where(asked, pc.field("origin_chain") == chain)
        begun: date | None = None
        for some in _chunks(rows):
            day = some[0]["date"]
            if begun not in (None, day) and time.monotonic() > until:
                return
            begun = day
            answers = self._rpcs[chain].custody(day, [row["origin_address"] for row in some])
            moment = int(self._clock() * 1_000_000)
            unknown = [answer.unknown for answer in answers if answer.unknown]
            balances = [_row(row, answer, moment) for row, answer in zip(some, answers, strict=True)]
            yield Batch(balances, len(answers) - len(unknown), unknown)

    def _remark_open(self, number: int, inquiry: Inquiry) -> None:
        if inquiry.open:
            self._cache.remark(
                f"custody: {inquiry.reason or 'no time left'}; balances on chain {number} that are not "
                f"known: {inquiry.open}, fill in later with --only enrich",
                None,
            )


def _chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    for _, of_day in groupby(rows, key=lambda row: row["date"]):
        while some := list(islice(of_day, _AT_ONCE)):
            yield some


def _row(asked: Row, answer: CustodyAnswer, moment: int) -> Row:
    has_balance = answer.balance is not None
    return {
        **asked,
        "status": BALANCE_KNOWN if has_balance else NO_BALANCE if answer.none else BALANCE_UNKNOWN,
        "block": answer.block,
        "decimals": answer.decimals,
        "balance": str(answer.balance) if has_balance else None,
        "amount": answer.amount,
        "outstanding": answer.outstanding,
        "reason": answer.none or answer.unknown,
        "asked_at": moment,
    }
