"""A guardian's REST API: single signed VAAs, for the gaps that a source leaves in an emitter's sequences.

``GET /v1/signed_vaa/{chain}/{emitter}/{sequence}`` answers ``{"vaaBytes": base64}``, or 404 for what it does
not have. Every answer is kept: a VAA for good, "not found" until it is worth another try (after a day, then
after twice as long each time).
"""

from __future__ import annotations

import base64
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from typing import Any

from permalake.config import Settings
from permalake.config.networks import WormholeSettings
from permalake.net.http import RequestRejectedError, Service, UnavailableError
from permalake.wormhole.sources.document_cache import Document, DocumentCache, NoteNews
from permalake.wormhole.sources.misses import Misses
from permalake.wormhole.sources.vaa_documents import days_of_document

NAME = "guardian"
MOST_ASKS = 1000
"""Requests of one run; what is left over waits for the next."""

_AT_ONCE = 4
_KEPT_AT_ONCE = 64
_GAPS_IN_FULL = 20
_NOTE = "not-found.json"


@dataclass(frozen=True)
class Gap:
    """Missing sequences ``first..last`` (inclusive) of an emitter (hex), noticed on ``day``."""

    day: date
    chain: int
    emitter: str
    first: int
    last: int

    def __str__(self) -> str:
        until = f"..{self.last}" if self.last > self.first else ""
        return f"{self.chain}/{self.emitter}/{self.first}{until} missing"

    def sequences(self) -> Iterator[tuple[date, str]]:
        """Day and identity of each."""
        for sequence in range(self.first, self.last + 1):
            yield self.day, f"{self.chain}/{self.emitter}/{sequence}"


@dataclass
class Filled:
    """The result of filling gaps: days of VAAs that are new here, and why asking ended early if it did."""

    news: Counter[date] = field(default_factory=Counter)
    fault: str | None = None


def landing(
    settings: Settings, section: WormholeSettings, note_news: NoteNews = lambda _: None
) -> DocumentCache:
    """Return the folder in which the guardian's answers are kept."""
    return DocumentCache(settings, NAME, section.guardian_url or "", note_news)


def fill(
    settings: Settings,
    section: WormholeSettings,
    gaps: Iterable[Gap],
    *,
    note_news: NoteNews = lambda _: None,
    force: bool = False,
    clock: Callable[[], float] = time.time,
) -> Filled:
    """Request the missing sequences, the shortest gaps first, and store the answers.

    ``note_news``: as of :class:`DocumentCache`.

    A guardian that is down is no error: the gaps stay.
    """
    landed = landing(settings, section, note_news)
    misses = Misses(landed, _NOTE)
    due = [
        (day, identity)
        for gap in sorted(
            gaps, key=lambda gap: (gap.last - gap.first, gap.day, gap.chain, gap.emitter, gap.first)
        )
        for day, identity in gap.sequences()
        if force or misses.is_due(day, identity, clock())
    ]
    done = Filled()
    left = iter(due[:MOST_ASKS])
    with (
        Service(NAME, section.guardian_url or "", section.rate_per_second) as service,
        ThreadPoolExecutor(_AT_ONCE) as pool,
    ):
        while done.fault is None and (some := list(islice(left, _KEPT_AT_ONCE))):
            answers = list(pool.map(lambda request: _ask(service, request[1]), some))
            _keep(landed, misses, zip(some, answers, strict=True), done, clock())
    return done


def missing(gaps: Iterable[Gap]) -> dict[date, list[str]]:
    """Lines on what is missing by day, the shortest gaps of a day in full."""
    by_day: dict[date, list[Gap]] = defaultdict(list)
    for gap in sorted(gaps, key=lambda gap: (gap.chain, gap.emitter, gap.first)):
        by_day[gap.day].append(gap)
    lines = {}
    for day, of_day in sorted(by_day.items()):
        lines[day] = [str(gap) for gap in of_day[:_GAPS_IN_FULL]]
        if rest := of_day[_GAPS_IN_FULL:]:
            lines[day].append(f"and {sum(gap.last - gap.first + 1 for gap in rest)} sequences more")
    return lines


def _ask(service: Service, identity: str) -> Document | str | None:
    """Return the document; None when the guardian does not have it; the fault when it does not answer."""
    try:
        raw = service.get(f"/v1/signed_vaa/{identity}", _vaa_of)
    except UnavailableError as error:
        return str(error)
    except RequestRejectedError as refused:
        return None if refused.status in {400, 404} else f"{NAME}: {refused}"
    return {"id": identity, "vaa": base64.b64encode(raw).decode()}


def _vaa_of(answer: Any) -> bytes:
    return base64.b64decode(answer["vaaBytes"], validate=True)


def _keep(
    landed: DocumentCache,
    misses: Misses,
    answers: Iterable[tuple[tuple[date, str], Document | str | None]],
    done: Filled,
    now: float,
) -> None:
    documents = []
    for (day, identity), answer in answers:
        if isinstance(answer, str):
            done.fault = done.fault or answer
        elif answer is None:
            misses.add(day, identity, now)
        else:
            documents.append((*days_of_document(answer), answer))
    done.news.update(landed.add("vaas", documents))
    misses.save()
