"""``permalake query``: SQL over the published lake, without Spark."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from permalake.cli.output import FORMAT_HELP, Format, Screen, sent_text
from permalake.config import Settings, load_settings
from permalake.errors import ConfigError, PermalakeError, line_of
from permalake.query_process import QueryLimits, Send, in_own_process, limit_memory

if TYPE_CHECKING:
    from permalake.lake import QueryResult


def command(  # noqa: PLR0917
    sql: Annotated[
        str | None,
        typer.Argument(metavar="SQL", help="One SELECT, in DuckDB's SQL; - or nothing: standard input."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Read the SQL from this file.")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the rows into this Parquet file.")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help=FORMAT_HELP)] = "table",
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of", metavar="T", help="Read the state at that time (RFC 3339; default zone UTC)."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Stop a query that takes longer.")
    ] = 300.0,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory for the query; beyond it, temporary files.")
    ] = "2GiB",
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Query the published lake. Tables are NETWORK.table; a network name with a dash is quoted.

    All tables are read in the state of one publication. JSON is one array of objects: integers as numbers,
    decimals as text, binary as hex, timestamps in UTC. Of columns with the same name, all but the first get
    a number. The statement can only read.

    Examples:
      permalake query "select * from shimmer.ms_analytics order by milestone_index"

      permalake query 'select count(*) from "chrysalis-mainnet".messages' --format json

      permalake query "select * from shimmer.date_cache" --as-of 2026-01-31T12:00:00Z

      permalake query "show tables"

      permalake query --file flows.sql --parquet flows.parquet
    """
    limits = QueryLimits(timeout, memory)
    screen = Screen.of(sys.stdout)
    question = QueryOrder(
        load_settings(config), _text(sql, file), _moment(as_of), limits, form, screen, parquet
    )
    print_answer(question)


@dataclass(frozen=True)
class QueryOrder:
    """A query, its limits, and how to print its rows."""

    settings: Settings
    sql: str
    as_of: datetime | None
    limits: QueryLimits
    form: Format
    screen: Screen
    parquet: Path | None = None


def print_answer(question: QueryOrder) -> None:
    """Run a query in a process of its own, and print its rows."""
    streams = {"out": sys.stdout, "log": sys.stderr}
    for name, text in in_own_process(_answer, (question,), question.limits):
        streams[name].write(text)


def _answer(send: Send, question: QueryOrder) -> None:
    """Send the rows as they are printed: parts of text, each with the name of its stream."""
    from permalake.cli.render import rows, write
    from permalake.domains import open_reader

    reader = open_reader(question.settings)
    limit_memory(question.limits)
    result = reader.answer(question.sql, question.as_of, question.limits)
    if question.parquet is not None:
        count = _write_parquet(result, question.parquet)
        send(("log", f"{question.parquet}: {count} rows\n"))
        return
    records = rows(result.batches(), result.names, result.kinds)
    out, log = (sent_text(partial(_part, send, name), question.screen) for name in ("out", "log"))
    write(records, result.names, question.form, out, log)
    out.flush()
    log.flush()


def _write_parquet(result: QueryResult, target: Path) -> int:
    """Write the rows into a file that appears when it is whole; return their number."""
    import pyarrow.parquet as pq

    draft, count = target.with_name(f".{target.name}.{os.getpid()}"), 0
    try:
        with pq.ParquetWriter(draft, result.schema) as writer:
            for batch in result.batches():
                writer.write_batch(batch)
                count += batch.num_rows
        draft.replace(target)
    except OSError as error:
        raise PermalakeError(f"--parquet {target}: {error.strerror or line_of(error)}") from None
    finally:
        draft.unlink(missing_ok=True)
    return count


def _text(sql: str | None, file: Path | None) -> str:
    """Return the statement: the argument, the file's text, or standard input's."""
    if file is not None:
        if sql is not None:
            raise ConfigError("--file: the SQL stands in the arguments too; give one of them")
        try:
            return file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--file {file}: {line_of(error)}") from None
    if sql not in {None, "-"}:
        return str(sql)
    if sql is None and sys.stdin.isatty():
        raise ConfigError('no SQL; write it in quotes, such as permalake query "show tables"')
    return sys.stdin.read()


def _part(send: Send, name: str, text: str) -> None:
    send((name, text))


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--as-of {text}: not a time; write it as 2022-09-28T12:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
