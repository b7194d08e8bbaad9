"""Chains are asked side by side, and what they answered is stored whatever happens to one of them."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import pytest

from permalake.wormhole.enrich import collector
from permalake.wormhole.enrich.collector import SILENT_BATCHES, Batch, Inquiry, collect


@dataclass
class Node:
    is_down: bool = False


def stored(inquiries):
    rows = []
    collect(inquiries, rows.extend)
    return rows


def answering(chain, batches, node=None):
    """An inquiry whose batches answer (rows, reason) each; three questions a batch."""
    asked = (
        Batch([{"chain": chain, "n": n} for n in rows], len(rows), [why] * (3 - len(rows)))
        for rows, why in batches
    )
    return Inquiry(node or Node(), 3 * len(batches), asked)


def test_every_answer_is_stored_and_what_is_open_is_counted_with_its_reason() -> None:
    one, two = answering(1, [([1, 2], "busy"), ([3], "gone")]), answering(2, [([4, 5, 6], "")])
    rows = stored({1: one, 2: two})
    assert sorted((row["chain"], row["n"]) for row in rows) == [
        (1, 1),
        (1, 2),
        (1, 3),
        (2, 4),
        (2, 5),
        (2, 6),
    ]
    assert (one.open, one.reason) == (3, "gone")
    assert (two.open, two.reason) == (0, None)


def test_a_chain_that_answers_nothing_is_left_alone_after_a_few_batches() -> None:
    silent = answering(1, [([], "timeout")] * (SILENT_BATCHES + 2))
    assert stored({1: silent}) == []
    assert silent.reasons["timeout"] == 3 * SILENT_BATCHES
    spoken = answering(2, [([], "timeout"), ([], "timeout"), ([7], "timeout")] * 2)
    assert len(stored({2: spoken})) == 2, "an answer begins the count anew"


def test_a_node_that_is_down_is_asked_no_further() -> None:
    node = Node()

    def batches():
        yield Batch([{"n": 1}], 1)
        node.is_down = True
        yield Batch([{"n": 2}], 1)
        raise AssertionError("asked although it is down")

    assert stored({1: Inquiry(node, 9, batches())}) == [{"n": 1}, {"n": 2}]


def test_a_fast_chain_does_not_wait_for_a_slow_one(monkeypatch) -> None:
    monkeypatch.setattr(collector, "_ROWS_AT_ONCE", 1)
    rows, fast_is_stored = [], threading.Event()

    def slow():
        assert fast_is_stored.wait(120)
        yield Batch([{"n": 0}], 1)

    def store(portion):
        rows.extend(row["n"] for row in portion)
        if 2 in rows:
            fast_is_stored.set()

    fast = (Batch([{"n": n}], 1) for n in (1, 2))
    collect({1: Inquiry(Node(), 1, slow()), 2: Inquiry(Node(), 2, fast)}, store)
    assert rows == [1, 2, 0]


def test_what_was_answered_before_an_error_is_stored() -> None:
    def failing():
        yield Batch([{"n": 1}], 1)
        raise KeyError("unforeseen")

    rows = []
    with pytest.raises(KeyError, match="unforeseen"):
        collect({1: Inquiry(Node(), 2, failing())}, rows.extend)
    assert rows == [{"n": 1}]


def test_an_error_of_the_store_loses_nothing_and_ends_the_asking(monkeypatch) -> None:
    monkeypatch.setattr(collector, "_ROWS_AT_ONCE", 1)
    asked, rows, errors = [], [], [OSError("no space left")]

    def batches():
        for number in range(500):
            asked.append(number)
            time.sleep(0.01)
            yield Batch([{"n": number}], 1)

    def store(portion):
        if errors:
            raise errors.pop()
        rows.extend(portion)

    with pytest.raises(OSError, match="no space left"):
        collect({1: Inquiry(Node(), 500, batches())}, store)
    assert rows[:1] == [{"n": 0}]
    assert len(asked) < 250
