"""``permalake tables``: the data dictionary, from the table contracts."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from permalake.contracts import Table
from permalake.contracts.schema import Column
from permalake.contracts.views import LakeView
from permalake.domains import DOMAINS
from permalake.errors import ConfigError

ALL_TABLES: dict[str, Table] = {name: table for domain in DOMAINS for name, table in domain.tables.items()}
ALL_VIEWS: dict[str, LakeView] = {view.name: view for domain in DOMAINS for view in domain.views}


def rule(column: Column) -> str:
    """Return the contract's rule for a column's values in words; empty without a rule."""
    rules = []
    if column.values is not None:
        rules.append("one of " + ", ".join(str(value) for value in column.values))
    if column.pattern is not None:
        rules.append(f"matches {column.pattern}")
    if column.minimum is not None:
        rules.append(f"at least {column.minimum}")
    if column.maximum is not None:
        rules.append(f"at most {column.maximum}")
    return "; ".join(rules)


def as_json(table: Table | LakeView) -> dict[str, object]:
    """Return the contract as plain values for ``--format json``; a view has neither key nor partition."""
    columns = [
        {
            "name": column.name,
            "type": column.type,
            "nullable": not column.required,
            "rule": rule(column),
            "meaning": column.doc,
        }
        for column in table.columns
    ]
    return {
        "table": table.name,
        "namespace": {"iota": "NETWORK", "wormhole": "wormhole", "all": "every namespace"}[table.group],
        "meaning": table.doc,
        "key": list(table.key) if isinstance(table, Table) else [],
        "partition": "date" if isinstance(table, Table) else None,
        "columns": columns,
    }


def command(
    name: Annotated[str | None, typer.Argument(help="One table in full; without it, all tables.")] = None,
    format_: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
    config: Annotated[str | None, typer.Option(help="Configuration file (not needed here).")] = None,  # noqa: ARG001
) -> None:
    """Print the data dictionary: every table, its key, its columns and what they mean.

    Examples: permalake tables · permalake tables ms_analytics · permalake tables --format json
    """
    from rich.console import Console
    from rich.table import Table as Grid

    known: dict[str, Table | LakeView] = {**ALL_TABLES, **ALL_VIEWS}
    if name is not None and name not in known:
        raise ConfigError(f"no table {name}; `permalake tables` lists them")
    chosen = [known[name]] if name else list(known.values())
    if format_ == "json":
        typer.echo(json.dumps([as_json(table) for table in chosen], indent=1))
        return
    console = Console()
    if name is None:
        grid = Grid("Table", "Namespace", "Key", "Meaning")
        for table in chosen:
            key = ", ".join(table.key) if isinstance(table, Table) else "(a view)"
            grid.add_row(table.name, str(as_json(table)["namespace"]), key, table.doc)
        console.print(grid)
        return
    table = chosen[0]
    stored = f"Key: {', '.join(table.key)}. Partition: date." if isinstance(table, Table) else "A view."
    console.print(f"[bold]{table.name}[/]: {table.doc}\n{stored}")
    grid = Grid("Column", "Type", "Null", "Meaning", "Rule")
    for column in table.columns:
        grid.add_row(column.name, column.type, "" if column.required else "yes", column.doc, rule(column))
    console.print(grid, markup=False)
