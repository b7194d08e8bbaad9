"""``permalake export``: write the signed days as files that anybody can copy and check."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from permalake.cli.chosen_days import FirstDay, LastDay, Network, chosen_days
from permalake.config import load_settings
from permalake.errors import ConfigError, PermalakeError

if TYPE_CHECKING:
    from permalake.transparency.export import Exported

_PAUSE = 30.0


def command(  # noqa: PLR0917
    target: Annotated[str, typer.Argument(help="Folder, s3://BUCKET/PATH or gs://BUCKET/PATH.")],
    network: Network = None,
    day: FirstDay = None,
    last: LastDay = None,
    follow: Annotated[bool, typer.Option(help="Go on: export what is published, until interrupted.")] = False,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Write the signed days as Parquet files with manifests and log, for any web server or bucket.

    Only what changed is written again. A part, chosen by --network and --date, is checked with the same
    options: the log names every day. A README beside the files says how to read and check them.

    Examples:
      permalake export /var/www/permalake

      permalake export s3://bucket/permalake --network shimmer --follow
    """
    settings = load_settings(config)

    from permalake.domains import domain_of, table_of
    from permalake.lake.identity import open_database
    from permalake.transparency.export import Export
    from permalake.transparency.keys import signing_key
    from permalake.transparency.log import read_log
    from permalake.transparency.places import FolderPlace
    from permalake.transparency.signing import FOLDER, signed_lake

    key = signing_key()
    if key is None:
        raise ConfigError("nothing is signed here; `permalake keys create --name NAME` makes a key and signs")
    is_chosen = chosen_days(network, day, last)
    database = open_database(settings)
    size = -1
    while True:
        try:
            lake, _ = signed_lake(settings, database, domain_of)
            log = read_log(lake.place, FOLDER, [key.verifier])
            if log is None:
                raise ConfigError("nothing is published yet; `permalake run` builds days")
            if log.checkpoint.size != size:
                export = Export(
                    lake,
                    log,
                    key.verifier,
                    table_of,
                    lambda entry: is_chosen(entry.network, entry.date),
                    _options(network, day, last),
                )
                done = export.write(FolderPlace(target))
                size = log.checkpoint.size
                sys.stdout.write(f"{target}: {_counts(done)}\n")
                sys.stdout.flush()
        except PermalakeError as error:
            if not follow:
                raise
            sys.stderr.write(f"permalake: {error}\n")
        if not follow:
            return
        time.sleep(_PAUSE)


def _counts(done: Exported) -> str:
    """Return what an export did, in words."""
    days = f"{done.days:,} day{'s' * (done.days != 1)}"
    return f"{days}; {done.written:,} files written ({done.bytes:,} bytes), {done.kept:,} left as they were"


def _options(network: str | None, first: datetime | None, last: datetime | None) -> str:
    """Return the options that choose the exported part, to be named when it is checked."""
    chosen = {"network": network, "date": first and first.date(), "to": last and last.date()}
    return "".join(f" --{name} {value}" for name, value in chosen.items() if value)
