"""Days of a publisher, landed in the warehouse: what a mirror builds from and compares with.

A day's folder holds the publisher's files, named by what is in them, and ``day.json``: whose day it is, and
its manifest. Files are fetched once; a killed run goes on with those that are there and are what was signed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

from permalake.config import Settings
from permalake.contracts import Table
from permalake.contracts.steps import Publishers
from permalake.errors import PermalakeError
from permalake.intervals import dates
from permalake.transparency.copies import DamagedCopyError
from permalake.transparency.documents import Manifest, SignedTable
from permalake.transparency.log import Entry
from permalake.transparency.places import SMALL, FolderPlace
from permalake.transparency.publisher import Publisher, check_rows, open_publisher

FOLDER = "_landing/permalake"
_DAY, _REFUSED = "day.json", "refused.json"
COPIED = "copied from {origin}, manifest {manifest}"
"""Note on a day that was built from a publisher's."""
_NOTE = re.compile(COPIED.format(origin="(?P<origin>.+)", manifest="(?P<manifest>[0-9a-f]{64})"))
Say = Callable[[str], None]


@dataclass(frozen=True)
class LandedDay:
    """A day as a publisher signed it.

    Attributes:
        origin: Name of the publisher's log.
        url: Where its export lies.
        manifest: SHA-256 of the manifest, in hex.
        document: The manifest.
        earlier: How many days of the network the publisher had signed before this one.
        folder: Location of the landed files.
    """

    network: str
    date: date
    origin: str
    url: str
    manifest: str
    document: Manifest
    earlier: int
    folder: str

    @property
    def content(self) -> bytes:
        """The record kept beside its files, as JSON."""
        kept = ("origin", "url", "manifest", "document", "earlier")
        return json.dumps({name: getattr(self, name) for name in kept}, sort_keys=True).encode()

    @property
    def note(self) -> str:
        """The note on where the day was copied from."""
        return COPIED.format(origin=self.origin, manifest=self.manifest)

    @property
    def tables(self) -> Mapping[str, SignedTable]:
        """The manifest's entry on each table."""
        return self.document["tables"]

    def file(self, table: str) -> str | None:
        """Return the location of the landed rows of a table; None where the day has none."""
        said = self.tables.get(table)
        return f"{self.folder}/{_name(table, said)}" if said else None


class LandedDays:
    """The landed days of a network.

    ``remarks`` name the publishers that lied or lagged, and why; ``say`` gets them at once.
    """

    def __init__(
        self, settings: Settings, network: str, publishers: Publishers, say: Say = lambda _: None
    ) -> None:
        self.remarks: list[str] = []
        self._network = network
        self._publishers = publishers
        self._say = say
        self._place = FolderPlace(f"{settings.lake.warehouse}/{FOLDER}/{network}")

    def land(
        self, start: date, end: date, tables: Sequence[Table], *, force: bool = False, keep: bool = True
    ) -> dict[date, LandedDay]:
        """Land the days of start..end from the first publisher that has them; return them by date.

        If a publisher lies or lags, the next is asked. ``force``: those too whose day did not
        hold before. ``keep``: what is signed now counts for :meth:`day` from here on.

        A day that is not signed, though later ones are, is left out.

        Raises:
            PermalakeError: if a day is signed, and no publisher has it whole; if nobody knows whether it is:
                a publisher cannot be read, or none has any more what was landed. It says why.
        """
        requested_days = dates(start, end)
        landed: dict[date, LandedDay] = {}
        faults: dict[date, str] = {}
        latest: list[date] = []
        unreached: list[str] = []
        for url in self._publishers.urls:
            try:
                publisher = open_publisher(url, self._publishers.keys)
                publisher.remember()
            except PermalakeError as error:
                unreached.append(self._remark(str(error)))
                continue
            latest.append(max(publisher.days(self._network), default=date.min))
            if latest[-1] < end:
                self._remark(f"{url}: it has signed no day of {self._network} after {latest[-1]}")
            left = [day for day in requested_days if day not in landed]
            faults |= self._land_from(publisher, left, tables, landed, force=force, keep=keep)
            if len(landed) == len(requested_days):
                break
        for day, why in sorted(faults.items()):
            if day not in landed:
                raise PermalakeError(f"{self._network} {day}: {why}")
        if not latest:
            raise PermalakeError("; ".join(unreached) or f"{self._network}: no publisher is named")
        if max(latest) < end:
            raise PermalakeError(f"{self._network} {end}: no publisher has signed it yet")
        if keep:
            self._check_absent(set(requested_days) - landed.keys(), unreached)
        return landed

    def _check_absent(self, absent: Collection[date], unreached: Sequence[str]) -> None:
        """Check that nobody has signed these days: each publisher was asked, and none of them was landed."""
        for day in sorted(absent):
            if unreached or self.day(day) is not None:
                reason = "; ".join(unreached) or "no publisher that is named has it any more"
                raise PermalakeError(f"{self._network} {day}: {reason}")

    def land_before(self, day: date, tables: Sequence[Table]) -> LandedDay | None:
        """Land the last signed day before a day; None where no publisher has one whole.

        It does not count for :meth:`day`.
        """
        for url in self._publishers.urls:
            try:
                publisher = open_publisher(url, self._publishers.keys)
                earlier = [item for item in publisher.days(self._network).items() if item[0] < day]
                if earlier:
                    return self._land_day(publisher, max(earlier)[1], tables, force=True)
            except PermalakeError as error:
                self._remark(str(error))
        return None

    def _land_from(
        self,
        publisher: Publisher,
        requested_days: Sequence[date],
        tables: Sequence[Table],
        landed: dict[date, LandedDay],
        *,
        force: bool,
        keep: bool,
    ) -> dict[date, str]:
        """Add the days that a publisher has to what is ``landed``; return why others of its days are not."""
        faults: dict[date, str] = {}
        days = publisher.days(self._network)
        for day in requested_days:
            try:
                if entry := days.get(day):
                    landed[day] = landed_day = self._land_day(publisher, entry, tables, force=force)
                    if keep:
                        self._place.write(f"{day}/{_DAY}", landed_day.content)
            except PermalakeError as error:
                faults[day] = self._remark(str(error))
        return faults

    def day(self, day: date) -> LandedDay | None:
        """Return a landed day."""
        content = self._place.read(f"{day}/{_DAY}", 64 * SMALL)
        if content is None:
            return None
        document = json.loads(content)
        return LandedDay(self._network, day, **document, folder=f"{self._place.location}/{day}")

    def refuse(self, day: date, reason: str) -> None:
        """Do not take this day of its publisher again: it did not hold."""
        landed = self.day(day)
        if landed is None:
            return
        refused = self._refused(day) | {landed.manifest: reason}
        self._place.write(f"{day}/{_REFUSED}", json.dumps(refused, indent=1).encode())

    def _refused(self, day: date) -> dict[str, str]:
        reasons: dict[str, str] = json.loads(self._place.read(f"{day}/{_REFUSED}") or b"{}")
        return reasons

    def _remark(self, text: str) -> str:
        if text not in self.remarks:
            self.remarks.append(text)
            self._say(text)
        return text

    def _land_day(
        self, publisher: Publisher, entry: Entry, tables: Sequence[Table], *, force: bool
    ) -> LandedDay:
        day = date.fromisoformat(entry.date)
        reason = self._refused(day).get(entry.manifest)
        if reason and not force:
            raise PermalakeError(
                f"{publisher.url}: its {self._network} {day} did not hold before ({reason}); "
                "--force tries it again"
            )
        manifest = publisher.manifest(entry)
        for table in tables:
            said = manifest["tables"].get(table.name)
            if said is None:
                continue
            path = f"{day}/{_name(table.name, said)}"
            if self._has(path, table, said):
                continue
            with publisher.file(entry, table, manifest) as file:
                self._place.write(path, file.read_bytes())
        return LandedDay(
            self._network,
            day,
            origin=publisher.origin,
            url=publisher.url,
            manifest=entry.manifest,
            document=manifest,
            earlier=sum(published_day < day for published_day in publisher.days(entry.network)),
            folder=f"{self._place.location}/{day}",
        )

    def _has(self, path: str, table: Table, said: SignedTable) -> bool:
        """Return whether a file lies here with the rows that were signed; its name says so, and may lie."""
        with self._place.on_disk(path) as there, suppress(DamagedCopyError):
            if there is not None:
                check_rows(there, table, said, path)
                return True
        return False


def news(
    publishers: Publishers, network: str, copied: Mapping[date, Sequence[str]], remark: Say = lambda _: None
) -> dict[date, str]:
    """Return the days that their publisher has signed anew since they were copied, with the reason.

    ``copied`` are the notes of published days. Publishers that cannot be read are reported, and passed over;
    a day that was signed anew and whose manifests are damaged is reported, and counts as changed. A publisher
    that changed its key goes on in a log of another name: all days that were copied from the former one, if
    nobody shows that any more, count as signed anew.
    """
    manifests = {day: noted for day, notes in copied.items() if (noted := copied_manifest(notes))}
    opened: list[Publisher] = []
    for url in publishers.urls if manifests else ():
        try:
            opened.append(open_publisher(url, publishers.keys))
        except PermalakeError as error:
            remark(str(error))
    origins = {publisher.origin for publisher in opened}
    changed: dict[date, str] = {}
    for publisher in opened:
        for day, entry in publisher.days(network).items():
            origin, manifest = manifests.get(day, ("", entry.manifest))
            is_renamed = origin not in origins and _lake_of(origin) == _lake_of(publisher.origin)
            if manifest == entry.manifest or not (is_renamed or origin == publisher.origin):
                continue
            try:
                is_changed = _changed(publisher, entry, manifest)
            except PermalakeError as error:
                remark(str(error))
                is_changed = isinstance(error, DamagedCopyError)
            if is_changed:
                changed[day] = f"{publisher.origin} has signed it anew"
    return changed


def _lake_of(origin: str) -> str:
    """Return which lake a log is of: its name is that of the key, and then the lake's."""
    return origin.rpartition("/")[2]


def copied_manifest(notes: Sequence[str]) -> tuple[str, str] | None:
    """Return from whose log a day was copied, and the SHA-256 of the manifest; None for a day of our own."""
    matches = (_NOTE.fullmatch(note) for note in notes)
    return next(((match["origin"], match["manifest"]) for match in matches if match), None)


def _changed(publisher: Publisher, entry: Entry, manifest: str) -> bool:
    """Return whether the tables of the day itself changed, and not only those that are carried over days."""
    before = [entry for entry in publisher.checked.log.entries if entry.manifest == manifest]
    if not before:
        return True
    return _own(publisher.manifest(before[0])) != _own(publisher.manifest(entry))


def _own(manifest: Manifest) -> dict[str, str]:
    """Return the digests of the tables of the day itself."""
    return {name: said["digest"] for name, said in manifest["tables"].items() if said["kind"] == "day"}


def _name(table: str, said: SignedTable) -> str:
    return f"{table}-{said['digest'][:16]}.parquet"
