"""``permalake query``: SQL over the published lake, without Spark."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from permalake.cli.render import Format, rows, write
from permalake.config import load_settings
from permalake.errors import ConfigError


def command(  # noqa: PLR0917
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT, in DuckDB's SQL.")],
    form: Annotated[Format, typer.Option("--format", help="How to print the rows.")] = "table",
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of", metavar="T", help="Read the state at that time (RFC 3339; default zone UTC)."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Stop a query that takes longer.")
    ] = 300.0,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory for the query; beyond it, temporary files.")
    ] = "2GiB",
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Query the published lake. Tables are NETWORK.table; a network name with a dash is quoted.

    All tables are read in the state of one publication. JSON is one array of objects: integers as numbers,
    decimals as text, binary as hex, timestamps in UTC. Of columns with the same name, all but the first get
    a number. The statement can only read.

    Examples:
      permalake query "select * from shimmer.ms_analytics order by milestone_index"

      permalake query 'select count(*) from "chrysalis-mainnet".messages' --format json

      permalake query "select * from shimmer.date_cache" --as-of 2026-01-31T12:00:00Z
    """
    moment = _moment(as_of)
    settings = load_settings(config)

    from permalake.domains import open_reader
    from permalake.lake import QueryLimits

    result = open_reader(settings).answer(sql, moment, QueryLimits(timeout, memory))
    records = rows(result.batches(), result.names, result.kinds)
    write(records, result.names, form, sys.stdout, sys.stderr)


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--as-of {text}: not a time; write it as 2022-09-28T12:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
