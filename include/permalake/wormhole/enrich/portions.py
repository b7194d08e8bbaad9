"""Rows of answers in portions that are worth a commit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

_ROWS_AT_ONCE = 5_000
_SECONDS_AT_ONCE = 60.0


def portions(rounds: Iterator[list[dict[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
    """Yield rows every minute or so and at the end: a process killed in between loses a minute."""
    rows: list[dict[str, Any]] = []
    since = time.monotonic()
    for some in rounds:
        rows += some
        if len(rows) >= _ROWS_AT_ONCE or time.monotonic() - since > _SECONDS_AT_ONCE:
            yield rows
            rows, since = [], time.monotonic()
    if rows:
        yield rows
