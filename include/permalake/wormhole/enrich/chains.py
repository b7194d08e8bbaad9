"""Chain details from RPCs, each requested once and stored in ``chain_answers``.

Facts that a finalized block proves (owners, wrapped assets, tokens) are stored for good, under a day before
all others. Everything else, a reason for having none included, is stored for the day that needed it: a token
may be attested the next day. A fault is not stored: the next run asks again.

``--only enrich`` asks again for what was stored as "none" of its days, ``--only enrich --force`` also for
facts stored for good with a part missing. A better answer then lies one day before the stored one, as stored
rows never change, and the newest counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby, islice
from types import TracebackType
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from permalake.wormhole.enrich.collector import Batch, Inquiry, collect
from permalake.wormhole.enrich.questions import (
    NEWEST_VERSION,
    TOO_NEW,
    WITHHELD,
    ChainAnswer,
    ChainRpc,
    Question,
)
from permalake.wormhole.tables.chain_questions import (
    NATIVE,
    OWNER,
    QUESTION,
    SENDER,
    TOKEN,
    WRAPPED,
    WRAPPED_NFT,
)
from permalake.wormhole.tables.reported_details import REPORTED

FOR_GOOD = date(1969, 12, 31)
"""The date of facts; corrected ones lie before it."""
_AT_ONCE = 500
_STORED = ("address", "symbol", "name", "decimals", "reason")
_UNKNOWN = {
    SENDER: "senders",
    OWNER: "owners of accounts",
    WRAPPED: "resulting tokens",
    WRAPPED_NFT: "resulting NFTs",
    TOKEN: "tokens",
    NATIVE: "names of tokens",
}
_ROWS = pa.schema(
    [
        ("chain", pa.int32()),
        ("question", pa.string()),
        ("subject", pa.string()),
        ("told", pa.int32()),
        ("address", pa.string()),
        ("symbol", pa.string()),
        ("name", pa.string()),
        ("decimals", pa.int32()),
        ("reason", pa.string()),
        ("asked_at", pa.timestamp("us", tz="UTC")),
        ("date", pa.date32()),
    ]
)


@dataclass(frozen=True)
class AnswerCache:
    """Access to a table of answers: how to read it, to add rows, and to note a remark (day None: all)."""

    read: Callable[[SparkSession], DataFrame]
    add: Callable[[DataFrame], int]
    remark: Callable[[str, date | None], None]


class Chains:
    """The RPCs of the configured chains behind the lake's cache.

    With ``again`` questions stored as "none" are asked again, with ``recheck`` also those stored for good
    with a part missing. With ``stored`` no chain is asked.
    """

    def __init__(
        self,
        rpcs: Mapping[int, ChainRpc],
        cache: AnswerCache,
        *,
        again: bool = False,
        recheck: bool = False,
        stored: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._rpcs = rpcs
        self._cache = cache
        self._again = again or recheck
        self._recheck = recheck
        self._stored = stored
        self._clock = clock
        self._fact_day = FOR_GOOD

    def answers(self, spark: SparkSession, questions: DataFrame) -> DataFrame:
        """Return rows of ``chain_answers`` for these questions (chain, question, subject, date, tx_id, at).

        What the source's API reported of their days is added. Unknown answers are requested. A chain without
        RPC, and the fault of one, are remarks, never errors.
        """
        asked = questions.localCheckpoint()
        days = asked.agg(F.min("date").alias("first"), F.max("date").alias("last")).first()
        if days is None or days["first"] is None:
            return self._cache.read(spark).limit(0)
        inside = F.col("date").between(F.lit(days["first"]), F.lit(days["last"]))
        near = (F.col("date") <= F.lit(FOR_GOOD)) | inside
        self._fact_day = self._next_fact_day(spark) if self._recheck else FOR_GOOD
        if not self._stored:
            self._fetch(spark, asked, near)
        stored = self._cache.read(spark).where(near & (F.col("told") == 1))
        mine = _newest(stored.join(asked.select(*QUESTION).distinct(), list(QUESTION), "left_semi"))
        return mine.unionByName(stored.where(F.col("question") == REPORTED))

    def _fetch(self, spark: SparkSession, asked: DataFrame, near: Column) -> None:
        """Ask for what is not stored, and log what is asked again."""
        unsettled = self._unsettled(asked, self._cache.read(spark).where(near)).localCheckpoint()
        counted = {
            (row["chain"], row["with_rpc"]): row["count"]
            for row in unsettled.groupBy("chain", self._has_rpc().alias("with_rpc")).count().collect()
        }
        self._ask(spark, unsettled, {chain: count for (chain, mine), count in counted.items() if mine})
        if not all(mine for _, mine in counted):
            self._remark_untold(unsettled.where(~self._has_rpc()))

    def close(self) -> None:
        """Close all connections."""
        for rpc in self._rpcs.values():
            rpc.close()

    def __enter__(self) -> Chains:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- What is known -------------------------------------------------------------------------------

    def _has_rpc(self) -> Column:
        return F.col("chain").isin(list(self._rpcs))

    def _unsettled(self, asked: DataFrame, kept: DataFrame) -> DataFrame:
        """Return the questions whose answer, or lack of one, is not stored."""
        is_fact = F.col("date") <= F.lit(FOR_GOOD)
        for_good = kept.where(is_fact & (F.col("told") == 1))
        if self._recheck:
            for_good = for_good.where(_is_whole())
        kept = kept.where(~is_fact)
        of_day = kept.where((F.col("told") == 1) | (F.lit(not self._again) & ~_is_outdated()))
        return asked.join(for_good.select(*QUESTION), list(QUESTION), "left_anti").join(
            of_day.select(*QUESTION, "date"), [*QUESTION, "date"], "left_anti"
        )

    def _next_fact_day(self, spark: SparkSession) -> date:
        """Return the day before all stored facts, where corrected ones belong."""
        facts = self._cache.read(spark).where(F.col("date") <= F.lit(FOR_GOOD))
        first = facts.agg(F.min("date").alias("first")).first()
        return first["first"] - timedelta(days=1) if first and first["first"] else FOR_GOOD

    def _remark_untold(self, untold: DataFrame) -> None:
        """Note a remark on each day with questions to chains that have no RPC."""
        reported = self._cache.read(untold.sparkSession).where(F.col("question") == REPORTED)
        senders = reported.select(F.lit(SENDER).alias("question"), "subject", "date")
        left = untold.join(senders, ["question", "subject", "date"], "left_anti")
        rows = (
            left.groupBy("date", "question")
            .agg(F.count("*").alias("count"), F.collect_set("chain").alias("chains"))
            .collect()
        )
        for day in sorted({row["date"] for row in rows}):
            of_day = [row for row in rows if row["date"] == day]
            chains = sorted({chain for row in of_day for chain in row["chains"]})
            counts = {row["question"]: row["count"] for row in of_day}
            unknown = ", ".join(f"{word} {counts[kind]}" for kind, word in _UNKNOWN.items() if kind in counts)
            numbers = ", ".join(map(str, chains))
            self._cache.remark(f"chain details: no chains.ID.rpc_url of {numbers}; unknown: {unknown}", day)

    # -- What is asked -------------------------------------------------------------------------------

    def _ask(self, spark: SparkSession, unsettled: DataFrame, counts: Mapping[int, int]) -> None:
        """Ask all chains, store their answers, and remark what nobody answered."""
        inquiries = {
            chain: Inquiry(self._rpcs[chain], total, self._batches(chain, unsettled))
            for chain, total in counts.items()
        }
        collect(inquiries, lambda rows: self._keep(spark, rows))
        for chain, inquiry in sorted(inquiries.items()):
            if left := inquiry.open:
                self._cache.remark(
                    f"chain details: {inquiry.reason}; {left} question{'s' * (left > 1)} to chain {chain} "
                    "without an answer, fill in later with --only enrich",
                    None,
                )

    def _batches(self, chain: int, unsettled: DataFrame) -> Iterator[Batch]:
        """Ask a chain the next questions of one kind, again and again."""
        order = ("question", "tx_id", "at", "subject", "date")
        rows = unsettled.where(F.col("chain") == chain).orderBy(*order).toLocalIterator()
        for kind, of_kind in groupby(rows, key=lambda row: row["question"]):
            for some in _chunks(of_kind):
                asked = [Question(kind, own[0]["subject"], own[0]["tx_id"], own[0]["at"]) for own in some]
                answers = self._rpcs[chain].answers(kind, asked)
                answered = sum(
                    len(own) for own, answer in zip(some, answers, strict=True) if not answer.fault
                )
                faults = [answer.fault for answer in answers if answer.fault]
                yield Batch(self._rows(chain, some, answers), answered, faults)

    def _rows(
        self, chain: int, asked: Sequence[list[Row]], answers: Iterable[ChainAnswer]
    ) -> list[dict[str, Any]]:
        moment = int(self._clock() * 1_000_000)
        rows = []
        for own, answer in zip(asked, answers, strict=True):
            if answer.fault:
                continue
            is_fact = answer.reason is None and not answer.provisional and own[0]["question"] != SENDER
            values = {name: vars(answer)[name] for name in _STORED}
            values |= {"chain": chain, "question": own[0]["question"], "subject": own[0]["subject"]}
            values |= {"told": int(answer.reason is None), "asked_at": moment}
            days = [self._fact_day] if is_fact else [row["date"] for row in own]
            rows += [{**values, "date": day} for day in days]
        return rows

    def _keep(self, spark: SparkSession, rows: list[dict[str, Any]]) -> None:
        facts = [row for row in rows if row["date"] <= FOR_GOOD]
        of_days = [row for row in rows if row["date"] > FOR_GOOD]
        for some in (facts, of_days):  # separately, as stored rows of all days in between are compared
            if some:
                self._cache.add(spark.createDataFrame(pa.Table.from_pylist(some, schema=_ROWS)))


def _is_outdated() -> Column:
    """Whether a lack of a sender is due to the version of Permalake that asked."""
    reason = F.col("reason")
    is_version = reason.startswith(TOO_NEW.removesuffix(str(NEWEST_VERSION))) & (reason != TOO_NEW)
    return (F.col("question") == SENDER) & F.coalesce(is_version | (reason == WITHHELD), F.lit(False))


def _is_whole() -> Column:
    """Whether an answer has all that its question asks for."""
    texts = F.col("symbol").isNotNull() & F.col("name").isNotNull()
    described = F.col("question").isin(WRAPPED, WRAPPED_NFT, TOKEN)
    counted = F.col("decimals").isNotNull() | (F.col("question") == WRAPPED_NFT)
    return F.col("address").isNotNull() & (~described | (texts & counted))


def _newest(answers: DataFrame) -> DataFrame:
    """Keep one answer per question, of a sender one per day: the newest."""
    day = F.when(F.col("question") == SENDER, F.col("date"))
    newest_first = Window.partitionBy(*QUESTION, day).orderBy(F.col("asked_at").desc(), "date")
    ranked = answers.withColumn("rank", F.row_number().over(newest_first))
    return ranked.where("rank = 1").drop("rank")


def _chunks(rows: Iterable[Row]) -> Iterator[list[list[Row]]]:
    """Yield questions, some hundred at a time: the rows of each, one per day that asks it."""
    questions = (list(own) for _, own in groupby(rows, key=lambda row: row["subject"]))
    while some := list(islice(questions, _AT_ONCE)):
        yield some
