"""Days whose pages lie deeper in Wormholescan's list than it serves.

Such a day is put together from what the service does serve: operations by time, the lists of single emitters,
and ``GET /api/v1/vaas/{chain}/{emitter}/{sequence}`` for sequences that are missing in between. The result is
compared with the number of messages that ``GET /api/v1/x-chain-activity/tops`` reports for the day.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

from permalake.intervals import Span
from permalake.net.http import RequestRejectedError, Service
from permalake.wormhole.sources.document_cache import Document, DocumentCache
from permalake.wormhole.sources.vaa_documents import MARGIN_SECONDS, body_time, days_of_document, unix_time

Emitter = tuple[str, str]
"""Chain id and address, as they stand in ids."""

TOO_DEEP = frozenset({400, 413, 422})
"""Statuses that reject a page because so many documents lie before it."""
NOT_THERE = frozenset({400, 404})
"""Statuses that say of a single document, or of a route, that the service does not have it."""

_LARGEST_GAP = 1000
"""Sequences in a row that are requested one by one; an emitter with larger gaps does not count up."""
_MISSES = 3
"""Missing sequences in a row after which no more are expected."""
_KEPT_AT_ONCE = 200
_DAY = timedelta(days=1)


class IncompleteError(Exception):
    """Raised when the service does not serve all VAAs of a day; the message is one line."""


@dataclass
class _Known:
    """Sequences of an emitter with their times (unix seconds).

    ``times``: of VAAs that are landed; ``named``: of operations that came without their VAA.
    """

    times: dict[int, int] = field(default_factory=dict)
    named: dict[int, int] = field(default_factory=dict)


class DeepDays:
    """The VAAs of days that lie too deep in the list.

    ``list_emitter`` lands the list of an emitter as far as the service goes, ``keep`` lands documents.
    """

    def __init__(
        self,
        service: Service,
        landed: DocumentCache,
        list_emitter: Callable[[Emitter], None],
        keep: Callable[[list[Document]], None],
    ) -> None:
        self._service = service
        self._landed = landed
        self._list_emitter = list_emitter
        self._keep = keep
        self._held: list[Document] = []

    def land(self, span: Span, bridges: Iterable[Emitter]) -> None:
        """Land all VAAs of a span (unix seconds).

        Raises:
            IncompleteError: The service lists fewer messages than it reports, or nothing proves that the days
                are complete.
            RequestRejectedError: It rejects a request, and not because it lacks what is asked for.
        """
        for emitter in sorted({*bridges, *self._known(span)}):
            try:
                self._list_emitter(emitter)
            except RequestRejectedError as rejected:
                if rejected.status not in TOO_DEEP:
                    raise
                # Too deep as well; what is missing is requested by its sequence.
        for emitter, messages in sorted(self._known(span).items()):
            self._fill(emitter, messages, span)
            self._flush()
        self._compare(span)

    def _known(self, span: Span) -> dict[Emitter, _Known]:
        """Return what is landed around a span, by emitter."""
        by_emitter: dict[Emitter, _Known] = defaultdict(_Known)
        for document in self._landed.documents(_day(span[0]) - _DAY, _day(span[1] - 1) + _DAY):
            parts = str(document.get("id")).split("/")
            time = _time_of(document)
            if len(parts) == 3 and parts[2].isascii() and parts[2].isdigit() and time is not None:
                messages = by_emitter[parts[0], parts[1]]
                (messages.times if document.get("vaa") else messages.named)[int(parts[2])] = time
        return by_emitter

    def _fill(self, emitter: Emitter, messages: _Known, span: Span) -> None:
        times = messages.times
        named = {
            number
            for number, time in messages.named.items()
            if number not in times and span[0] - MARGIN_SECONDS <= time < span[1] + MARGIN_SECONDS
        }
        for number in sorted(named):
            if (time := self._fetch(emitter, number)) is not None:
                times[number] = time
        inside = {number for number, time in times.items() if span[0] <= time < span[1]}
        if not inside:
            return
        for before, after in pairwise(sorted(times)):
            near = before in inside or after in inside
            if near and after - before <= _LARGEST_GAP:
                for number in range(before + 1, after):
                    if number not in named:
                        self._fetch(emitter, number)
        if max(inside) == max(times):
            self._beyond(emitter, max(inside), 1, span)
        if min(inside) == min(times):
            self._beyond(emitter, min(inside), -1, span)

    def _beyond(self, emitter: Emitter, number: int, step: int, span: Span) -> None:
        """Request sequences beyond the known ones until they leave the span."""
        misses = 0
        while misses < _MISSES and number + step >= 0:
            number += step
            time = self._fetch(emitter, number)
            if time is not None and not span[0] <= time < span[1]:
                return
            misses = misses + 1 if time is None else 0

    def _fetch(self, emitter: Emitter, number: int) -> int | None:
        """Land a VAA; return its time, None when the service does not have it."""
        path = f"/api/v1/vaas/{emitter[0]}/{emitter[1]}/{number}"
        try:
            document = self._service.get(path, _single)
        except RequestRejectedError as rejected:
            if rejected.status not in NOT_THERE:
                raise
            return None
        self._held.append(document)
        if len(self._held) >= _KEPT_AT_ONCE:
            self._flush()
        return _time_of(document)

    def _flush(self) -> None:
        self._keep(self._held)
        self._held = []

    def _compare(self, span: Span) -> None:
        day = _day(span[0])
        while _second(day + _DAY) <= span[1]:
            if span[0] <= _second(day):
                self._compare_day(day)
            day += _DAY

    def _compare_day(self, day: date) -> None:
        of_day = [
            document for document in self._landed.documents(day, day) if days_of_document(document)[1] == day
        ]
        messages = {str(document.get("id")) for document in of_day if document.get("vaa")}
        reported = self._reported(day)
        if reported is None and not any("sourceChain" in document for document in of_day):
            raise IncompleteError(
                f"{day} lies deeper in the list than the service goes, and nothing shows that the "
                f"{len(messages)} known messages are all"
            )
        if reported is not None and len(messages) < reported:
            raise IncompleteError(f"{day} has {reported} messages, of which it serves {len(messages)}")

    def _reported(self, day: date) -> int | None:
        """Return how many messages the service counts on a day; None when it does not say."""
        window = {name: f"{at}T00:00:00Z" for name, at in (("from", day), ("to", day + _DAY))}
        try:
            return self._service.get(
                "/api/v1/x-chain-activity/tops",
                lambda rows: sum(_count(row) for row in rows if str(row["from"])[:10] == f"{day}") or None,
                {"timespan": "1d", **window},
            )
        except RequestRejectedError as rejected:
            if rejected.status not in NOT_THERE:
                raise
            return None


def _count(row: Any) -> int:
    count = row["count"]
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise ValueError("count is no number")
    return count


def _single(answer: Any) -> Document:
    document = answer["data"]
    if not isinstance(document, dict) or not document.get("vaa"):
        raise ValueError("data is no document")
    return document


def _time_of(document: Document) -> int | None:
    source = document.get("sourceChain")
    time = document.get("timestamp") or (source.get("timestamp") if isinstance(source, dict) else None)
    return body_time(document.get("vaa")) or unix_time(time)


def _day(second: int) -> date:
    return datetime.fromtimestamp(second, UTC).date()


def _second(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
