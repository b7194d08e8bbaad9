"""Source ``wormholescan``: VAAs and operations from the explorer's REST API.

``GET /api/v1/vaas`` lists all VAAs by the time in their body and takes ``page`` (from 0), ``pageSize`` (at
most 1000) and ``sortOrder``, but no times: the page where a day begins is looked for. ``GET
/api/v1/operations`` takes ``from`` and ``to`` (RFC 3339, both inclusive, the time of the transaction) and
pages of at most 100. Both skip what lies before a page, so deep pages are slow or rejected. Operations are
then listed in shorter windows of time; for VAAs see :mod:`permalake.wormhole.sources.deep_days`. A day that
cannot be listed completely fails. (Routes of wormhole-foundation/wormhole-explorer, ``api/routes/wormscan``.)

One process asks, with one request under way: the rate limit, not the network, says how long a day takes. What
was fetched is landed (:mod:`permalake.wormhole.sources.document_cache`) and read from there by Spark.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any
from urllib.parse import quote

from permalake.config import Settings
from permalake.config.networks import WormholeSettings
from permalake.errors import PermalakeError
from permalake.intervals import Span, joined
from permalake.net.http import RequestRejectedError, Service, UnavailableError
from permalake.wormhole.codec.vaa import GENESIS_TIME
from permalake.wormhole.reference import load_reference
from permalake.wormhole.sources.deep_days import NOT_THERE, TOO_DEEP, DeepDays, Emitter, IncompleteError
from permalake.wormhole.sources.document_cache import Document, DocumentCache, NoteNews
from permalake.wormhole.sources.listing import Page, walk
from permalake.wormhole.sources.vaa_documents import (
    MARGIN_SECONDS,
    days_of_document,
    time_of_operation,
    time_of_vaa,
    trimmed_operation,
    trimmed_vaa,
    unix_time,
)

NAME = "wormholescan"
URL = "https://api.wormholescan.io"
LOOK_BACK = 3
"""Days before the fetched ones that are listed once more: the explorer may have indexed a VAA late."""

# What is younger than this may not have been indexed yet.
_LAG_SECONDS = 15 * 60
_KEPT = "what it did answer is kept, run it again"
_PAGES_AT_ONCE = 20
_DEEP_PAGES = 100
_NEWEST_PAGES = 200
_SIZES = {"vaas": (1000, 100, 50), "operations": (100, 50)}
_DAY = 86_400

News = Counter[date]
"""Number of new documents by day."""


def landing(
    settings: Settings, section: WormholeSettings, note_news: NoteNews = lambda _: None
) -> DocumentCache:
    """Return the cache of the documents of this source."""
    return DocumentCache(settings, NAME, base(section), note_news)


def fetch(
    settings: Settings,
    section: WormholeSettings,
    start: date,
    end: date,
    *,
    note_news: NoteNews = lambda _: None,
    force: bool = False,
    clock: Callable[[], float] = time.time,
) -> News:
    """Land start..end (inclusive); request nothing that is landed already, unless ``force``.

    ``note_news``: as of :class:`DocumentCache`.

    Raises:
        PermalakeError: The service does not answer, or does not list a day completely; what it did answer is
            kept.
    """
    with _opened(settings, section, clock, note_news) as client:
        return client.fetch(start, end, force)


def fetch_operations(
    settings: Settings,
    section: WormholeSettings,
    start: date,
    end: date,
    note_news: NoteNews = lambda _: None,
) -> News:
    """Land the operations of start..end (inclusive) anew: what they say of the target chain comes later.

    Raises:
        PermalakeError: As :func:`fetch` does.
    """
    with _opened(settings, section, time.time, note_news) as client:
        return client.fetch_operations(start, end)


def newest(
    settings: Settings,
    section: WormholeSettings,
    since: int,
    is_new: Callable[[Document], bool],
    clock: Callable[[], float] = time.time,
) -> list[Document]:
    """Return the new VAA documents from a time on (unix seconds), and some older ones; nothing is landed.

    Raises:
        PermalakeError: The service does not answer.
    """
    with _opened(settings, section, clock) as client:
        return client.newest(since, is_new)


@contextmanager
def _opened(
    settings: Settings,
    section: WormholeSettings,
    clock: Callable[[], float],
    note_news: NoteNews = lambda _: None,
) -> Iterator[_Client]:
    with Service(NAME, base(section), section.rate_per_second) as service:
        try:
            yield _Client(service, landing(settings, section, note_news), section, clock)
        except UnavailableError as error:
            raise PermalakeError(f"{error}; {_KEPT}", pause=error.pause) from None
        except (RequestRejectedError, IncompleteError) as error:
            raise PermalakeError(f"{NAME}: {error}; {_KEPT}") from None


def base(section: WormholeSettings) -> str:
    """Return the address of the service, to which paths are appended."""
    return (section.url or URL).rstrip("/").removesuffix("/api/v1")


class _Client:
    def __init__(
        self, service: Service, landed: DocumentCache, section: WormholeSettings, clock: Callable[[], float]
    ) -> None:
        self._service = service
        self._landed = landed
        self._section = section
        self._clock = clock
        self._routes: dict[str, str] = {}
        self._sizes = {kind: list(sizes) for kind, sizes in _SIZES.items()}
        self._news: News = Counter()
        self._reached: int | None = None

    def fetch(self, start: date, end: date, force: bool) -> News:
        """Request what is missing of start..end; return how many documents were new, by day."""
        span = max(_second(start), int(GENESIS_TIME.timestamp())), _second(end + timedelta(1))
        sealed = min(span[1], int(self._clock()) - _LAG_SECONDS)
        # Operations first: they name the emitters of days that lie too deep in the list of VAAs.
        for kind, lister in (("operations", self._list_operations), ("vaas", self._list_vaas)):
            missing = [span] if force else self._landed.missing(kind, span)
            if not missing:
                continue
            if kind == "vaas":
                self._list_undated()
            for first, last in self._landed.covered(kind, (span[0] - LOOK_BACK * _DAY, span[0])):
                # A day that was listed before all of it had to be indexed is listed to its end.
                missing.append((first if kind == "vaas" else last, _day_end(last)))
            for part in joined(missing):
                if part[0] < self._clock():
                    lister(part, (part[0], max(part[0], min(part[1], sealed))))
        return self._news

    def fetch_operations(self, start: date, end: date) -> News:
        """Request the operations of start..end whatever is landed; return how many VAAs were new, by day."""
        span = (
            max(_second(start), int(GENESIS_TIME.timestamp())),
            min(_second(end + timedelta(1)), int(self._clock())),
        )
        if span[0] < span[1]:
            self._list_operations(span, (span[0], span[0]))
        return self._news

    def newest(self, since: int, is_new: Callable[[Document], bool]) -> list[Document]:
        """Return the new documents of the list of VAAs down to a time, at most so many pages."""
        documents: list[Document] = []
        pages = walk(self._pages("vaas", ""), (since, int(self._clock())), time_of_vaa, seek=False)
        try:
            for page in islice(pages, _NEWEST_PAGES):
                documents += self._trimmed_vaas([document for document in page.documents if is_new(document)])
        except RequestRejectedError as refused:
            if refused.status not in TOO_DEEP or not documents:
                raise  # not even the first page
        return documents

    # -- Lists ---------------------------------------------------------------------------------------

    def _list_vaas(self, span: Span, sealed: Span) -> None:
        try:
            self._list("vaas", span, sealed, self._pages("vaas", ""))
        except RequestRejectedError as refused:
            if refused.status not in TOO_DEEP:
                raise

            def list_emitter(emitter: Emitter) -> None:
                pages = self._pages("vaas", f"/{emitter[0]}/{emitter[1]}")
                self._list("vaas", span, (span[0], span[0]), pages)

            keep = partial(self._keep, "vaas")
            deep = DeepDays(self._service, self._landed, list_emitter, keep)
            deep.land((span[0], max(sealed)), self._bridges())
            self._landed.cover("vaas", sealed)

    def _list_undated(self) -> None:
        """Land VAAs whose body has no real time (governance): the very oldest of the list."""
        turn = self._pages("vaas", "", sortOrder="ASC")
        before = None
        for page in range(_DEEP_PAGES):
            documents = turn(page)
            old = [
                document
                for document in documents
                if (unix_time(document.get("timestamp")) or 0) < GENESIS_TIME.timestamp()
            ]
            self._keep("vaas", old)
            if not old or len(old) < len(documents) or documents == before:
                return
            before = documents

    def _list_operations(self, span: Span, sealed: Span) -> None:
        oldest, newest = span[0] - MARGIN_SECONDS, span[1] + MARGIN_SECONDS
        while newest > oldest:
            window = {"from": _spelled(oldest), "to": _spelled(newest)}
            turn = self._pages("operations", "", **window)
            self._reached = None
            try:
                reached = self._list("operations", (oldest, newest), sealed, turn)
            except RequestRejectedError as refused:
                reached = self._reached
                if refused.status not in TOO_DEEP or reached is None:
                    raise  # not even the first page
                if reached >= newest:
                    raise IncompleteError(
                        f"more operations at {_spelled(newest)} than it lists; no shorter window is possible"
                    ) from None
            if reached is None or reached >= newest:
                return
            newest = reached  # deep pages are slow or rejected: begin anew, below what has been met
        self._landed.cover("operations", sealed)

    def _list(self, kind: str, span: Span, sealed: Span, turn: Callable[[int], list[Document]]) -> int | None:
        """Walk and keep; return down to which second it came if it stopped before the end, else None."""
        time_of = time_of_vaa if kind == "vaas" else time_of_operation
        held: list[Document] = []
        pages = self._kept_if_rejected(kind, held, walk(turn, span, time_of, seek=kind == "vaas"))
        for number, page in enumerate(pages, start=1):
            held += page.documents
            self._reached = page.reached
            if number % _PAGES_AT_ONCE == 0:
                self._keep(kind, held)
                held.clear()
                if page.reached is not None and page.reached < sealed[1]:
                    self._landed.cover(kind, (max(page.reached, sealed[0]), sealed[1]))
                if kind == "operations" and number >= _DEEP_PAGES and page.reached is not None:
                    return page.reached
        self._keep(kind, held)
        if sealed[0] < sealed[1]:
            self._landed.cover(kind, sealed)
        return None

    def _kept_if_rejected(self, kind: str, held: list[Document], pages: Iterator[Page]) -> Iterator[Page]:
        """Yield pages; keep what is held when the service rejects the next one."""
        try:
            yield from pages
        except RequestRejectedError:
            self._keep(kind, held)
            raise

    def _keep(self, kind: str, documents: list[Document]) -> None:
        is_vaas = kind == "vaas"
        rows = (
            self._trimmed_vaas(documents)
            if is_vaas
            else [trimmed_operation(document) for document in documents]
        )
        self._news.update(self._landed.add(kind, [(*days_of_document(row), row) for row in rows]))

    def _trimmed_vaas(self, documents: list[Document]) -> list[Document]:
        """Return VAA documents, and with them the copies that the list leaves out, as they are landed."""
        copies = [
            {**trimmed_vaa(copy), "id": document.get("id")}
            for document in documents
            if document.get("isDuplicated") is True
            for copy in self._copies(document)
        ]
        return [trimmed_vaa(document) for document in documents] + copies

    def _copies(self, document: Document) -> list[Document]:
        """Return other VAAs of the same message, which the list leaves out."""
        path = f"/api/v1/vaas/{quote(str(document.get('id')))}/duplicated"
        try:
            return self._service.get(path, lambda answer: _listed(answer, "data"))
        except RequestRejectedError as refused:
            if refused.status not in NOT_THERE:
                raise
            return []

    def _bridges(self) -> Iterator[Emitter]:
        bridges = load_reference(self._section.reference).bridges
        for chain, address in bridges.token | bridges.nft:
            yield str(chain), address.hex()

    # -- Requests ------------------------------------------------------------------------------------

    def _pages(self, kind: str, below: str, **parameters: str) -> Callable[[int], list[Document]]:
        """Return a function that gets a page of a list by its number."""
        field = "data" if kind == "vaas" else "operations"

        def turn(number: int) -> list[Document]:
            while True:
                size = self._sizes[kind][0]
                query = {"page": str(number), "pageSize": str(size), "sortOrder": "DESC", **parameters}
                try:
                    return self._get(kind, below, query, field)
                except RequestRejectedError as refused:
                    # A page size that it does not take shows on the first page; it is the same for all.
                    if refused.status not in {400, 422} or number or len(self._sizes[kind]) == 1:
                        raise
                    del self._sizes[kind][0]

        return turn

    def _get(self, kind: str, below: str, query: dict[str, str], field: str) -> list[Document]:
        route = self._routes.get(kind, "")
        try:
            return self._service.get(
                f"/api/v1/{kind}{below}{route}", lambda answer: _listed(answer, field), query
            )
        except RequestRejectedError as refused:
            if refused.status != 404 or kind in self._routes:
                raise
            self._routes[kind] = "/"  # some set-ups know the list by this name only
            return self._get(kind, below, query, field)


def _listed(answer: Any, field: str) -> list[Document]:
    documents = answer[field]
    if documents is None:
        return []
    if not isinstance(documents, list) or not all(isinstance(document, dict) for document in documents):
        raise ValueError(f"{field} is no list of documents")
    return documents


def _second(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def _day_end(second: int) -> int:
    return -(-second // _DAY) * _DAY


def _spelled(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
