"""``permalake query``: SQL over the published lake, without Spark."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from permalake.cli.output import FORMAT_HELP, Format, Screen, sent_text
from permalake.config import Settings, load_settings
from permalake.contracts.rows import Row
from permalake.errors import ConfigError, PermalakeError, line_of
from permalake.query_process import DEFAULT_LIMITS, QueryLimits, Send, in_own_process, limit_memory

if TYPE_CHECKING:
    from permalake.cli.shell import Words
    from permalake.lake.published import AsOf
    from permalake.lake.query import QueryResult

_DATE_DIGITS = len("20220928")


def command(  # noqa: PLR0917
    sql: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL",
            help="One SELECT, in DuckDB's SQL; -: standard input; nothing, on a terminal: a shell.",
        ),
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
            "--as-of",
            metavar="T",
            help="Read the state at that time (RFC 3339; default zone UTC), or that of publication T.",
        ),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Stop a query that takes longer.")
    ] = DEFAULT_LIMITS.timeout,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory for the query; beyond it, temporary files.")
    ] = DEFAULT_LIMITS.memory,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Query the published lake. Tables are NETWORK.table; a network name with a dash is quoted.

    All tables are read in the state of one publication. JSON is one array of objects: integers as numbers,
    decimals as text, binary as hex, timestamps in UTC. Of columns with the same name, all but the first get
    a number. The statement can only read.

    Without SQL on a terminal a shell opens: statements end with a semicolon, Tab completes tables and
    columns, and PERMALAKE_HOME/query_history keeps what was entered.

    Examples:
      permalake query "select * from shimmer.ms_analytics order by milestone_index"

      permalake query 'select count(*) from "chrysalis-mainnet".messages' --format json

      permalake query "select * from shimmer.date_cache" --as-of 2026-01-31T12:00:00Z

      permalake query "show tables"

      permalake query --file flows.sql --parquet flows.parquet
    """
    limits = QueryLimits(timeout, memory)
    screen = Screen.of(sys.stdout)
    settings, moment = load_settings(config), _moment(as_of)
    if sql is None and file is None and sys.stdin.isatty():
        if parquet is not None:
            raise ConfigError("--parquet: the shell prints rows; give the SQL in the arguments")
        _open_shell(QueryOrder(settings, "", moment, limits, form, screen))
        return
    print_answer(QueryOrder(settings, _text(sql, file), moment, limits, form, screen, parquet))


def _open_shell(order: QueryOrder) -> None:
    """Answer the statements of a terminal, each as a query of its own."""
    from permalake.cli.shell import columns_query, run_shell, words_of

    def load() -> Words:
        return words_of(answered(replace(order, sql=columns_query())))

    run_shell(lambda sql: print_answer(replace(order, sql=sql)), load)


@dataclass(frozen=True)
class QueryOrder:
    """A query, its limits, and how to print its rows."""

    settings: Settings
    sql: str
    as_of: AsOf | None
    limits: QueryLimits
    form: Format
    screen: Screen
    parquet: Path | None = None


def answered(question: QueryOrder) -> list[Row]:
    """Return the rows of a query, run in a process of its own, as JSON values."""
    order = replace(question, form="json", screen=Screen(False, "utf-8"), parquet=None)
    answer = in_own_process(_answer, (order,), order.limits)
    rows: list[Row] = json.loads("".join(text for name, text in answer if name == "out"))
    return rows


def print_answer(question: QueryOrder) -> None:
    """Run a query in a process of its own, and print its rows."""
    streams = {"out": sys.stdout, "log": sys.stderr}
    for name, text in in_own_process(_answer, (question,), question.limits):
        streams[name].write(text)


def _answer(send: Send, question: QueryOrder) -> None:
    """Send the rows as they are printed: parts of text, each with the name of its stream."""
    from permalake.cli.render import write
    from permalake.domains import domain_of
    from permalake.lake.identity import open_database
    from permalake.lake.json_rows import json_rows
    from permalake.lake.query import run_query

    database = open_database(question.settings)
    limit_memory(question.limits)
    result = run_query(
        database,
        domain_of,
        question.sql,
        question.as_of,
        question.limits,
        # Other forms are printed while the query goes on.
        draws_progress=question.screen.is_terminal
        and (question.form == "table" or question.parquet is not None),
    )
    if question.parquet is not None:
        count = _write_parquet(result, question.parquet)
        send(("log", f"{question.parquet}: {count} rows\n"))
        return
    records = _Counted(json_rows(result.batches(), result.names, result.kinds))
    out, log = (sent_text(partial(_part, send, name), question.screen) for name in ("out", "log"))
    write(records, result.names, question.form, out, log)
    if not records.count:
        from permalake.cli.spellings import spelled_otherwise

        log.write("".join(f"{line}\n" for line in spelled_otherwise(question.sql)))
    out.flush()
    log.flush()


class _Counted:
    """Records that are counted as they are read."""

    def __init__(self, records: Iterable[Row]) -> None:
        self._records, self.count = records, 0

    def __iter__(self) -> Iterator[Row]:
        for record in self._records:
            self.count += 1
            yield record


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
    return sys.stdin.read()


def _part(send: Send, name: str, text: str) -> None:
    send((name, text))


def _moment(text: str | None) -> AsOf | None:
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) < _DATE_DIGITS:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"--as-of {text}: not a time; write it as 2022-09-28T12:00:00Z, or give a publication's number"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
