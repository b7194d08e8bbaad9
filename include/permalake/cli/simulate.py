"""``permalake simulate``: valid synthetic data sets from a seed, in the format of a source."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Write a synthetic data set with valid signatures and roots, derived from a seed. Equal parameters "
    "give equal bytes.",
)

_WORTH_SPARK = 200_000

Out = Annotated[Path, typer.Option(metavar="DIR", help="Folder to write, empty or new.")]
Seed = Annotated[int, typer.Option(help="Seed of all random choices.")]
Days = Annotated[int, typer.Option(min=1, help="Number of UTC days.")]
Start = Annotated[
    datetime, typer.Option(formats=["%Y-%m-%d"], metavar="D", help="The first day, YYYY-MM-DD.")
]
Zip = Annotated[bool, typer.Option("--gzip/--no-gzip", help="Whether the files are compressed.")]
Config = Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file (not needed here).")]


@app.command()
def iota(  # noqa: PLR0917
    out: Out,
    protocol: Annotated[Literal["stardust", "chrysalis"], typer.Option(help="Protocol.")] = "stardust",
    messages: Annotated[int, typer.Option(min=1, help="Messages of all days together.")] = 10_000,
    days: Days = 1,
    start: Start = datetime(2023, 1, 1, tzinfo=UTC),
    milestones_per_day: Annotated[
        int | None,
        typer.Option(min=1, help="[default: one in ten seconds, fewer when there are few messages]"),
    ] = None,
    seed: Seed = 1,
    hrp: Annotated[str | None, typer.Option(help="Prefix of addresses. [default: smr, or iota]")] = None,
    format_: Annotated[
        Literal["archive_rest", "chronicle"],
        typer.Option("--format", help="Source format; chronicle is for Chrysalis and never compressed."),
    ] = "archive_rest",
    gzip: Zip = True,
    first_milestone: Annotated[int, typer.Option(min=1, help="Index of the first milestone.")] = 1_000,
    transactions: Annotated[float, typer.Option(help="Share of messages that carry one.")] = 0.1,
    conflicts: Annotated[float, typer.Option(help="Share of transactions made to conflict.")] = 0.04,
    reattachments: Annotated[
        float, typer.Option(help="Share of transactions that are attached again.")
    ] = 0.03,
    wallets: Annotated[int, typer.Option(min=1, help="Number of addresses in use.")] = 2_000,
    tags: Annotated[int, typer.Option(min=1, help="Number of tags in use.")] = 1_000,
    rhythm: Annotated[
        bool,
        typer.Option("--rhythm", help="Make days busier than nights, and working days than weekends."),
    ] = False,
    one_ledger: Annotated[
        bool,
        typer.Option("--one-ledger", help="Spend outputs of earlier days too; it is made in one process."),
    ] = False,
    empty_day: Annotated[
        list[int] | None, typer.Option(min=1, help="A day without milestones, from 1; may be repeated.")
    ] = None,
    config: Config = None,  # noqa: ARG001
) -> None:
    """Write a tangle with its ledger, in the format of a source.

    Examples:
      permalake simulate iota --messages 100000 --days 3 --seed 7 --out /data/tangle

      permalake simulate iota --protocol chrysalis --messages 1000000 --out /data/chrysalis

      permalake simulate iota --protocol chrysalis --format chronicle --out /data/logs
    """
    from permalake_simulate.iota.tangle_generator import NETWORK, network_snippet, simulate
    from permalake_simulate.iota.tangle_world import IotaWorld

    world = IotaWorld(
        protocol=protocol,
        messages=messages,
        days=days,
        start=start.date(),
        seed=seed,
        bech32_hrp=hrp or ("smr" if protocol == "stardust" else "iota"),
        milestones_per_day=milestones_per_day or 0,
        first_milestone=first_milestone,
        transaction_share=transactions,
        conflict_share=conflicts,
        reattachment_share=reattachments,
        wallets=wallets,
        tags=tags,
        layout=format_,
        rhythm=rhythm,
        one_ledger=one_ledger,
        empty_days=tuple(day - 1 for day in empty_day or ()),
    )
    begun = time.monotonic()
    totals = simulate(_spark(messages), world, out, packed=gzip, say=typer.echo)
    seconds = time.monotonic() - begun
    for day, total in totals.items():
        conflicting = sum(total.conflicts.values())
        typer.echo(
            f"{day}: milestones {total.first_milestone} to {total.last_milestone}, {total.messages:,} "
            f"messages, {total.included_transactions:,} included and {conflicting:,} conflicting "
            f"transactions, {total.transferred_tokens} tokens transferred"
        )
    typer.echo(f"{seconds:.1f} s, {messages / seconds:,.0f} messages a second")
    typer.echo(f"synthetic data in {out}; its section of permalake.toml ({out / NETWORK}):")
    typer.echo(network_snippet(world))


@app.command()
def wormhole(  # noqa: PLR0917
    out: Out,
    messages: Annotated[int, typer.Option(min=1, help="Messages of all days together.")] = 10_000,
    days: Days = 1,
    start: Start = datetime(2024, 1, 1, tzinfo=UTC),
    seed: Seed = 1,
    gzip: Zip = True,
    guardians: Annotated[int, typer.Option(min=1, max=255, help="Guardians in a set.")] = 19,
    bad: Annotated[float, typer.Option(help="Share of messages that end in quarantine.")] = 0.02,
    copies: Annotated[float, typer.Option(help="Share of messages that the source holds twice.")] = 0.01,
    addresses: Annotated[int, typer.Option(min=1, help="Receivers on each chain.")] = 2_000,
    observed: Annotated[float, typer.Option(help="Share of messages with observations of guardians.")] = 0.01,
    config: Config = None,  # noqa: ARG001
) -> None:
    """Write VAAs of synthetic guardians and bridges, with reference data and prices.

    Example: permalake simulate wormhole --messages 50000 --days 7 --seed 3 --out /data/vaas
    """
    from permalake_simulate.wormhole.bridge_world import WormholeWorld
    from permalake_simulate.wormhole.vaa_generator import NETWORK, simulate, wormhole_snippet

    world = WormholeWorld(messages, days, start.date(), seed, guardians, bad, copies, addresses, observed)
    begun = time.monotonic()
    totals = simulate(_spark(20 * messages), world, out, packed=gzip)
    seconds = time.monotonic() - begun
    for day, tally in totals.items():
        reasons = ", ".join(f"{count} {reason}" for reason, count in tally.quarantined.items())
        typer.echo(
            f"{day}: {tally.documents:,} documents, {tally.published:,} messages to publish, "
            f"{tally.token_transfers:,} token transfers; to quarantine: {reasons or 'none'}"
        )
    typer.echo(f"{seconds:.1f} s, {messages / seconds:,.0f} messages a second")
    typer.echo(f"synthetic data in {out}; its sections of permalake.toml ({out / NETWORK}):")
    typer.echo(wormhole_snippet(world))


def _spark(effort: int) -> SparkSession | None:
    """Return a local Spark session; None if this process is done before a session would start."""
    if effort < _WORTH_SPARK:
        return None
    from permalake.spark.session import session

    spark = session(
        "simulate", **{"spark.sql.extensions": "", "spark.ui.enabled": "false", "spark.log.level": "ERROR"}
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark
