"""Set operations on half-open spans of whole seconds, and ranges of days."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta

Span = tuple[int, int]


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return the same seconds in the fewest spans, in order."""
    result: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return result


def dates(first: date, last: date) -> list[date]:
    """Return the days first..last, inclusive."""
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


def without(span: Span, covered: Iterable[Span]) -> list[Span]:
    """Return the parts of a span that no known span covers, in order."""
    left = []
    start, end = span
    for known_start, known_end in joined(covered):
        if known_start >= end:
            break
        if known_start > start:
            left.append((start, known_start))
        start = max(start, known_end)
    if start < end:
        left.append((start, end))
    return left


def ranges(days: Iterable[date]) -> list[tuple[date, date]]:
    """Return the days as ranges without gaps, both ends inclusive, in order."""
    result: list[tuple[date, date]] = []
    for day in sorted(set(days)):
        if result and day - result[-1][1] == timedelta(days=1):
            result[-1] = (result[-1][0], day)
        else:
            result.append((day, day))
    return result
