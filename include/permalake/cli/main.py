"""The command line ``permalake``; each command is a module, loaded when it is called."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from permalake.errors import PermalakeError, line_of

DEBUG = "PERMALAKE_DEBUG"

# The lines of `permalake --help` stand here, so that help loads no module.
COMMANDS = {
    "run": "Build days by the steps of the DAG, without Airflow.",
    "live": "Follow a network between the days that are built.",
    "query": "Query the published lake in SQL.",
    "serve": "Serve the published lake as a REST API.",
    "statement": "Print the account statement of an address.",
    "status": "Show what is built, audited and published, per network and day.",
    "maintain": "Compact small files, expire old states, remove unneeded files.",
    "relocate": "Make a copied or moved lake whole at its new place.",
    "restore": "Rebuild a lost catalog from the warehouse.",
    "verify": "Check the lake, or a copy of it, against signed manifests.",
    "export": "Write the signed days as files that anybody can copy and check.",
    "mirror": "Copy the days of publishers, and prove them again.",
    "keys": "Create and show the key that signs the published days.",
    "quarantine": "List rejected input with its reason, and retry it.",
    "services": "Run Cassandra and the Bigtable emulator on this machine.",
    "simulate": "Write valid synthetic data sets of any size from a seed.",
    "tables": "Print the data dictionary: every table and column.",
}


class LazyGroup(TyperGroup):
    """A group that loads ``permalake.cli.NAME`` when command NAME is used: its ``command`` or its ``app``."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Load a command; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"permalake.cli.{cmd_name}")
        if hasattr(module, "app"):
            return _named(typer.main.get_command(module.app), cmd_name)
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name=cmd_name)(module.command)
        return _named(typer.main.get_command(single), cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the help lines of all commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _named(command: Any, name: str) -> Any:
    command.name = name
    return command


app = typer.Typer(cls=LazyGroup, add_completion=False, rich_markup_mode=None)


@app.callback()
def _permalake() -> None:
    """Permalake: a permanode for the IOTA Tangle and an event store for Wormhole, as a lakehouse.

    Days are built from verified raw data, audited, and published whole into an Iceberg lake.

    Examples:
      permalake run iota --date 2022-09-28

      permalake query "select * from shimmer.ms_analytics order by milestone_index"

      permalake status --network shimmer

      permalake tables ms_analytics

    Configuration: permalake.toml in this folder, --config FILE, or PERMALAKE_CONFIG; any key can be set by
    environment, for example PERMALAKE_LAKE__WAREHOUSE. Exit codes: 0 done, 1 failed, 2 wrong usage, wrong
    configuration or invalid input.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; an error is one line on standard error."""
    # What a command imports lives as long as it: to look for garbage among it took a seventh of its start.
    gc.set_threshold(50_000)
    command: Any = typer.main.get_command(app)
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = command.main(args=given or ["--help"], prog_name="permalake", standalone_mode=False)
        sys.exit(code or 0 if given else 2)
    except PermalakeError as error:
        _fail(str(error), error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        _fail("interrupted", 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    # The last resort: no trace reaches the user unless asked for.
    except Exception as error:  # noqa: BLE001
        if hasattr(error, "format_message"):  # the command line itself was wrong
            _usage(error)
        _fail(f"{line_of(error).rstrip('.')} (set {DEBUG}=1 for the trace)", 1)


def _usage(error: Any) -> None:
    context = getattr(error, "ctx", None)
    where = context.command_path if context else "permalake"
    _fail(f"{_sentence(error.format_message())}; see `{where} --help`", 2)


def _sentence(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


def _fail(message: str, code: int) -> None:
    if os.environ.get(DEBUG) and sys.exc_info()[0]:
        import traceback

        traceback.print_exc()
    from permalake.sanitize import LONGEST_MESSAGE, shown

    sys.stderr.write(f"permalake: {shown(' '.join(message.split()), LONGEST_MESSAGE)}\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
