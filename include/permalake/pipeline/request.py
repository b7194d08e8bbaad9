"""The request of a run: which network, which days, from which step on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from permalake.config import Settings
from permalake.errors import ConfigError
from permalake.pipeline.domain import Domain

RUN_ID = "permalake_run_id"
"""Key of a DAG run's conf by which `make demo` brings a run id of its own, and of the XCom by
which names, for a run that starts at a later step, the run whose staging it continues."""


@dataclass(frozen=True)
class BuildRequest:
    """Days ``start`` to ``end`` (inclusive, UTC) of ``network``, from the step ``only`` on.

    ``force``: build the days although they are published and their inputs have not changed. ``stored``: ask
    no service for what enriches days; the answers that the lake has stored must do. ``dag_run``: the run as
    Airflow knows it; ``run_id``: the one that its staging belongs to, which is an earlier run's where this
    one goes on with it.
    """

    domain: Domain
    network: str
    start: date
    end: date
    run_id: str
    only: str | None = None
    force: bool = False
    stored: bool = False
    dag_run: str = ""

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ConfigError(
                f"the range ends ({self.end}) before it starts ({self.start}); swap the two days"
            )
        if self.only is not None:
            self.domain.step_of(self.only)

    @property
    def days(self) -> str:
        """``2022-09-28``, or ``1970-01-01..2026-07-30`` for a range."""
        return f"{self.start}" if self.start == self.end else f"{self.start}..{self.end}"

    @property
    def title(self) -> str:
        """``shimmer 2022-09-28``: network and days, in messages to people."""
        return f"{self.network} {self.days}"

    @property
    def arguments(self) -> list[str]:
        """The arguments that every Spark job takes."""
        named = {
            "--network": self.network,
            "--start": self.start,
            "--end": self.end,
            "--run-id": self.run_id,
            "--dag-run": self.dag_run or self.run_id,
        }
        flags = ["--force"] * self.force + ["--stored"] * self.stored
        return [str(part) for pair in named.items() for part in pair] + flags


def run_name(network: str, start: date | str, end: date | str) -> str:
    """Return network and days as a run's id begins: ``shimmer_2022-09-28``, or both ends of a range.

    Airflow takes no id with two dots.
    """
    return f"{network}_{start}" if str(start) == str(end) else f"{network}_{start}_{end}"


def request_of(
    settings: Settings,
    domain: Domain,
    params: Mapping[str, Any],
    default_day: date,
    run_id: str,
    *,
    dag_run: str = "",
) -> BuildRequest:
    """Return what a DAG run's parameters ask for.

    Where they are left out, it is the day of the data interval and the only network.
    """
    start = parse_day("start", params.get("start")) or default_day
    return BuildRequest(
        domain=domain,
        network=domain.choose(settings, params.get("network") or None),
        start=start,
        end=parse_day("end", params.get("end")) or start,
        run_id=run_id,
        only=params.get("only") or None,
        force=bool(params.get("force")),
        stored=bool(params.get("stored")),
        dag_run=dag_run or run_id,
    )


def parse_day(name: str, value: str | None) -> date | None:
    """Return a UTC day written ``YYYY-MM-DD``; :class:`ConfigError` names the argument."""
    if not value:
        return None
    try:
        day = date.fromisoformat(value)
        if day.isoformat() != value:  # it also takes 20220928 and 2022-W39-3
            raise ValueError
        return day
    except ValueError:
        raise ConfigError(
            f"{name} {value}: not a day; write it as YYYY-MM-DD, for example 2022-09-28"
        ) from None
