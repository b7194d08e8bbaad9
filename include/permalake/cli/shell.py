"""The shell of ``permalake query``: statements until a semicolon, completion, history."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from permalake.errors import PermalakeError
from permalake.paths import HOME
from permalake.sanitize import LONGEST_MESSAGE, shown

HISTORY = HOME / "query_history"
_LONGEST_HISTORY = 1_000
_PROMPT, _MORE = "permalake> ", "       ...> "
_LEAVE = ("exit", "quit", r"\q", ".quit", ".exit")
_HELP = "Statements end with a semicolon. Tab completes tables and columns; exit or Ctrl-D leaves.\n"
# A network may hold dashes and is quoted then, so that a word may begin with a quote.
_DELIMITERS = " \t\n;,()=<>+*/"
_COLUMNS = (
    "SELECT table_schema AS network, table_name, list(column_name) AS names "
    "FROM information_schema.columns GROUP BY ALL ORDER BY ALL"
)
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_KEYWORDS = (
    *("select", "from", "where", "group by", "order by", "limit", "join", "using", "having", "with"),
    *("count(*)", "sum(", "avg(", "min(", "max(", "distinct", "describe", "show tables"),
)


@dataclass(frozen=True)
class Words:
    """What a lake's statements are made of: tables as they are written in SQL, each with its columns."""

    tables: dict[str, tuple[str, ...]]

    def completions(self, word: str, line: str) -> list[str]:
        """Return what a word may become, in order.

        A part of ``NETWORK.`` or of its table becomes a table; other words become keywords, tables, and
        columns of the tables that the line names, of all tables where it names none.
        """
        start = word.casefold()
        named = [names for table, names in self.tables.items() if table.casefold() in line.casefold()]
        columns = {name for names in named or self.tables.values() for name in names}
        qualified, _, column = start.rpartition(".")
        if columns_of_table := next(
            (names for name, names in self.tables.items() if name == qualified), None
        ):
            return [f"{qualified}.{name}" for name in sorted(columns_of_table) if name.startswith(column)]
        bare = {table for table in self.tables if table.replace('"', "").casefold().startswith(start)}
        tables = {table for table in self.tables if table.casefold().startswith(start)} | bare
        others = {word for word in (*_KEYWORDS, *columns) if start and word.startswith(start)}
        return [*sorted(tables), *sorted(others - tables)]


def words_of(columns: Sequence[Mapping[str, Any]]) -> Words:
    """Return the words of a lake from the rows of :func:`columns_query`."""
    tables = {
        f"{_written(row['network'])}.{_written(row['table_name'])}": tuple(row["names"]) for row in columns
    }
    return Words(tables)


def columns_query() -> str:
    """Return the query whose rows :func:`words_of` reads."""
    return _COLUMNS


def _written(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


class Completer:
    """Completion for ``readline``; the words are asked for when the first one is to be completed."""

    def __init__(self, load: Callable[[], Words], line: Callable[[], str]) -> None:
        self._load, self._line = load, line
        self._words: Words | None = None
        self._found: Sequence[str] = ()

    def __call__(self, word: str, number: int) -> str | None:
        """Return the completion of that number; None after the last."""
        if number == 0:
            if self._words is None:
                try:
                    self._words = self._load()
                except PermalakeError:  # the statement itself will say what is wrong
                    self._words = Words({})
            self._found = self._words.completions(word, self._line())
        return self._found[number] if number < len(self._found) else None


def run_shell(answer: Callable[[str], None], load: Callable[[], Words]) -> None:
    """Read statements from the terminal and answer them, until the user leaves.

    An error is one line and does not end the shell; Ctrl-C ends a statement or its query.
    """
    _prepare(load)
    sys.stdout.write(_HELP)
    held: list[str] = []
    while True:
        try:
            line = input(_MORE if held else _PROMPT)
        except EOFError:
            sys.stdout.write("\n")
            return
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            held = []
            continue
        if not held and line.strip().rstrip(";").casefold() in _LEAVE:
            return
        held += [line] if held or line.strip() else []
        if not line.rstrip().endswith(";"):
            continue
        statement, held = "\n".join(held), []
        try:
            answer(statement)
        except PermalakeError as error:
            sys.stderr.write(f"{shown(' '.join(str(error).split()), LONGEST_MESSAGE)}\n")
        except KeyboardInterrupt:
            sys.stdout.write("interrupted\n")


def _prepare(load: Callable[[], Words]) -> None:
    """Switch on editing, completion and history where Python has ``readline``."""
    try:
        import readline
    except ImportError:  # some builds of Python lack it; lines are read all the same
        return
    import atexit

    readline.set_completer(Completer(load, readline.get_line_buffer))
    readline.set_completer_delims(_DELIMITERS)
    readline.parse_and_bind("tab: complete")
    with suppress(OSError):
        readline.read_history_file(HISTORY)
    readline.set_history_length(_LONGEST_HISTORY)
    atexit.register(_keep_history, HISTORY)


def _keep_history(file: Path) -> None:
    """Write the history, readable by its user alone: statements may name what somebody looks for."""
    import readline

    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        readline.write_history_file(file)
