"""``permalake live``: follow a network between the days that are built, without Airflow."""

from __future__ import annotations

from typing import Annotated

import typer

from permalake.config import load_settings


def command(
    kind: Annotated[str, typer.Argument(metavar="iota|wormhole", help="What to follow.")],
    network: Annotated[
        str | None,
        typer.Option(metavar="N", help="IOTA network; default: the first whose source is a node."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End when nothing is new.")] = False,
    seconds: Annotated[
        float | None, typer.Option("--for", metavar="SECONDS", min=0.0, help="End after so many seconds.")
    ] = None,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Follow a network between the days that are built.

    New milestones with all that they reference are proven as days are; new VAAs are verified and decoded.
    They stand in the namespace NETWORK_live until their day is published. They are provisional: views such as
    messages_with_live say so row by row. A run that is ended, or killed, goes on where it was.

    Examples:
      permalake live iota

      permalake live iota --network shimmer --once

      permalake live wormhole

      permalake query "select max(milestone_index) from shimmer.milestones_with_live"
    """
    from permalake.domains import named

    domain = named(kind)
    settings = load_settings(config)

    from permalake.local.live import run_live
    from permalake.pipeline.live import chosen

    name = chosen(settings, domain, network)
    raise typer.Exit(run_live(name, once=once, seconds=seconds, config=config))
