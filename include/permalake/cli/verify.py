"""``permalake verify``: check the lake, or a copy of it, against its signed manifests."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from permalake.cli.chosen_days import FirstDay, LastDay, Network, chosen_days
from permalake.config import load_settings


def command(  # noqa: PLR0917
    source: Annotated[
        str | None, typer.Argument(help="Folder, s3://… or https://… of an export; without it, this lake.")
    ] = None,
    network: Network = None,
    day: FirstDay = None,
    last: LastDay = None,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="The publisher's public key, or a file that holds it.")
    ] = None,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Check a copy of the lake: who signed it, that nothing was taken away, that every row is there.

    Without SOURCE, days of this lake that are published and not signed yet are signed first. The first
    difference ends the check with exit code 1, and is named: a file, or a table and its day. The result says
    what is proven, what rests on whose keys, and what is not covered; docs/trust.md says more.

    Examples:
      permalake verify

      permalake verify https://example.org/permalake --key example.org/permalake+1a2b3c4d+AX…

      permalake verify /mnt/copy --network shimmer --date 2022-09-28
    """
    from permalake.domains import domain_of, table_of
    from permalake.lake.identity import open_database
    from permalake.transparency.copies import Copy, ExportCopy
    from permalake.transparency.keys import trusted_key
    from permalake.transparency.places import open_place
    from permalake.transparency.report import report
    from permalake.transparency.signing import signed_lake
    from permalake.transparency.verify import verify

    is_chosen = chosen_days(network, day, last)
    public = trusted_key(key) if key else None
    copy: Copy
    if source is None:
        settings = load_settings(config)
        copy, own = signed_lake(settings, open_database(settings), domain_of)
        public = public or own
    else:
        copy = ExportCopy(open_place(source))
    checked = verify(
        copy,
        table_of,
        key=public,
        wanted=lambda entry: is_chosen(entry.network, entry.date),
        progress=_progress,
    )
    _progress("")
    sys.stdout.write("\n".join(report(checked)) + "\n")


def _progress(line: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
