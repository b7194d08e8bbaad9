"""``permalake maintain``: compaction, expiry and cleaning of the lake, without a scheduler."""

from __future__ import annotations

import secrets
import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from permalake.config import load_settings


def command(
    network: Annotated[str | None, typer.Option(metavar="N", help="One network only.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done; change nothing.")
    ] = False,
    confirm_removal: Annotated[
        bool, typer.Option("--confirm-removal", help="Remove files even if they are most of a network's.")
    ] = False,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Compact small files, expire states beyond the retention, and remove unneeded files.

    Prints a line per changed table. Safe while builds run: staged work and new publications stay. The key
    retention_days of [lake] says how many days of history are kept (default 30).

    Examples:
      permalake maintain --dry-run

      permalake maintain --network shimmer
    """
    settings = load_settings(config)

    from permalake.domains import domain_of
    from permalake.paths import HOME
    from permalake.pipeline import maintenance

    run_id = f"maintain-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
    networks = maintenance.chosen(settings, network)
    lines = 0
    if not dry_run and (fragmented := maintenance.fragmented_networks(settings, domain_of, networks)):
        log = HOME / "logs" / maintenance.JOB / f"{run_id}.log"
        for line in maintenance.compact(settings, fragmented, run_id, log, config):
            lines += _say(line)
    for done in maintenance.housekeeping(
        settings, domain_of, networks, run_id, dry_run=dry_run, confirmed=confirm_removal
    ):
        if done.anything:
            lines += _say(f"would be done: {done}" if dry_run else str(done))
    if not lines:
        _say("nothing to do")


def _say(line: str) -> int:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    return 1
