"""``permalake restore``: rebuild a lost catalog from the warehouse."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from permalake.config import load_settings
from permalake.errors import PermalakeError


def command(
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Rebuild a lost catalog, or update an old copy, from the publications recorded in the warehouse.

    Prints a line per network. Changes nothing in the warehouse. Run it while nothing else works on the lake;
    docs/runbooks/restore.md says what to do before and after.

    Example:
      permalake restore
    """
    settings = load_settings(config)

    from permalake.lake.restore import restore

    damaged = []
    for restored in restore(settings):
        sys.stdout.write(f"{restored}\n")
        damaged += [f"{restored.network}.{table}: {why}" for table, why in restored.damaged.items()]
    for line in damaged:
        sys.stderr.write(f"{line}\n")
    if damaged:
        raise PermalakeError(f"{len(damaged)} tables are damaged; see docs/runbooks/restore.md")
