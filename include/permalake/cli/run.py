"""``permalake run``: the steps of a DAG for a day or a range of days, without Airflow."""

from __future__ import annotations

from datetime import date
from typing import Annotated

import typer

from permalake.config import load_settings
from permalake.errors import ConfigError
from permalake.pipeline import request


def command(  # noqa: PLR0917
    kind: Annotated[str, typer.Argument(metavar="iota|wormhole", help="Which days to build.")],
    day: Annotated[str, typer.Option("--date", metavar="D", help="The UTC day to build, YYYY-MM-DD.")],
    to: Annotated[str | None, typer.Option("--to", metavar="D2", help="Build all days from D to D2.")] = None,
    network: Annotated[
        str | None,
        typer.Option(metavar="N", help="IOTA network; default: the only one that is scheduled."),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(metavar="STEP", help="Start at this step and continue to the end: enrich, serve, …"),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Build days even if nothing changed, and let a price file correct stored quotes. With "
            "--only enrich: also ask chains again for facts stored with a part missing.",
        ),
    ] = False,
    stored: Annotated[
        bool,
        typer.Option(
            "--stored",
            help="Wormhole: ask no service for prices, chain details, redemptions and custody; take what the "
            "lake has stored of them.",
        ),
    ] = False,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Build a day, or a range of days, by the steps of the DAG that Airflow schedules.

    Each day is staged, audited and published as a whole. A run can be repeated: published days are skipped if
    they come from files that have not changed; days from a service are built again.

    Examples:
      permalake run iota --date 2022-09-28

      permalake run wormhole --date 2024-07-01 --to 2024-07-31

      permalake run wormhole --date 2024-07-02 --only enrich

      permalake run iota --network shimmer --date 2022-09-28 --force
    """
    from permalake.domains import named

    domain = named(kind)
    start, end = _days(day, to)
    if only is not None:
        domain.step_of(only)
    settings = load_settings(config)
    chosen = domain.choose(settings, network)

    from permalake.local.run import run_range

    raise typer.Exit(
        run_range(settings, chosen, start, end, only=only, force=force, stored=stored, config=config)
    )


def _days(day: str, to: str | None) -> tuple[date, date]:
    start = request.parse_day("--date", day)
    end = request.parse_day("--to", to) or start
    if start is None or end is None:
        raise ConfigError("--date is empty; write a day as YYYY-MM-DD")
    if end < start:
        raise ConfigError(f"--to {end} lies before --date {start}; swap the two days")
    return start, end
