"""What a run shall build: which network, which days, from which step on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from permalake.config import Settings
from permalake.errors import ConfigError
from permalake.pipeline.domain import task_of

WORMHOLE = "wormhole"


@dataclass(frozen=True)
class BuildRequest:
    """Days ``start`` to ``end`` (inclusive, UTC) of ``network``, from the step ``only`` on."""

    kind: str
    network: str
    start: date
    end: date
    run_id: str
    only: str | None = None
    force: bool = False

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ConfigError(
                f"the range ends ({self.end}) before it starts ({self.start}); swap the two days"
            )
        if self.only is not None:
            task_of(self.kind, self.only)

    @property
    def days(self) -> str:
        """``2022-09-28``, or ``1970-01-01..2026-07-30`` for a range."""
        return f"{self.start}" if self.start == self.end else f"{self.start}..{self.end}"

    @property
    def arguments(self) -> list[str]:
        """The arguments that every Spark job takes."""
        named = {"--network": self.network, "--start": self.start, "--end": self.end, "--run-id": self.run_id}
        return [str(part) for pair in named.items() for part in pair] + ["--force"] * self.force


def choose_network(settings: Settings, kind: str, network: str | None) -> str:
    """The lake namespace to build: the given one or the only one, else :class:`ConfigError`."""
    if kind == WORMHOLE:
        if network not in (None, WORMHOLE):
            raise ConfigError(
                f"--network {network}: wormhole has one namespace, wormhole; leave --network out"
            )
        if settings.wormhole is None:
            raise ConfigError("[wormhole] is not configured; say in permalake.toml where the VAAs are")
        return WORMHOLE
    if network is not None:
        settings.network(network)
        return network
    if not settings.networks:
        raise ConfigError("no IOTA network is configured; add a [networks.NAME] section to permalake.toml")
    if len(settings.networks) > 1:
        raise ConfigError(
            f"several IOTA networks are configured; choose with --network: {', '.join(settings.networks)}"
        )
    return next(iter(settings.networks))


def request_of(
    settings: Settings, kind: str, params: Mapping[str, Any], default_day: date, run_id: str
) -> BuildRequest:
    """A DAG run's parameters, with what was left out filled in: the data interval's day, the only network."""
    start = parse_day("start", params.get("start")) or default_day
    return BuildRequest(
        kind=kind,
        network=choose_network(settings, kind, params.get("network") or None),
        start=start,
        end=parse_day("end", params.get("end")) or start,
        run_id=run_id,
        only=params.get("only") or None,
        force=bool(params.get("force")),
    )


def parse_day(name: str, value: str | None) -> date | None:
    """A UTC day written ``YYYY-MM-DD``; :class:`ConfigError` names the argument."""
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
