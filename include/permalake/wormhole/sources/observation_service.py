"""Observations from Wormholescan: its list, and the observations of single messages.

``GET /api/v1/observations`` lists them by the time of indexing, newest first (``page`` from 0, ``pageSize``),
``…/{chain}/{emitter}/{sequence}`` has those of one message; both answer a bare array. The list comes first: a
page holds the observations of some fifty messages. A message of which it has fewer guardians than signed the
VAA is then requested by itself. A run sends as many requests as the settings allow; the next one continues
there. A day does not wait for observations: it is built with those that are landed. (Routes of
wormhole-foundation/wormhole-explorer, ``api/routes/wormscan/observations``.)
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any

from permalake.config import Settings
from permalake.config.networks import WormholeSettings
from permalake.intervals import Span
from permalake.net.http import RequestRejectedError, Service, UnavailableError
from permalake.wormhole.codec.vaa import GENESIS_TIME
from permalake.wormhole.sources.document_cache import Document, DocumentCache
from permalake.wormhole.sources.listing import walk
from permalake.wormhole.sources.misses import Misses
from permalake.wormhole.sources.observation_files import FIELDS, NAME
from permalake.wormhole.sources.vaa_documents import unix_time
from permalake.wormhole.sources.wormholescan import base

_ROUTE = "/api/v1/observations"
_NOTE = "not-observed.json"
_ABSENT = "no-observations.json"
"""Note of when the service answered that it has no such route; it is asked again after a day."""
_DAY_SECONDS = 86_400
_SIZES = (1000, 100, 50)
# A message has a page of them; a service that does not know ``page`` would answer without end.
_MOST_PAGES = 20
# Fewer messages than this are asked for one by one.
_WORTH_THE_LIST = 20
# Guardians sign once a block is final, which takes some chains hours.
_REACH = timedelta(hours=6)
_LAG_SECONDS = 15 * 60
_KEPT_AT_ONCE = 20_000
_AT_ONCE, _ASKED_AT_ONCE = 4, 64
_NEWEST_PAGES = 20

Signers = Mapping[str, int]
"""Number of signatures of the VAA of each message, by ``chain/emitter/sequence``."""


@dataclass
class Fetched:
    """Messages that a run did not come to, by day, and why the service was left alone if it was."""

    left: dict[date, int] = field(default_factory=dict)
    fault: str | None = None


def landing(settings: Settings, section: WormholeSettings) -> DocumentCache:
    """Return the cache of the observations of this source."""
    return DocumentCache(settings, NAME, base(section))


def fetch(
    settings: Settings,
    section: WormholeSettings,
    days: Iterable[tuple[date, Signers]],
    *,
    force: bool = False,
    clock: Callable[[], float] = time.time,
) -> Fetched:
    """Land observations of the messages of some days; request what is landed already only with ``force``."""
    done = Fetched()
    absent = landing(settings, section).read(_ABSENT)
    if absent is not None and not force and clock() < absent + _DAY_SECONDS:
        return done
    with Service(NAME, base(section), section.rate_per_second) as service:
        client = _ObservationClient(service, section.observation_requests, clock)
        for day, signers in days:
            landed = landing(settings, section)
            if done.fault is None:
                try:
                    client.list_day(landed, day, signers, force)
                    client.ask(landed, day, signers, force)
                except UnavailableError as error:
                    done.fault = str(error)
            if done.fault is not None or client.is_spent:
                done.left[day] = len(client.due(landed, day, signers, force=False))
    return done


def newest(
    section: WormholeSettings,
    since: int,
    is_new: Callable[[Document], bool],
    clock: Callable[[], float] = time.time,
) -> list[Document]:
    """Return new observations from a time on (unix seconds), at most those of the list's newest pages.

    Nothing is landed.

    Raises:
        UnavailableError: The service does not answer.
        RequestRejectedError: It has no such list.
    """
    with Service(NAME, base(section), section.rate_per_second) as service:
        client = _ObservationClient(service, section.observation_requests, clock)
        return client.newest((since, int(clock())), is_new)


class _SpentRequestsError(Exception):
    """Raised when the run may send no more requests."""


class _ObservationClient:
    def __init__(self, service: Service, requests: int, clock: Callable[[], float]) -> None:
        self._service = service
        self._left = requests
        # So that a run comes to single messages however long the list is.
        self._kept_for_singles = requests // 4
        self._clock = clock
        self._sizes = list(_SIZES)
        self._lists = True
        self._serves = True

    @property
    def is_spent(self) -> bool:
        """Whether this run may send no more requests."""
        return self._left <= 0

    def due(self, landed: DocumentCache, day: date, signers: Signers, *, force: bool) -> list[str]:
        """Return the messages worth a request: those of which fewer guardians are landed than signed."""
        seen = _guardians(landed, day)
        misses = Misses(landed, _NOTE)
        now = self._clock()
        return [
            message
            for message, needed in signers.items()
            if len(seen.get(message, ())) < needed and (force or misses.is_due(day, message, now))
        ]

    def newest(self, span: Span, is_new: Callable[[Document], bool]) -> list[Document]:
        """Return the new documents of the list's newest pages."""
        documents: list[Document] = []
        try:
            for page in islice(walk(self._page, span, time_of, seek=False), _NEWEST_PAGES):
                documents += [document for document in page.documents if is_new(document)]
        except _SpentRequestsError:
            pass
        except RequestRejectedError:
            if not documents:
                raise  # not even the first page
        return documents

    def list_day(self, landed: DocumentCache, day: date, signers: Signers, force: bool) -> None:
        """Land what the list has of a day, as far as it goes."""
        begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
        if begin < GENESIS_TIME or not self._lists:
            return
        if len(self.due(landed, day, signers, force=force)) <= _WORTH_THE_LIST:
            return
        span = (int(begin.timestamp()), int((begin + timedelta(1) + _REACH).timestamp()))
        for start, end in [span] if force else landed.missing(NAME, span):
            sealed = (start, min(end, int(self._clock()) - _LAG_SECONDS))
            try:
                self._list(landed, (start, end), sealed)
            except _SpentRequestsError:
                return
            except RequestRejectedError as rejected:
                # Too deep, or a service without observations, which is asked for no single ones then.
                self._lists = False
                self._serves = rejected.status != 404
                if not self._serves:
                    landed.write(_ABSENT, self._clock())
                return

    def _list(self, landed: DocumentCache, span: Span, sealed: Span) -> None:
        held: list[Document] = []
        reached: int | None = None
        try:
            for page in walk(self._page, span, time_of, seek=True):
                held += page.documents
                reached = page.reached
                if len(held) >= _KEPT_AT_ONCE:
                    _keep(landed, held)
                    held.clear()
            reached = span[0]
        finally:
            _keep(landed, held)
            if reached is not None:
                landed.cover(NAME, (max(reached, sealed[0]), sealed[1]))

    def ask(self, landed: DocumentCache, day: date, signers: Signers, force: bool) -> None:
        """Land the observations of single messages, as far as the run's requests go."""
        if not self._serves or self.is_spent:
            return
        asked = self.due(landed, day, signers, force=force)[: self._left]
        self._left -= len(asked)
        messages, misses = iter(asked), Misses(landed, _NOTE)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            while some := list(islice(messages, _ASKED_AT_ONCE)):
                answers = list(zip(some, pool.map(self._observations_of, some), strict=True))
                landed.add(NAME, [(day, day, document) for _, documents in answers for document in documents])
                for message, documents in answers:
                    if _guardians_of(documents) < signers[message]:
                        misses.add(day, message, self._clock())
                misses.save()

    def _observations_of(self, message: str) -> list[Document]:
        documents: list[Document] = []
        try:
            for number in range(_MOST_PAGES):
                page = self._get(f"/{message}", number, _SIZES[-1])
                documents += page
                if len(page) < _SIZES[-1]:
                    break
        except RequestRejectedError as rejected:
            if rejected.status not in {400, 404}:
                raise UnavailableError(f"{NAME}: {rejected}") from None
        return documents

    def _page(self, number: int) -> list[Document]:
        while True:
            if self._left <= self._kept_for_singles:
                raise _SpentRequestsError
            self._left -= 1
            try:
                return self._get("", number, self._sizes[0])
            except RequestRejectedError as rejected:
                # A page size that it does not take shows on the first page; it is the same for all.
                if rejected.status not in {400, 422} or number or len(self._sizes) == 1:
                    raise
                del self._sizes[0]

    def _get(self, below: str, number: int, size: int) -> list[Document]:
        query = {"page": str(number), "pageSize": str(size), "sortOrder": "DESC"}
        return self._service.get(f"{_ROUTE}{below}", _trimmed, query)


def _trimmed(answer: Any) -> list[Document]:
    """Return the fields of the documents that are read, as they came."""
    if answer is None:
        return []
    if not isinstance(answer, list) or not all(isinstance(document, dict) for document in answer):
        raise ValueError("no list of documents")
    return [
        {name: document[name] for name in FIELDS if document.get(name) is not None} for document in answer
    ]


def _keep(landed: DocumentCache, documents: Iterable[Document]) -> None:
    """Store documents of a list under the days on which they were indexed."""
    timed = ((time_of(document), document) for document in documents)
    dated = (
        (datetime.fromtimestamp(second, UTC).date(), document)
        for second, document in timed
        if second is not None
    )
    landed.add(NAME, ((day, day, document) for day, document in dated))


def _guardians_of(documents: Iterable[Document]) -> int:
    return len({_guardian(document) for document in documents})


def _guardian(document: Document) -> str:
    return str(document.get("guardianAddr")).lower().removeprefix("0x")


def _guardians(landed: DocumentCache, day: date) -> dict[str, set[str]]:
    """Return the guardians of each message that are landed around a day."""
    guardians: dict[str, set[str]] = defaultdict(set)
    for document in landed.documents(day, day + timedelta(1)):
        chain, emitter, sequence = (str(document.get(name)) for name in FIELDS[:3])
        guardians[f"{chain}/{emitter.lower()}/{sequence}"].add(_guardian(document))
    return guardians


def time_of(document: Document) -> int | None:
    """Return when an observation was indexed, in whole unix seconds."""
    return unix_time(document.get("indexedAt"))
