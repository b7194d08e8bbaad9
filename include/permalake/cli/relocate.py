"""``permalake relocate``: make a copied or moved lake whole at its new place."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from permalake.config import load_settings
from permalake.errors import PermalakeError


def command(
    as_copy: Annotated[
        bool, typer.Option("--copy", help="The original goes on: make a lake of its own of the copy.")
    ] = False,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Make a lake whole after its folder or bucket was copied or moved to lake.warehouse.

    Tables record where their files lie. This rewrites these places, in the tables' metadata, the catalog and
    the log of publications, checks that every needed file is there, and prints a line per network. Copy all
    files first, while nothing works on the lake; docs/runbooks/relocate.md says how, from disk to S3 too.

    Examples:
      permalake relocate

      permalake relocate --copy
    """
    settings = load_settings(config)

    from permalake.lake.relocate import relocate

    problems: dict[str, str] = {}
    for network in relocate(settings, as_copy=as_copy):
        sys.stdout.write(f"{network}\n")
        problems |= network.problems
    for place, why in problems.items():
        sys.stderr.write(f"{place}: {why}\n")
    if problems:
        raise PermalakeError(
            f"{len(problems):,} files are missing or damaged; copy them from the original and run this "
            "again, see docs/runbooks/relocate.md"
        )
