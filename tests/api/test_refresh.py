"""The order in which a server learns of a publication: what the stores hold, then the new state."""

from __future__ import annotations

import threading
from types import SimpleNamespace

from permalake.api import refresh


class NoReader:
    """Reads nothing, and notes when it would have read a new state and swapped to it."""

    def __init__(self, calls, ended) -> None:
        self._calls, self._ended = calls, ended

    def copy_rows(self, may_continue) -> None:
        """Copy nothing."""

    def refresh(self, before) -> bool:
        self._calls.append("a new state is read")
        before()
        self._calls.append("it is served")
        self._ended.set()
        return True

    def snapshot(self):
        return SimpleNamespace(publication=2)


def test_a_state_is_served_once_the_stores_are_known_as_of_it(monkeypatch) -> None:
    monkeypatch.setattr(refresh, "INTERVAL", 0.01)
    ended, calls = threading.Event(), []
    stores = SimpleNamespace(refresh=lambda: calls.append("the stores are asked"))
    refresh.keep_fresh(NoReader(calls, ended), stores, ended)  # type: ignore[arg-type]
    assert calls == ["the stores are asked", "a new state is read", "the stores are asked", "it is served"]
