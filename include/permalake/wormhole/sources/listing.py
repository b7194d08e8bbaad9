"""Walking a service's list that is sorted by time, page by page, towards older documents.

Pages are counted from the newest document, so that what is added meanwhile shifts documents to later pages:
they are met twice, never missed. A service that does not keep to its order, or to its pages, is read whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from permalake.intervals import Span
from permalake.wormhole.sources.document_cache import Document

Fetch = Callable[[int], list[Document]]
"""The documents of a page, newest first; empty beyond the last one."""

TimeOf = Callable[[Document], int | None]
"""A document's time in whole unix seconds."""

_MOST_PAGES = 1_000_000


@dataclass(frozen=True)
class Page:
    """Documents, and down to which second (exclusive) everything has been met; None: unknown."""

    documents: list[Document]
    reached: int | None


def walk(fetch: Fetch, span: Span, time_of: TimeOf, *, seek: bool) -> Iterator[Page]:
    """Yield pages with all documents of a span of seconds, and some around it.

    ``seek``: search for the first of them instead of reading all newer ones.
    """
    start, end = span
    first = _first_page(fetch, end, time_of) if seek else 0
    ordered, before, top = True, None, None
    for number in range(first, _MOST_PAGES):
        # One empty page may be a fault of the moment, and nobody would look beyond it again.
        documents = fetch(number) or fetch(number)
        if not documents or documents == before:
            return
        before = documents
        times = [time for document in documents if (time := time_of(document)) is not None]
        ordered = ordered and len(times) == len(documents) and _falling(times)
        # What was added meanwhile shifts documents of the page before onto this one.
        ordered = ordered and (top is None or times[0] <= top)
        if not ordered and first > 0:
            yield from walk(fetch, span, time_of, seek=False)  # what was sought by order may lie anywhere
            return
        if ordered:
            top = times[0]
        yield Page(documents, times[-1] + 1 if ordered else None)
        if ordered and times[-1] < start:
            return


def _falling(times: list[int]) -> bool:
    return all(older <= newer for newer, older in pairwise(times))


def _first_page(fetch: Fetch, end: int, time_of: TimeOf) -> int:
    """Return a page at or before the first one with a document older than ``end``."""
    newest = fetch(0)

    def newer(documents: list[Document]) -> bool:
        return bool(documents) and all((time_of(document) or 0) >= end for document in documents)

    if not newer(newest):
        return 0
    low, high = 0, 1  # what is found: page low holds newer documents only, page high does not
    while newer(documents := fetch(high)):
        if documents == newest or high > _MOST_PAGES:
            return 0  # it does not turn its pages
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if newer(fetch(middle)) else (low, middle)
    return high
