"""``permalake status``: the state of every day, per network."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

import typer

from permalake.cli.render import plain, write
from permalake.config import load_settings
from permalake.errors import ConfigError
from permalake.lake import DayStatus

_SCREEN = ("network", "date", "built", "audited", "published", "stores", "rows", "quarantined", "remarks")


def command(
    network: Annotated[str | None, typer.Option(metavar="N", help="One network only.")] = None,
    form: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Show every day of the lake: its times of build and publication, audit result, rows and remarks.

    Examples:
      permalake status

      permalake status --network shimmer --format json
    """
    settings = load_settings(config)

    from permalake.lake import Lake
    from permalake.stores.serve import stores_of

    days = [_with_stores(day, stores_of(settings, day.network)) for day in Lake(settings).status(network)]
    if network and not days and network not in settings.namespaces:
        known = ", ".join(settings.namespaces) or "none"
        raise ConfigError(f"network {network}: not configured and not in the lake (configured: {known})")
    if form == "json":
        records = [{name: plain(value) for name, value in asdict(day).items()} for day in days]
        write(records, (), "json", sys.stdout, sys.stderr)
        return
    if not days:
        sys.stderr.write("nothing is built yet; build a day with `permalake run`\n")
    write([_screen(day) for day in days], _SCREEN, "table", sys.stdout, sys.stderr)


def _with_stores(day: DayStatus, configured: list[str]) -> DayStatus:
    """Add the configured stores that have never received a published day."""
    return replace(day, stores=dict.fromkeys(configured) | day.stores) if day.published else day


def _screen(day: DayStatus) -> dict[str, Any]:
    remarks = [
        *([day.error] if day.error else []),
        *([f"stale: {day.stale}"] if day.stale else []),
        *day.gaps,
        *day.notes,
    ]
    return {
        "network": day.network,
        "date": day.date.isoformat(),
        "built": _short(day.built),
        "audited": day.audited or "-",
        "published": _short(day.published),
        "stores": ", ".join(f"{name} {_short(at)}" for name, at in day.stores.items()) or "-",
        "rows": sum(day.rows.values()),
        "quarantined": day.quarantined,
        "remarks": "; ".join(remarks),
    }


def _short(time: str | None) -> str:
    return f"{time[:10]} {time[11:19]}" if time else "-"
