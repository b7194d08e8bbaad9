"""Custody from the RPCs of the tokens' own chains, stored in ``token_custody``.

A balance of a finalized block is final, so it is asked for once. What a node did not answer is stored as
unknown with its reason, and asked for again. The newest days come first: a node that is no archive has
forgotten all days before the first one that it cannot tell.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from itertools import groupby, islice
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from permalake.wormhole.contracts.custody_tables import KNOWN, NONE, TOKEN_CUSTODY, UNKNOWN
from permalake.wormhole.enrich.chains import AnswerCache
from permalake.wormhole.enrich.evm_custody import CustodyAnswer
from permalake.wormhole.enrich.portions import portions
from permalake.wormhole.enrich.questions import ChainRpc

_AT_ONCE = 500
_DOWN_AFTER = 3
_TOKEN = ("date", "origin_chain", "origin_address")
_ROWS = pa.schema([field.with_nullable(True) for field in TOKEN_CUSTODY.arrow])


@runtime_checkable
class CustodyRpc(Protocol):
    """The RPC of a chain that tells what a contract held at a block of the past."""

    @property
    def is_down(self) -> bool:
        """Whether the node is left alone at present."""
        ...

    def custody(self, day: date, tokens: Sequence[str]) -> list[CustodyAnswer]:
        """Return what the token bridge held of every token at the day's end, in order."""
        ...


class _ChainTokens:
    """What is asked of one chain, some tokens of a day at a time."""

    def __init__(self, rpc: CustodyRpc, asked: DataFrame, total: int) -> None:
        self._rpc = rpc
        rows = asked.orderBy(F.col("date").desc(), "origin_address").toLocalIterator()
        self._chunks = _chunks(rows)
        self._silent = 0
        self._day: date | None = None
        self.left = total
        self.why: Counter[str] = Counter()
        self.is_over = False

    def answers(self, is_late: bool) -> list[tuple[Row, CustodyAnswer]]:
        """Ask for the next tokens; when it is late, for those of a day that has been begun."""
        some = next(self._chunks, [])
        self.is_over = not some or (is_late and self._day not in (None, some[0]["date"]))
        if self.is_over:
            return []
        self._day = some[0]["date"]
        told = self._rpc.custody(self._day, [row["origin_address"] for row in some])
        unknown = [answer.unknown for answer in told if answer.unknown]
        self.left -= len(told) - len(unknown)
        self.why.update(unknown)
        self._silent = self._silent + 1 if len(unknown) == len(told) else 0
        self.is_over = self._rpc.is_down or self._silent >= _DOWN_AFTER
        return list(zip(some, told, strict=True))


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

    def ask(self, spark: SparkSession, held: DataFrame, days: tuple[date, date]) -> None:
        """Store the balances of the tokens of these days (rows of ``tvl_daily``) that are not known yet.

        A chain without an RPC is not asked, and the fault of one is a remark, never an error.
        """
        if not self._rpcs:
            return
        inside = F.col("date").between(*map(F.lit, days))
        final = self._cache.read(spark).where(inside & (F.col("status") != UNKNOWN)).select(*_TOKEN)
        mine = held.where(inside & F.col("origin_chain").isin(*self._rpcs)).select(*_TOKEN)
        asked = mine.join(final, [*_TOKEN], "left_anti").localCheckpoint()
        counted = {
            row["origin_chain"]: row["count"] for row in asked.groupBy("origin_chain").count().collect()
        }
        if not counted:
            return
        chains = {
            number: _ChainTokens(self._rpcs[number], asked.where(F.col("origin_chain") == number), total)
            for number, total in counted.items()
        }
        with ThreadPoolExecutor(len(chains)) as pool:
            for rows in portions(self._told(chains, pool)):
                self._cache.add(spark.createDataFrame(pa.Table.from_pylist(rows, schema=_ROWS)))
        for number, chain in sorted(chains.items()):
            self._remark_open(number, chain)

    def _told(
        self, chains: Mapping[int, _ChainTokens], pool: ThreadPoolExecutor
    ) -> Iterator[list[dict[str, Any]]]:
        since = time.monotonic()
        while going := [chain for chain in chains.values() if not chain.is_over]:
            is_late = self._seconds is not None and time.monotonic() - since > self._seconds
            rounds = [pool.submit(chain.answers, is_late) for chain in going]
            moment = int(self._clock() * 1_000_000)
            yield [_row(row, answer, moment) for told in rounds for row, answer in told.result()]

    def _remark_open(self, number: int, chain: _ChainTokens) -> None:
        if chain.left:
            why = chain.why.most_common(1)[0][0] if chain.why else "no time left"
            self._cache.remark(
                f"custody: {why}; balances on chain {number} that are not known: {chain.left}, "
                "fill in later with --only enrich",
                None,
            )


def _chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    for _, of_day in groupby(rows, key=lambda row: row["date"]):
        while some := list(islice(of_day, _AT_ONCE)):
            yield some


def _row(asked: Row, answer: CustodyAnswer, moment: int) -> dict[str, Any]:
    known = answer.balance is not None
    return {
        **asked.asDict(),
        "status": KNOWN if known else NONE if answer.none else UNKNOWN,
        "block": answer.block,
        "decimals": answer.decimals,
        "balance": str(answer.balance) if known else None,
        "amount": answer.amount,
        "outstanding": answer.outstanding,
        "reason": answer.none or answer.unknown,
        "asked_at": moment,
    }
