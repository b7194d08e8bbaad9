"""Answers of chains, asked for all chains at once and stored from time to time.

Each chain is asked at its own pace. A node that is down is left alone, as is one that answers no question of
several batches; what it was to be asked remains open for another run.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from permalake.engine.rows import Relation
from permalake.pipeline.relations import dataset
from permalake.wormhole.enrich.questions import Node

SILENT_BATCHES = 3
"""Batches of questions without a single answer, after which a chain is left alone. One question that always
fails leaves the others alone."""
_ROWS_AT_ONCE = 5_000
_SECONDS_AT_ONCE = 60.0
Row = dict[str, Any]


@dataclass(frozen=True)
class AnswerCache:
    """Access to a table of answers: to read days, to add rows, and to note a remark (day None: all)."""

    read: Callable[[date, date], Relation]
    add: Callable[[Relation], int]
    remark: Callable[[str, date | None], None]


@dataclass(frozen=True, slots=True)
class Batch:
    """What a chain answered to some questions.

    Attributes:
        rows: Rows to store.
        answered: How many questions are settled.
        reasons: Why others are not.
    """

    rows: list[Row]
    answered: int
    reasons: Iterable[str] = ()


@dataclass
class Inquiry:
    """The questions to one chain.

    Attributes:
        node: The node that is asked.
        total: Number of questions.
        batches: Asks the next questions whenever the next batch is taken.
        answered: How many are settled so far.
        reasons: Why others are not, counted.
    """

    node: Node
    total: int
    batches: Iterator[Batch]
    answered: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def open(self) -> int:
        """Number of questions that are not settled."""
        return self.total - self.answered

    @property
    def reason(self) -> str | None:
        """The most frequent reason."""
        return self.reasons.most_common(1)[0][0] if self.reasons else None

    def rows(self) -> Iterator[list[Row]]:
        """Ask batch by batch; yield the rows of each."""
        silent = 0
        for batch in self.batches:
            self.answered += batch.answered
            self.reasons.update(batch.reasons)
            yield batch.rows
            silent = 0 if batch.answered else silent + 1
            if self.node.is_down or silent >= SILENT_BATCHES:
                return


def counted(questions: Relation, chain: str) -> dict[int, int]:
    """Return the number of questions to each chain, which a column names."""
    batches = dataset(questions).to_batches(columns=[chain])
    return dict(Counter(number for batch in batches for number in batch[chain].to_pylist()))


def collect(inquiries: Mapping[int, Inquiry], store: Callable[[list[Row]], object]) -> None:
    """Ask all chains; ``store`` takes rows every minute or so, so that a killed process loses a minute."""
    if not inquiries:
        return
    rows: list[Row] = []
    since = time.monotonic()
    with closing(_rows_of(inquiries.values())) as portions:
        try:
            for some in portions:
                rows += some
                if len(rows) >= _ROWS_AT_ONCE or (rows and time.monotonic() - since > _SECONDS_AT_ONCE):
                    store(rows)
                    rows, since = [], time.monotonic()
        finally:  # what was answered before an error counts, also one of the store
            if rows:
                store(rows)


def _rows_of(inquiries: Iterable[Inquiry]) -> Generator[list[Row]]:
    """Yield rows as chains answer, and none each second that none does."""
    answers: queue.SimpleQueue[list[Row]] = queue.SimpleQueue()
    nobody_listens = threading.Event()

    def ask(inquiry: Inquiry) -> None:
        for rows in inquiry.rows():
            answers.put(rows)
            if nobody_listens.is_set():
                return

    every = list(inquiries)
    with ThreadPoolExecutor(len(every)) as pool:
        work = [pool.submit(ask, inquiry) for inquiry in every]
        for future in work:
            future.add_done_callback(lambda _: answers.put([]))
        try:
            while not (all(future.done() for future in work) and answers.empty()):
                try:
                    yield answers.get(timeout=1)
                except queue.Empty:
                    yield []
        finally:
            nobody_listens.set()
        for future in work:
            future.result()
