"""Which days a command is about."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated

import typer

from permalake.errors import ConfigError

Network = Annotated[str | None, typer.Option(metavar="N", help="One network only.")]
FirstDay = Annotated[
    datetime | None,
    typer.Option("--date", formats=["%Y-%m-%d"], metavar="D", help="One day only; with --to, the first one."),
]
LastDay = Annotated[
    datetime | None, typer.Option("--to", formats=["%Y-%m-%d"], metavar="D2", help="The last day.")
]


def chosen_days(
    network: str | None, first: datetime | None, last: datetime | None
) -> Callable[[str, str], bool]:
    """Return what says whether a network and its date (``YYYY-MM-DD``) are among those that the options name.

    Raises:
        ConfigError: if the last day comes before the first one, or stands alone.
    """
    if last is not None and (first is None or last < first):
        raise ConfigError("--to is the last day; name the first one, not after it, by --date")
    start = first.date().isoformat() if first else ""
    end = last.date().isoformat() if last else start or "~"
    return lambda name, day: network in (None, name) and start <= day <= end
