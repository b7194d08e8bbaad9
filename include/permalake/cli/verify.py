"""``permalake verify``: check the lake, or a copy of it, against its signed manifests."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from permalake.cli.chosen_days import FirstDay, LastDay, Network, chosen_days
from permalake.config import Settings, load_settings
from permalake.errors import ConfigError

if TYPE_CHECKING:
    from permalake.transparency.deep import Derivation
    from permalake.transparency.documents import DayProof


def command(  # noqa: PLR0917
    source: Annotated[
        str | None,
        typer.Argument(
            help="Folder, s3://…, gs://… or https://… of an export, a proof that a page gave (FILE.json): "
            "of what is signed, or of a block in the Tangle; a statement with proofs (FILE.zip); without it, "
            "this lake."
        ),
    ] = None,
    network: Network = None,
    day: FirstDay = None,
    last: LastDay = None,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="The publisher's public key, or a file that holds it.")
    ] = None,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Derive the days again from their raw bytes: ids, signatures, order, roots."
        ),
    ] = False,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Check a copy of the lake: who signed it, that nothing was taken away, that every row is there.

    Without SOURCE, days of this lake that are published and not signed yet are signed first. The first
    difference ends the check with exit code 1, and is named: a file, or a table and its day. The result says
    what is proven, what rests on whose keys, and what is not covered; docs/trust.md says more.

    With --deep the publisher is not believed either: every id is hashed again, every signature checked, every
    milestone's order and roots computed, and each table that follows is compared row by row.

    Examples:
      permalake verify

      permalake verify --deep --network shimmer --date 2022-09-28

      permalake verify https://example.org/permalake --key example.org/permalake+1a2b3c4d+AX…

      permalake verify /mnt/copy --network shimmer --date 2022-09-28

      permalake verify proof.json --key example.org/permalake+1a2b3c4d+AX…

      permalake verify statement.zip
    """
    from permalake.domains import domain_of, table_of
    from permalake.lake.identity import open_database
    from permalake.transparency.copies import Copy, ExportCopy
    from permalake.transparency.keys import trusted_key
    from permalake.transparency.places import open_place
    from permalake.transparency.proofs import check_proof, read_proof
    from permalake.transparency.report import report, report_proof
    from permalake.transparency.signing import signed_lake
    from permalake.transparency.verify import verify

    is_chosen = chosen_days(network, day, last)
    public = trusted_key(key) if key else None
    if source is not None and source.endswith(".json"):
        proof = read_proof(Path(source))
        if "milestone" in proof:
            from permalake.cli.inclusion_proofs import report_inclusion

            lines = report_inclusion(load_settings(config), network, proof)
        else:
            lines = report_proof(check_proof(cast("DayProof", proof), public))
        sys.stdout.write("\n".join(lines) + "\n")
        return
    if source is not None and source.endswith(".zip"):
        from permalake.cli.statement_check import check_statement

        sys.stdout.write("\n".join(check_statement(load_settings(config), network, Path(source))) + "\n")
        return
    copy: Copy
    settings = load_settings(config)
    if source is None:
        copy, own_key = signed_lake(settings, open_database(settings), domain_of)
        public = public or own_key
    else:
        copy = ExportCopy(open_place(source))
    checked = verify(
        copy,
        table_of,
        key=public,
        is_checked=lambda entry: is_chosen(entry.network, entry.date),
        derivation_of=partial(_derivation, settings) if deep else None,
        progress=_progress,
    )
    _progress("")
    sys.stdout.write("\n".join(report(checked)) + "\n")


def _progress(line: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")


def _derivation(settings: Settings, network: str) -> Derivation:
    from permalake.domains import domain_of

    try:
        return domain_of(network).derivation_of(settings, network)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"--deep needs what builds days, and {error.name} is not installed: "
            "pip install 'permalake[airflow]'"
        ) from None
