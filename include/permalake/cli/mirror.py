"""``permalake mirror``: copy the days of publishers, prove them again, compare them with what was signed."""

from __future__ import annotations

from typing import Annotated

import typer

from permalake.errors import ConfigError
from permalake.pipeline import request


def command(  # noqa: PLR0917
    urls: Annotated[
        list[str],
        typer.Argument(
            metavar="URL…", help="Exports: folder, s3://…, gs://…, https://…; asked in this order."
        ),
    ],
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="A publisher's public key, or a file that holds it; for each."),
    ] = None,
    network: Annotated[str | None, typer.Option(metavar="N", help="This network alone.")] = None,
    first: Annotated[str | None, typer.Option("--from", metavar="D", help="Days from here on.")] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="D2", help="Days up to here.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Try days again that did not hold before.")] = False,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Build the days of publishers in this lake, from their raw bytes, by the steps of `permalake run`.

    Every rule is checked again, and before a day is published each of its tables is compared with the signed
    manifest. A day that differs stays unpublished; table and first row are named, and the next publisher is
    asked. Days that are copied already are left; a mirror that was interrupted goes on. The networks are
    configured with the reader's own keys. docs/trust.md says what this proves.

    Examples:
      permalake mirror https://example.org/permalake --key example.org/permalake+1a2b3c4d+AX…

      permalake mirror /mnt/copy s3://bucket/copy --network shimmer --from 2022-09-28 --to 2022-09-30
    """
    from permalake.local.mirrors import Chosen, mirror
    from permalake.transparency.keys import trusted_key

    chosen = Chosen(network, request.parse_day("--from", first), request.parse_day("--to", last))
    if chosen.first and chosen.last and chosen.last < chosen.first:
        raise ConfigError(f"--to {last} lies before --from {first}; swap the two days")
    keys = [str(trusted_key(text)) for text in key or ()]
    raise typer.Exit(mirror(urls, keys, chosen, force=force, config=config))
