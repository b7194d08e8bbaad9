"""``permalake mirror``: build all days of publishers by the steps of the DAGs, and keep up with them.

What is published and copied already is left as it is, so that a killed mirror goes on where it was.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta

from permalake.config import Settings, load_settings
from permalake.contracts.steps import MIRRORED, Publishers
from permalake.domains import open_reader
from permalake.errors import ConfigError, PermalakeError
from permalake.intervals import dates, ranges
from permalake.lake.leases import format_range
from permalake.local.run import run_range
from permalake.sanitize import LONGEST_MESSAGE, shown
from permalake.transparency.landed import copied_manifest, news
from permalake.transparency.publisher import Publisher, open_publisher

_MOST_DAYS = 7
"""Days that are built at once: a kill costs as many."""


@dataclass(frozen=True)
class Chosen:
    """Which days are mirrored: those of a network, between two dates, both inclusive; None: all."""

    network: str | None = None
    first: date | None = None
    last: date | None = None

    def has(self, day: date) -> bool:
        """Whether a day is among them."""
        return (self.first is None or day >= self.first) and (self.last is None or day <= self.last)


def mirror(
    urls: Sequence[str],
    keys: Sequence[str],
    chosen: Chosen,
    *,
    force: bool = False,
    config: str | os.PathLike[str] | None = None,
) -> int:
    """Build the chosen days of publishers that are not copied yet, or were signed anew; the exit code, 0.

    ``keys``: lines of the public keys of which one must have signed; without any the ones that this machine
    saw first, else those that lie beside the exports. ``force``: days too that did not hold before.

    Raises:
        PermalakeError: if no publisher can be read, or days stay unpublished; it names the first.
    """
    settings = load_settings(config)
    opened = list(_opened(urls, keys))
    if not opened:
        raise PermalakeError("no publisher can be read")
    publishers = Publishers(
        tuple(publisher.url for publisher in opened),
        tuple(sorted({str(publisher.checked.key) for publisher in opened})),
    )
    faults: list[str] = []
    networks = _networks(settings, opened, chosen.network)
    for network in networks:
        with _source(network, publishers):
            faults += _Network(network, opened, publishers, chosen, force, config).build()
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise PermalakeError(f"not copied: {faults[0]}{more}")
    return 0


def _opened(urls: Sequence[str], keys: Sequence[str]) -> Iterator[Publisher]:
    """Open the publishers; name those that lie or cannot be read."""
    for url in urls:
        try:
            publisher = open_publisher(url, keys)
        except PermalakeError as error:
            _remark(str(error))
            continue
        if not keys:
            _say(f"{publisher.origin}: signed by {publisher.checked.key}; {publisher.checked.trust}")
        yield publisher


def _networks(settings: Settings, opened: Sequence[Publisher], network: str | None) -> list[str]:
    """Return the networks to mirror: the configured ones, as their keys are the reader's own."""
    shown_there = sorted({name for publisher in opened for name in publisher.networks})
    if network is not None and network not in shown_there:
        raise ConfigError(f"--network {network}: no publisher has it (they have {', '.join(shown_there)})")
    asked = [network] if network is not None else shown_there
    for name in asked:
        if name not in settings.namespaces:
            section = "[wormhole]" if name == "wormhole" else f"[networks.{name}]"
            line = f"{name}: add {section}, which says by what keys and forms its days are proven"
            if network is not None:
                raise ConfigError(line)
            _remark(line)
    networks = [name for name in asked if name in settings.namespaces]
    if not networks:
        raise ConfigError(f"none of the publishers' networks is configured: {', '.join(asked)}")
    return networks


@contextmanager
def _source(network: str, publishers: Publishers) -> Iterator[None]:
    """Let the steps, and the processes that they start, copy a network's days from the publishers."""
    section = "WORMHOLE__" if network == "wormhole" else f"NETWORKS__{network.upper()}__"
    values = {
        "SOURCE": MIRRORED,
        "URL": publishers.urls[0],
        "FALLBACK": json.dumps(publishers.urls[1:]),
        "PUBLISHER_KEYS": json.dumps(publishers.keys),
    }
    named = {f"PERMALAKE_{section}{name}": value for name, value in values.items()}
    before = {name: os.environ.get(name) for name in named}
    os.environ.update(named)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@dataclass(frozen=True)
class _Network:
    """The mirroring of one network."""

    network: str
    opened: Sequence[Publisher]
    publishers: Publishers
    chosen: Chosen
    force: bool
    config: str | os.PathLike[str] | None

    def build(self) -> list[str]:
        """Build what is not copied; return why days stay unpublished, a line each."""
        settings = load_settings(self.config)
        signed = self._signed()
        left = self._left(settings, signed)
        for publisher in self.opened:
            if (last := max(publisher.days(self.network), default=None)) and last < max(signed, default=last):
                _remark(f"{publisher.url}: its last day of {self.network} is {last}; others have more")
        if not left:
            _say(f"{self.network}: {len(signed):,} day{'s' * (len(signed) != 1)}, all copied")
        return [fault for first, last in _spans(left) for fault in self._span(settings, first, last)]

    def _signed(self) -> list[date]:
        days = {day for publisher in self.opened for day in publisher.days(self.network)}
        return sorted(day for day in days if self.chosen.has(day))

    def _left(self, settings: Settings, signed: Sequence[date]) -> list[date]:
        """Return the days that are not copied as one of the publishers has signed them."""
        notes = self._notes(settings)
        changed = news(self.publishers, self.network, notes, _remark)
        return [day for day in signed if day in changed or copied_manifest(notes.get(day, ())) is None]

    def _notes(self, settings: Settings) -> Mapping[date, Sequence[str]]:
        days = open_reader(settings).status(self.network)
        return {day.date: day.notes for day in days if day.published}

    def _span(self, settings: Settings, first: date, last: date) -> list[str]:
        """Build some days, at once, and those that fail so each alone; return why days stay unpublished."""
        before = self._notes(settings)
        fault = self._range(settings, first, last)
        if fault is None or first == last:
            return [fault] if fault else []
        now = self._notes(settings)
        left = [
            day
            for day in dates(first, last)
            if copied_manifest(now.get(day, ())) == copied_manifest(before.get(day, ()))
        ]
        alone = [line for day in left if (line := self._range(settings, day, day)) is not None]
        return alone if left else [fault]  # of days that are published, as the carried tables may fail

    def _range(self, settings: Settings, first: date, last: date) -> str | None:
        """Build some days, from each publisher in turn until they hold; return why they stay unpublished."""
        fault = None
        for _ in self.opened:
            try:
                run_range(settings, self.network, first, last, force=self.force, config=self.config)
            except PermalakeError as error:
                fault = f"{self.network} {format_range(first, last)}: {error}"
                _remark(fault)
            else:
                return None
        return fault


def _spans(days: Sequence[date]) -> Iterator[tuple[date, date]]:
    """Yield days in a row, a few at once."""
    for first, last in ranges(days):
        for at in range(first.toordinal(), last.toordinal() + 1, _MOST_DAYS):
            begin = date.fromordinal(at)
            yield begin, min(last, begin + timedelta(_MOST_DAYS - 1))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _remark(line: str) -> None:
    sys.stderr.write(f"permalake: {shown(line, LONGEST_MESSAGE)}\n")
