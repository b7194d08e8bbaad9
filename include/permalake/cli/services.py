"""``permalake services``: Cassandra and the Bigtable emulator on this machine."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Literal

import typer

from permalake.local.services import control

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Start, stop and watch Cassandra and the Bigtable emulator on this machine. Data, logs and pid "
    "files lie under PERMALAKE_HOME/services; no Docker is needed.",
)

CassandraPort = Annotated[int | None, typer.Option(min=1, max=65535, help="Port of CQL. [default: 9042]")]
BigtablePort = Annotated[
    int | None,
    typer.Option(
        min=1, max=65535, help="Port of the emulator. [default: BIGTABLE_EMULATOR_HOST's, else 8086]"
    ),
]
Config = Annotated[str | None, typer.Option(help="Configuration file (its cassandra.port is the default).")]


def _servers(
    config: str | None, cassandra_port: int | None, bigtable_port: int | None
) -> dict[str, control.Server]:
    from permalake.config import load_settings

    configured = load_settings(config).cassandra
    port = cassandra_port or (configured.port if "port" in configured.model_fields_set else None)
    return control.servers(port, bigtable_port)


@app.command()
def up(
    cassandra_port: CassandraPort = None, bigtable_port: BigtablePort = None, config: Config = None
) -> None:
    """Start both servers and wait until they answer; the first start fetches them.

    Example: permalake services up --cassandra-port 19042
    """
    chosen = _servers(config, cassandra_port, bigtable_port)
    control.up(chosen, typer.echo)
    typer.echo(
        f"for clients of Bigtable: export {control.EMULATOR_VARIABLE}=127.0.0.1:{chosen['bigtable'].port}"
    )


@app.command()
def down(config: Config = None) -> None:
    """Stop both servers. Cassandra keeps its data, the emulator loses it."""
    control.down(_servers(config, None, None), typer.echo)


@app.command()
def status(
    format_: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
    config: Config = None,
) -> None:
    """Print the state of each server: up, down, or sick (running without an answer).

    The exit code is 1 unless both are up.
    """
    states = control.status(_servers(config, None, None))
    if format_ == "json":
        typer.echo(json.dumps([asdict(service) for service in states], indent=1))
    else:
        for service in states:
            pid = f" pid {service.pid}" if service.pid else ""
            typer.echo(f"{service.name}: {service.state} {service.address}{pid}, log {service.log}")
    if any(service.state != "up" for service in states):
        raise typer.Exit(1)
