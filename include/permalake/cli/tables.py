"""``permalake tables``: the data dictionary, from the table contracts."""

from __future__ import annotations

import difflib
import json
import sys
from typing import Annotated, Literal

import typer

from permalake.contracts import Table
from permalake.contracts.namespaces import LIVE_SUFFIX, contracts_in
from permalake.contracts.views import LakeView
from permalake.domains import DOMAINS, domain_of
from permalake.errors import ConfigError

ALL_TABLES: dict[str, Table] = {
    name: table for domain in DOMAINS for name, table in {**domain.tables, **domain.head_tables}.items()
}
ALL_VIEWS: dict[str, LakeView] = {view.name: view for domain in DOMAINS for view in domain.views}

_WIDE = 100_000


def as_json(table: Table | LakeView) -> dict[str, object]:
    """Return the contract as plain values for ``--format json``; a view has neither key nor partition."""
    columns = [
        {
            "name": column.name,
            "type": column.type,
            "nullable": not column.required,
            "rule": column.rule,
            "meaning": column.doc,
        }
        for column in table.columns
    ]
    return {
        "table": table.name,
        "namespace": _namespace(table),
        "meaning": table.doc,
        "key": list(table.key) if isinstance(table, Table) else [],
        "partition": "date" if isinstance(table, Table) else None,
        "columns": columns,
    }


def _namespace(table: Table | LakeView) -> str:
    if isinstance(table, Table) and table.commit == "head":
        return f"NETWORK{LIVE_SUFFIX}"
    return {"iota": "NETWORK", "wormhole": "wormhole", "all": "every namespace"}[table.group]


def choose(name: str | None, network: str | None) -> tuple[list[Table | LakeView], bool]:
    """Return the tables and views that are meant, and whether they are one by its full name.

    Args:
        name: A name, also with its network before it, or a part of names or meanings; None: all.
        network: Namespace that they lie in; None: any.

    Raises:
        ConfigError: if there is none; it names those that may be meant.
    """
    before, _, bare = (name or "").rpartition(".")
    network = network or before.strip('"') or None
    listed: dict[str, Table | LakeView] = {**ALL_TABLES, **ALL_VIEWS}
    if network is not None:
        domain = domain_of(network)
        within = {*contracts_in(domain_of, network), *(view.name for view in domain.views)}
        listed = {key: table for key, table in listed.items() if key in within}
    if bare in listed:
        return [listed[bare]], True
    word = bare.casefold()
    matches = [table for key, table in listed.items() if word in key or word in table.doc.casefold()]
    named = [table for table in matches if word in table.name]
    matches = matches or [table for table in listed.values() if columns_with(table, word)]
    if not matches:
        near = difflib.get_close_matches(bare, [*ALL_TABLES, *ALL_VIEWS], n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "`permalake tables` lists them"
        raise ConfigError(f"no table {name}; {hint}")
    return named or matches, False


def columns_with(table: Table | LakeView, word: str) -> list[str]:
    """Return the columns that a word stands in, in their names or their meanings."""
    return [column.name for column in table.columns if word in column.name or word in column.doc.casefold()]


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A table in full, as NAME or NETWORK.NAME, or a word to look for in tables, else in "
            "columns; without it, all."
        ),
    ] = None,
    network: Annotated[str | None, typer.Option(metavar="N", help="Tables of one network only.")] = None,
    format_: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
    config: Annotated[str | None, typer.Option(help="Configuration file (not needed here).")] = None,  # noqa: ARG001
) -> None:
    """Print the data dictionary: every table, its key, its columns and what they mean.

    Examples:
      permalake tables

      permalake tables wormhole.tvl_daily

      permalake tables tvl

      permalake tables usd

      permalake tables --network shimmer

      permalake tables ms_analytics --format json
    """
    from rich.console import Console
    from rich.table import Table as Grid

    chosen, is_whole = choose(name, network)
    if format_ == "json":
        typer.echo(json.dumps([as_json(table) for table in chosen], indent=1))
        return
    console = Console(width=None if sys.stdout.isatty() else _WIDE)
    if not is_whole:
        word = (name or "").rpartition(".")[2].casefold()
        by_column = word and not any(word in table.name or word in table.doc.casefold() for table in chosen)
        grid = Grid("Table", "Namespace", "Columns" if by_column else "Key", "Meaning")
        grid.columns[0].no_wrap = True
        for table in chosen:
            key = ", ".join(table.key) if isinstance(table, Table) else "(a view)"
            shown_keys = ", ".join(columns_with(table, word)) if by_column else key
            grid.add_row(table.name, str(as_json(table)["namespace"]), shown_keys, table.doc)
        console.print(grid)
        return
    table = chosen[0]
    stored = f"Key: {', '.join(table.key)}. Partition: date." if isinstance(table, Table) else "A view."
    console.print(f"[bold]{table.name}[/]: {table.doc}\n{stored}")
    grid = Grid("Column", "Type", "Null", "Meaning", "Rule")
    grid.columns[0].no_wrap = True
    for column in table.columns:
        grid.add_row(column.name, column.type, "" if column.required else "yes", column.doc, column.rule)
    console.print(grid, markup=False)
