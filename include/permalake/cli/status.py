"""``permalake status``: the state of every day, per network."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import date
from itertools import groupby
from typing import Annotated, Any, Literal

import typer

from permalake.cli.chosen_days import FirstDay, LastDay, chosen_days
from permalake.cli.reasons import explain
from permalake.cli.render import plain, write
from permalake.config import Settings, load_settings
from permalake.contracts.reason_codes import address
from permalake.contracts.steps import CARRY
from permalake.errors import ConfigError
from permalake.intervals import ranges
from permalake.lake import DayStatus, carried_until
from permalake.lake.leases import format_range
from permalake.lake.status import NEVER_BUILT
from permalake.lake.step_ledger import StepLedger, StepRow
from permalake.sanitize import shown
from permalake.stores.batch import Store

_TRIES = 1000
_STEP = (
    *("network", "days", "step", "try", "state", "began", "seconds"),
    *("submit", "rows", "quarantined", "outcome"),
)
_SCREEN = ("network", "date", "built", "audited", "published", "stores", "rows", "quarantined", "remarks")


def command(  # noqa: PLR0917
    network: Annotated[str | None, typer.Option(metavar="N", help="One network only.")] = None,
    run: Annotated[
        str | None, typer.Option(metavar="RUN", help="One run, step by step, by its run id.")
    ] = None,
    failed: Annotated[
        bool,
        typer.Option(
            "--failed",
            help="Only days that failed, are stale or have a gap, and days never built; "
            "of --runs, those that failed.",
        ),
    ] = False,
    runs: Annotated[
        bool, typer.Option("--runs", help="The runs that the days belong to, instead of the days.")
    ] = False,
    first: FirstDay = None,
    last: LastDay = None,
    form: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Show every day of the lake: its times of build and publication, audit result, rows and remarks.

    Below, up to which day the tables that tell the state at a day's end are carried, how far live heads are,
    and where to see what later publications changed. With --failed, days between others that were never built
    are listed too. Tables whose metadata is missing or damaged are named on standard error. Every code of a
    reason has a section in docs/runbooks/reasons.md that says what to do.

    Examples:
      permalake status

      permalake status --network shimmer --format json

      permalake status --failed --date 2022-09-01 --to 2022-09-30

      permalake status --runs --date 2022-09-28

      permalake status --run shimmer_2022-09-28__cli-20260101T060000-3f9a2c
    """
    settings = load_settings(config)

    from permalake.domains import open_reader, stores_of
    from permalake.lake.catalog import unreadable
    from permalake.lake.identity import open_database

    if run is not None:
        if failed or runs or first or last:
            raise ConfigError("--run prints one run, all of it; leave out --failed, --runs, --date and --to")
        _show_run(StepLedger(open_database(settings)).of_run(run, network), run, form)
        return
    is_chosen = chosen_days(network, first, last)
    if runs:
        final = last or first
        days_of = first.date() if first else date.min, final.date() if final else date.max
        _show_runs(StepLedger(open_database(settings)).recent(network, _TRIES, days_of), form, failed=failed)
        return
    _mark_continued(settings, network)
    reader = open_reader(settings)
    listed = reader.status(network, with_never_built=failed)
    days = [_with_stores(day, stores_of(settings, day.network)) for day in listed]
    for name in dict.fromkeys(day.network for day in days):
        for table, fault in sorted(unreadable(reader.locations(name)).items()):
            sys.stderr.write(f"permalake: {name}.{table}: {fault}\n")
    if network and not days and network not in settings.namespaces:
        configured = ", ".join(settings.namespaces) or "none"
        raise ConfigError(f"network {network}: not configured and not in the lake (configured: {configured})")
    shown_days = [day for day in days if is_chosen(day.network, day.date.isoformat())]
    if failed:
        shown_days = [day for day in shown_days if day.error or day.stale or day.gaps]
    if form == "json":
        records = [
            {name: plain(value) for name, value in asdict(day).items()}
            | {"reasons": [address(code) for code in day.reasons]}
            for day in shown_days
        ]
        write(records, (), "json", sys.stdout, sys.stderr)
        return
    if not days:
        sys.stderr.write("nothing is built yet; build a day with `permalake run`\n")
    write(list(_screen_lines(shown_days)), _SCREEN, "table", sys.stdout, sys.stderr)
    explain(sorted({code for day in shown_days for code in day.reasons}))
    _show_ends(settings, days, network)
    _show_corrections(settings, shown_days)


def _show_corrections(settings: Settings, days: list[DayStatus]) -> None:
    """Print where to see what a later publication changed of the days that are shown, if one covers any."""
    from permalake.lake.identity import open_database
    from permalake.lake.status import published_again

    again = published_again(open_database(settings))
    for name, network_days in groupby(days, lambda day: day.network):
        if corrected := sorted(day.date for day in network_days if day.date in again.get(name, ())):
            what = f"{len(corrected):,} days were" if len(corrected) > 1 else "1 day was"
            sys.stdout.write(
                f"{name}: {what} published again, the last {corrected[-1]}; what changed: "
                f"/quality/changes?network={name}&day={corrected[-1]} of `permalake serve`\n"
            )


def _show_ends(settings: Settings, days: list[DayStatus], network: str | None) -> None:
    """Print up to where each network is carried, and followed live."""
    from permalake.lake.head_position import head_positions
    from permalake.lake.identity import open_database

    for name, network_days in groupby(days, lambda day: day.network):
        sys.stdout.write(f"{name}: carried up to {carried_until(network_days) or '-'}\n")
    for name, head in sorted(head_positions(open_database(settings)).items()):
        if network in {None, name}:
            sys.stdout.write(f"{name}: live up to {head}, {head.lag():.0f} s ago\n")
            for first, last in head.gaps:
                span = f"{first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} UTC"
                sys.stdout.write(f"{name}: nobody listened {span}; what came then comes with its day\n")


def _mark_continued(settings: Settings, network: str | None) -> None:
    """Mark days stale whose source goes on; a source that cannot be read is a line, no failure."""
    from permalake.domains import domain_of
    from permalake.pipeline.stale_days import mark_continued
    from permalake.pipeline.workspace import Workspace

    for name in settings.namespaces if network is None else {network} & set(settings.namespaces):
        try:
            mark_continued(Workspace.open(settings, domain_of(name), name))
        except OSError as error:
            sys.stderr.write(f"permalake: {name}: whether the source goes on is not known: {shown(error)}\n")


def _show_runs(rows: list[StepRow], form: Literal["table", "json"], *, failed: bool) -> None:
    """Print the last try of each run, the newest run first; `failed`: of those whose last try failed."""
    newest = {(row.key.network, row.key.run_id): row for row in reversed(rows)}
    columns = ("run", *(name for name in _STEP if name not in {"try", "submit"}))
    records = [
        {"run": row.key.run_id, **_step(row)}
        for row in sorted(newest.values(), key=lambda row: row.began, reverse=True)
        if not failed or row.result.state in {"invalid", "failed"}
    ]
    shown_runs = [{name: record[name] for name in columns} for record in records]
    write(shown_runs, columns, form, sys.stdout, sys.stderr)
    if form == "table":
        sys.stdout.write("a run, step by step: permalake status --run RUN\n")


def _show_run(rows: list[StepRow], run: str, form: str) -> None:
    if not rows:
        raise ConfigError(
            f"run {run}: the lake knows no such run; see run_id in `permalake status --format json`"
        )
    if form == "json":
        records = [{name: plain(value) for name, value in asdict(row).items()} for row in rows]
        write(records, (), "json", sys.stdout, sys.stderr)
        return
    write([_step(row) for row in rows], _STEP, "table", sys.stdout, sys.stderr)


def _step(row: StepRow) -> dict[str, Any]:
    result = row.result
    outcome = [f"{store} {count} days" for store, count in (result.served or {}).items()]
    if result.days is not None:
        noun = "day" if len(result.days) == 1 else "days"
        outcome.append(f"{len(result.days)} {noun} {'carried' if row.key.step == CARRY else 'published'}")
    outcome += [result.reason] if result.reason else []
    return {
        "network": row.key.network,
        "days": f"{row.start}" if row.start == row.end else f"{row.start}..{row.end}",
        "step": row.key.step,
        "try": row.key.number,
        "state": result.state,
        "began": _short(row.began),
        "seconds": f"{result.seconds:.1f}",
        "submit": row.submit or "-",
        "rows": sum(result.rows.values()),
        "quarantined": result.quarantined,
        "outcome": "; ".join(outcome),
    }


def _with_stores(day: DayStatus, configured: tuple[Store, ...]) -> DayStatus:
    """Add the configured stores that have never received a published day."""
    return (
        replace(day, stores={**dict.fromkeys(store.name for store in configured), **day.stores})
        if day.published
        else day
    )


def _screen_lines(days: list[DayStatus]) -> Iterator[dict[str, Any]]:
    """Yield a line for each day; one for a range of days that were never built."""
    for (_, is_missing), group in groupby(days, key=lambda day: (day.network, day.error == NEVER_BUILT)):
        lines = list(group)
        if not is_missing:
            yield from map(_screen, lines)
            continue
        for first, last in ranges(day.date for day in lines):
            count = (last - first).days + 1
            remarks = lines[0].error if count == 1 else f"{lines[0].error}: {count:,} days"
            yield {**_screen(lines[0]), "date": format_range(first, last), "remarks": remarks}


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
