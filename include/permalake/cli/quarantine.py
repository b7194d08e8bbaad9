"""``permalake quarantine``: rejected input with its reason, and retries."""

from __future__ import annotations

import sys
from datetime import date
from typing import Annotated

import pyarrow as pa
import typer

from permalake.cli.output import FORMAT_HELP, Format
from permalake.cli.reasons import explain
from permalake.cli.render import plain, write
from permalake.config import Settings, load_settings
from permalake.errors import ConfigError, PermalakeError
from permalake.intervals import ranges

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="List rejected input with its reason, show it, or rebuild its days.",
)

_LISTED = ("network", "date", "reason", "source", "origin", "detail", "seen_at")
_SHOWN = (*_LISTED, "raw")

Network = Annotated[str | None, typer.Option(metavar="N", help="One network only.")]
Day = Annotated[str | None, typer.Option("--date", metavar="D", help="One day only, YYYY-MM-DD.")]
Reason = Annotated[str | None, typer.Option(metavar="R", help="One reason only, for example malformed.")]
Form = Annotated[Format, typer.Option("--format", help=FORMAT_HELP)]
Config = Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")]


@app.command("list")
def list_(  # noqa: PLR0917
    network: Network = None,
    day: Day = None,
    reason: Reason = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many rows.")] = None,
    form: Form = "table",
    config: Config = None,
) -> None:
    """List what was rejected: where it came from, why, and when it was first seen.

    docs/runbooks/reasons.md says of every reason what to do.

    Example: permalake quarantine list --network wormhole --reason bad_signature
    """
    settings = load_settings(config)

    from permalake.domains import open_reader

    rows = open_reader(settings).rejected(network, _day(day), reason, columns=_LISTED[1:])
    listed = rows.select(_LISTED).slice(0, limit)
    _print(listed, _LISTED, form)
    if form == "table":
        explain(sorted(set(listed["reason"].to_pylist())))
    if limit and limit < rows.num_rows:
        sys.stderr.write(f"{limit} of {rows.num_rows} rows shown\n")


@app.command()
def show(
    origin: Annotated[str, typer.Argument(help="Origin of the input, as the list names it.")],
    network: Network = None,
    form: Annotated[Format, typer.Option("--format", help=FORMAT_HELP)] = "json",
    config: Config = None,
) -> None:
    """Show everything known about one rejected input, with its raw bytes in hex.

    Example: permalake quarantine show vaas.jsonl:17
    """
    settings = load_settings(config)

    from permalake.domains import open_reader

    rows = open_reader(settings).rejected(network, origin=origin)
    if not rows.num_rows:
        raise PermalakeError(f"{origin}: nothing of that origin in quarantine; `permalake quarantine list`")
    _print(rows.select(_SHOWN), _SHOWN, form)


@app.command()
def retry(
    network: Annotated[str, typer.Option(metavar="N", help="Network whose days are rebuilt.")],
    day: Day = None,
    config: Config = None,
) -> None:
    """Rebuild the days of rejected input; input that is valid by now is published and leaves quarantine.

    Example: permalake quarantine retry --network wormhole --date 2024-07-02
    """
    settings = load_settings(config)
    if network not in settings.namespaces:
        configured = ", ".join(settings.namespaces) or "none"
        raise ConfigError(f"network {network}: not configured (configured: {configured})")
    _retry(settings, network, _day(day), config)


def _retry(settings: Settings, network: str, day: date | None, config: str | None) -> None:
    from permalake.domains import open_reader
    from permalake.lake.leases import format_range
    from permalake.local.run import run_range

    days = [
        rejected_day
        for rejected_day in open_reader(settings).days_with_rejected(network)
        if day in {None, rejected_day}
    ]
    if not days:
        sys.stdout.write(f"{network}{f' {day}' if day else ''}: nothing in quarantine\n")
        return
    failed = []
    for start, end in ranges(days):  # a range costs as many submits as a day
        try:
            run_range(settings, network, start, end, force=True, config=config)
        except PermalakeError as error:
            sys.stderr.write(f"permalake: {error}\n")
            failed.append(format_range(start, end))
    left = open_reader(settings).rejected(network, day, columns=_LISTED[1:]).num_rows
    sys.stdout.write(f"{network}: {left} rejected {'input' if left == 1 else 'inputs'} left in quarantine\n")
    if failed:
        raise PermalakeError(f"{network}: {', '.join(failed)} not built; the reasons stand above")


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--date {text}: not a date; write it as 2022-09-28") from None


def _print(rejected: pa.Table, names: tuple[str, ...], form: Format) -> None:
    records = [{name: plain(value) for name, value in row.items()} for row in rejected.to_pylist()]
    write(records, names, form, sys.stdout, sys.stderr)
