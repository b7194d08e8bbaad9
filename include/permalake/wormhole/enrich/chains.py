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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby, islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from permalake.contracts.sql_text import literal, same
from permalake.engine.rows import Relation
from permalake.pipeline.relations import QueryRunner, count, rows_where, table
from permalake.wormhole.enrich.collector import AnswerCache, Batch, Inquiry, Row, collect, counted
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
    NEWEST_FIRST,
    OWNER,
    QUESTION,
    QUESTIONS,
    SCHEMA,
    SENDER,
    TOKEN,
    WRAPPED,
    WRAPPED_NFT,
    among,
)
from permalake.wormhole.tables.enriched_tables import ANSWERS, INPUTS
from permalake.wormhole.tables.reported_details import REPORTED

FOR_GOOD = date(1969, 12, 31)
"""The date of facts; corrected ones lie before it."""
_AT_ONCE = 500
_FACTS, _OF_DAYS, _UNSETTLED, _UNTOLD = "stored_facts", "stored_of_days", "unsettled", "untold"
_COUNTS = pa.schema(
    [("date", pa.date32()), ("question", pa.string()), ("chain", pa.int32()), ("count", pa.int64())]
)
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

    def answers(self, runner: QueryRunner, questions: Relation, first: date, last: date) -> Relation:
        """Return rows of ``chain_answers`` for these questions (chain, question, subject, date, tx_id, at).

        What the source's API reported of the days ``first`` to ``last``, in which all questions lie, is
        added: it tells of chains that are asked nothing, too. Unknown answers are requested. A chain without
        RPC, and the fault of one, are remarks, never errors.
        """
        if count(questions) and not self._stored:
            self._fetch(runner, questions, first, last)
        inputs = self._inputs(questions, first, last)
        return runner.results({ANSWERS: _NEWEST}, {ANSWERS: INPUTS[ANSWERS]}, inputs)[ANSWERS]

    def _inputs(self, questions: Relation, first: date, last: date) -> dict[str, Relation]:
        facts, of_days = self._cache.read(date.min, FOR_GOOD), self._cache.read(first, last)
        return {QUESTIONS: questions, _FACTS: facts, _OF_DAYS: of_days}

    def _fetch(self, runner: QueryRunner, questions: Relation, first: date, last: date) -> None:
        """Ask for what is not stored, and log what is asked again."""
        inputs = self._inputs(questions, first, last)
        self._fact_day = _next_fact_day(runner, inputs[_FACTS]) if self._recheck else FOR_GOOD
        mine = among("chain", self._rpcs)
        rows = runner.results(
            {
                _UNSETTLED: _unsettled(again=self._again, recheck=self._recheck),
                "mine": f"SELECT * FROM {_UNSETTLED} WHERE {mine} ORDER BY chain, {_ORDER}",
                _UNTOLD: _untold(f"NOT {mine}"),
            },
            {"mine": SCHEMA, _UNTOLD: _COUNTS},
            inputs,
        )
        self._ask(rows["mine"])
        self._remark_untold(table(rows[_UNTOLD]).to_pylist())

    def _remark_untold(self, rows: Sequence[Row]) -> None:
        """Note a remark on each day with questions to chains that have no RPC."""
        for day in sorted({row["date"] for row in rows}):
            of_day = [row for row in rows if row["date"] == day]
            numbers = ", ".join(map(str, sorted({row["chain"] for row in of_day})))
            counts = Counter[str]()
            for row in of_day:
                counts[row["question"]] += row["count"]
            unknown = ", ".join(f"{word} {counts[kind]}" for kind, word in _UNKNOWN.items() if kind in counts)
            self._cache.remark(f"chain details: no chains.ID.rpc_url of {numbers}; unknown: {unknown}", day)

    # -- What is asked -------------------------------------------------------------------------------

    def _ask(self, unsettled: Relation) -> None:
        """Ask all chains, store their answers, and remark what nobody answered."""
        inquiries = {
            chain: Inquiry(self._rpcs[chain], total, self._batches(chain, unsettled))
            for chain, total in counted(unsettled, "chain").items()
        }
        collect(inquiries, self._keep)
        for chain, inquiry in sorted(inquiries.items()):
            if left := inquiry.open:
                self._cache.remark(
                    f"chain details: {inquiry.reason}; {left} question{'s' * (left > 1)} to chain {chain} "
                    "without an answer, fill in later with --only enrich",
                    None,
                )

    def _batches(self, chain: int, unsettled: Relation) -> Iterator[Batch]:
        """Ask a chain the next questions of one kind, again and again."""
        rows = rows_where(unsettled, pc.field("chain") == chain)
        for kind, of_kind in groupby(rows, key=lambda row: row["question"]):
            for some in _chunks(of_kind):
                firsts = [of_question[0] for of_question in some]
                asked = [Question(kind, row["subject"], row["tx_id"], row["at"]) for row in firsts]
                answers = self._rpcs[chain].answers(kind, asked)
                answered = sum(
                    len(of_question)
                    for of_question, answer in zip(some, answers, strict=True)
                    if not answer.fault
                )
                faults = [answer.fault for answer in answers if answer.fault]
                yield Batch(self._rows(chain, some, answers), answered, faults)

    def _rows(
        self, chain: int, asked: Sequence[list[Row]], answers: Iterable[ChainAnswer]
    ) -> list[dict[str, Any]]:
        moment = int(self._clock() * 1_000_000)
        rows = []
        for of_question, answer in zip(asked, answers, strict=True):
            if answer.fault:
                continue
            kind = of_question[0]["question"]
            is_fact = answer.reason is None and not answer.provisional and kind != SENDER
            values = {name: vars(answer)[name] for name in _STORED}
            values |= {"chain": chain, "question": kind, "subject": of_question[0]["subject"]}
            values |= {"told": int(answer.reason is None), "asked_at": moment}
            days = [self._fact_day] if is_fact else [row["date"] for row in of_question]
            rows += [{**values, "date": day} for day in days]
        return rows

    def _keep(self, rows: list[Row]) -> None:
        facts = [row for row in rows if row["date"] <= FOR_GOOD]
        of_days = [row for row in rows if row["date"] > FOR_GOOD]
        for some in (facts, of_days):  # separately, as stored rows of all days in between are compared
            if some:
                self._cache.add(pa.Table.from_pylist(some, schema=_ROWS))


def _next_fact_day(runner: QueryRunner, facts: Relation) -> date:
    """Return the day before all stored facts, where corrected ones belong."""
    query = f"SELECT min(date) AS date FROM {_FACTS}"
    rows = runner.results({"first": query}, {"first": pa.schema([("date", pa.date32())])}, {_FACTS: facts})
    [first] = table(rows["first"])["date"].to_pylist()
    return first - timedelta(days=1) if first else FOR_GOOD


def _unsettled(*, again: bool, recheck: bool) -> str:
    """Return the query of the questions whose answer, or lack of one, is not stored."""
    lacks = "false" if again else f"NOT ({_OUTDATED})"
    return f"""
SELECT asked.* FROM {QUESTIONS} AS asked
ANTI JOIN (SELECT * FROM {_FACTS} WHERE told = 1 AND {_WHOLE if recheck else "true"}) AS fact
    ON {same("asked", "fact", *QUESTION)}
ANTI JOIN (SELECT * FROM {_OF_DAYS} WHERE told = 1 OR {lacks}) AS answer
    ON {same("asked", "answer", *QUESTION, "date")}
"""


def _untold(without_rpc: str) -> str:
    """Return the query of the numbers of unsettled questions to chains without RPC."""
    reported = f"SELECT * FROM {_OF_DAYS} WHERE question = '{REPORTED}'"
    return f"""
SELECT left_over.date, left_over.question, left_over.chain, count(*) AS count FROM {_UNSETTLED} AS left_over
ANTI JOIN ({reported}) AS reported
    ON left_over.question = '{SENDER}' AND {same("left_over", "reported", "subject", "date")}
WHERE {without_rpc} GROUP BY ALL
"""


_ORDER = 'question, tx_id, "at", subject, date'
_VERSION = TOO_NEW.removesuffix(str(NEWEST_VERSION))
_OUTDATED = f"""question = '{SENDER}' AND coalesce(reason = {literal(WITHHELD)}
    OR (starts_with(reason, {literal(_VERSION)}) AND reason <> {literal(TOO_NEW)}), false)"""
"""Whether a lack of a sender is due to the version of Permalake that asked."""
_WHOLE = f"""(address IS NOT NULL AND (question NOT IN ('{WRAPPED}', '{WRAPPED_NFT}', '{TOKEN}')
    OR (symbol IS NOT NULL AND name IS NOT NULL
        AND (decimals IS NOT NULL OR question = '{WRAPPED_NFT}'))))"""
"""Whether an answer has all that its question asks for."""
_NEWEST = f"""
WITH stored AS (
    SELECT * FROM {_FACTS} WHERE told = 1 UNION ALL SELECT * FROM {_OF_DAYS} WHERE told = 1
), newest AS (
    SELECT stored.* FROM stored SEMI JOIN {QUESTIONS} AS asked ON {same("stored", "asked", *QUESTION)}
    QUALIFY row_number() OVER (
        PARTITION BY chain, question, subject, CASE WHEN question = '{SENDER}' THEN date END
        ORDER BY {NEWEST_FIRST}
    ) = 1
)
SELECT * FROM newest UNION ALL SELECT * FROM stored WHERE question = '{REPORTED}'
"""
"""One answer per question, of a sender one per day: the newest; and all that was reported."""


def _chunks(rows: Iterable[Row]) -> Iterator[list[list[Row]]]:
    """Yield questions, some hundred at a time: the rows of each, one per day that asks it."""
    questions = (list(of_question) for _, of_question in groupby(rows, key=lambda row: row["subject"]))
    while some := list(islice(questions, _AT_ONCE)):
        yield some
