"""The check of a reader's SQL: one statement that only reads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

import duckdb

from permalake.errors import PermalakeError

# Without comments between the words: DuckDB nests them, so a pattern could see other text than DuckDB does.
_EXPLAIN = re.compile(r"[ \t\r\n]*EXPLAIN(?:[ \t\r\n]+ANALYZE\b|[ \t\r\n]*\([\w ,]*\))?", re.IGNORECASE)
_WRITES = {"insert", "update", "delete", "merge", "truncate", "copy"}
_READS = {duckdb.StatementType.SELECT, duckdb.StatementType.MULTI}  # PIVOT parses as several statements


def check_reads_only(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Check that ``sql`` is one statement that reads: a query, or EXPLAIN of one.

    Raises:
        PermalakeError: if it is anything else.
        duckdb.ParserException: if DuckDB cannot parse it.
    """
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise PermalakeError(f"one statement at a time; the text holds {len(statements)}")
    text = _without_end(statements[0].query)
    explained = _EXPLAIN.match(text)
    query = text[explained.end() :] if explained else text
    if not _is_query(connection, query):
        kind = "EXPLAIN of anything else" if explained else statements[0].type.name
        raise PermalakeError(f"{kind} is not allowed; the lake is read with SELECT")
    if word := _writing_word(query):
        raise PermalakeError(
            f'{word.upper()} is not allowed; quote it ("{word}") if it is the name of a column'
        )


def _without_end(text: str) -> str:
    """Return the statement without comments and semicolons after it."""
    raw = text.encode()  # DuckDB counts bytes
    for at, kind in reversed(duckdb.tokenize(text)):
        if kind != duckdb.token_type.comment and raw[at : at + 1] != b";":
            break
        raw = raw[:at]
    return raw.decode()


def _is_query(connection: duckdb.DuckDBPyConnection, text: str) -> bool:
    """Whether the text may stand as a subquery, where the grammar allows nothing but queries."""
    try:
        # DuckDB must accept the text alone too, so that its parentheses do not close the one around it.
        (alone,) = connection.extract_statements(text)
        (whole,) = connection.extract_statements(f"SELECT * FROM (\n{text}\n)")  # noqa: S608
    except (duckdb.Error, ValueError):
        return False
    return alone.type in _READS and whole.type in _READS


def _writing_word(query: str) -> str | None:
    """Return the word by which a WITH clause would write; DuckDB parses such a statement as a SELECT."""
    raw = query.encode()  # DuckDB counts bytes
    tokens = [(at, kind) for at, kind in duckdb.tokenize(query) if kind != duckdb.token_type.comment]
    for (at, kind), (following, next_kind) in pairwise(tokens):
        word = raw[at:following].decode().split(maxsplit=1)[0].casefold()
        names = (duckdb.token_type.keyword, duckdb.token_type.identifier)
        if kind == duckdb.token_type.keyword and word in _WRITES and next_kind in names:
            return word
    return None


def unique_names(names: Iterable[str]) -> list[str]:
    """Return column names made unique regardless of case, as DuckDB names those of a subquery."""
    chosen: list[str] = []
    taken: dict[str, int] = {}
    for name in names:
        unique, key = name, name.casefold()
        while unique.casefold() in taken:
            unique = f"{name}_{taken[key]}"
            taken[key] += 1
        taken[unique.casefold()] = 1
        chosen.append(unique)
    return chosen
