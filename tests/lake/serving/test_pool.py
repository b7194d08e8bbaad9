"""Connections in turn: the queries of an earlier request go before those of a later one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from permalake.lake.serving.pool import PoolBusyError, QueryPool, QueryTimeoutError


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[QueryPool]:
    pool = QueryPool(str(tmp_path), 1, 1)
    yield pool
    pool.close()


def _ask(pool: QueryPool, deadline: float, name: str, served: list[str]) -> threading.Thread:
    def ask() -> None:
        with pool.connection(deadline):
            served.append(name)

    waiting = pool.waiting
    thread = threading.Thread(target=ask)
    thread.start()
    until = time.monotonic() + 60
    while pool.waiting == waiting and time.monotonic() < until:
        time.sleep(0.001)
    return thread


def test_an_earlier_request_goes_first(pool: QueryPool) -> None:
    now = time.monotonic()
    served: list[str] = []
    with pool.connection(now + 120):
        threads = [
            _ask(pool, now + seconds, name, served)
            for name, seconds in (("later", 130), ("earlier", 110), ("later still", 140), ("as early", 110))
        ]
    for thread in threads:
        thread.join(60)
    assert served == ["earlier", "as early", "later", "later still"]


def test_who_gives_up_leaves_the_order(tmp_path: Path) -> None:
    pool = QueryPool(str(tmp_path), 1, 1, patience=2.0)
    now = time.monotonic()
    served: list[str] = []
    with pool.connection(now + 120):
        with pytest.raises(PoolBusyError), pool.connection(now + 5):
            raise AssertionError("nothing was free")
        threads = [_ask(pool, now + seconds, str(seconds), served) for seconds in (130, 120)]
    for thread in threads:
        thread.join(60)
    pool.close()
    assert served == ["120", "130"]
    assert pool.waiting == 0


def test_nothing_begins_after_its_deadline(pool: QueryPool) -> None:
    with pytest.raises(QueryTimeoutError), pool.connection(time.monotonic()):
        raise AssertionError("a connection was lent")
    with pool.connection(time.monotonic() + 60) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
