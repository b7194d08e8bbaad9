"""Steps of a day and their results. Plain values: no Spark, no lake, no Airflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import urlsplit

Dataset = tuple[str, str]
"""Namespace and name of a dataset, by OpenLineage's naming rules."""
StepState = Literal["running", "done", "skipped", "invalid", "failed"]

PUBLISH = "publish"
CARRY = "carry"
"""The step that builds the carried tables of all published days that wait for it, whoever published them."""
WAIT = "wait_for_store"
"""The step that runs as a sensor."""
SERVE = "serve"
"""The step that works on what is published, not on a staging."""
AFTER_PUBLICATION = (CARRY, WAIT, SERVE)
"""Steps that also run when a run has nothing to build, and that fail without a day being unpublished."""


@dataclass(frozen=True, slots=True)
class Step:
    """One task of a daily DAG.

    ``name``: the task id. ``phases``: names that ``--only`` takes for it. ``run``: the function that does the
    work, ``module:function``, imported when the step runs. ``job``: the Spark job ``spark/{job}.py`` that
    runs it; None for a step that runs in its task. ``writes``: tables that it stages. ``needs_landing``: it
    also reads files that an earlier step of the same attempt landed. ``light``: it costs less than a submit
    however large the days are, so a submit always goes on with it.
    """

    name: str
    phases: tuple[str, ...]
    run: str
    doc: str
    job: str | None = None
    writes: tuple[str, ...] = ()
    needs_landing: bool = False
    light: bool = False


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step, as its row of the step ledger records it.

    ``state``: ``done``; ``skipped`` when there was nothing to do; ``invalid`` when the input of the days is
    at fault and a retry cannot help; ``failed`` otherwise. ``rows``: rows staged (or published) so far, by
    table. ``docs``: the Data Docs page of an audit. ``served``: days that each store received. ``days``:
    days that were published.
    """

    state: StepState = "done"
    rows: Mapping[str, int] = field(default_factory=dict)
    quarantined: int = 0
    seconds: float = 0.0
    log: tuple[str, ...] = ()
    reason: str | None = None
    retryable: bool = True
    docs: str | None = None
    served: Mapping[str, int] | None = None
    days: tuple[date, ...] | None = None

    @property
    def failure(self) -> str:
        """The reason in one line, with the page that explains it."""
        reason = self.reason or "the step failed"
        return f"{reason}; docs: {self.docs}" if self.docs else reason


@dataclass(frozen=True, slots=True)
class Publishers:
    """Publishers whose days a network follows.

    ``urls``: addresses of their exports, asked in order. ``keys``: lines of the public keys of which one must
    have signed.
    """

    urls: tuple[str, ...]
    keys: tuple[str, ...]


class MirrorSection(Protocol):
    """A section of the settings that may say whose days are copied."""

    @property
    def source(self) -> str:
        """Kind of the source."""

    @property
    def url(self) -> str | None:
        """Address of the first publisher's export."""

    @property
    def fallback(self) -> tuple[str, ...]:
        """Addresses of the others."""

    @property
    def publisher_keys(self) -> tuple[str, ...]:
        """Lines of the public keys of which one must have signed."""


MIRRORED = "permalake"
"""The source whose days are copied from a publisher."""


def publishers_of(section: MirrorSection) -> Publishers | None:
    """Return whose days a section copies; None where its days are built from a source of their own."""
    if section.source != MIRRORED or section.url is None:
        return None
    return Publishers((section.url, *section.fallback), section.publisher_keys)


class DayInputs(Protocol):
    """The inputs of one network's days: for fingerprints, sizes and lineage."""

    @property
    def live(self) -> bool:
        """Whether a service answers, whose answers cannot be known without asking."""

    @property
    def roots(self) -> tuple[Path | None, ...]:
        """Files and folders that are read, in a fixed order; None where one is not configured."""

    @property
    def archive(self) -> Path | None:
        """The files that hold the input itself; None for a service."""

    @property
    def cheap_below(self) -> int:
        """Bytes of input below which Java starts cheaply on one machine, as Python does what costs most.

        Small inputs do so in any case.
        """

    @property
    def configuration(self) -> str:
        """The settings that a build depends on, as text that is equal when they are."""

    @property
    def dataset(self) -> Dataset | None:
        """Namespace and name of the source by OpenLineage's rules, without credentials."""

    @property
    def publishers(self) -> Publishers | None:
        """Whose signed days are copied; None where the days are built from a source of their own."""

    def continued(self, notes: Mapping[date, Sequence[str]]) -> dict[date, str]:
        """Return the days that are stale because their source goes on now, with the reason.

        ``notes`` are those of published days.
        """


def source_dataset(path: Path | None, url: str | None, network: str) -> Dataset | None:
    """Return the source of a network as a dataset: its folder, or its host."""
    if path is not None:
        return "file", str(path)
    if not url:
        return None
    address = urlsplit(url)
    if not address.scheme:  # a folder with an export
        return "file", url
    # The host alone: user, path and query of an address may hold a key.
    return f"{address.scheme}://{address.netloc.rpartition('@')[2]}", network
