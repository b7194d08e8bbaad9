"""SQL over the published lake: DuckDB reads the snapshots' files through Arrow, with no Spark."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from datetime import date, datetime

import duckdb
import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from permalake.contracts.views import VIEWS, views_of
from permalake.errors import PermalakeError
from permalake.lake.published import State, TableName, check_history, dataset, state
from permalake.lake.state import Database
from permalake.wormhole.contracts.tables import NAMESPACE

_BATCH = 20_000
_LOCKS = (
    "SET TimeZone = 'UTC'",
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
# PIVOT parses as several statements; the others only read by nature.
_READING = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.MULTI}


class Answer:
    """The result of a query: column ``names``, their DuckDB ``kinds``, and the rows as Arrow. HUGEINT comes
    as decimal128 with scale 0; ``kinds`` tells the two apart."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, relation: duckdb.DuckDBPyRelation) -> None:
        self._connection = connection
        self._relation = relation
        self.names: list[str] = list(relation.columns)
        self.kinds: list[DuckDBPyType] = list(relation.types)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch; :class:`PermalakeError` when computing them fails."""
        try:
            yield from self._relation.to_arrow_reader(_BATCH)
        except (duckdb.Error, OSError, pa.ArrowException) as error:
            raise _explained(error, {}) from None

    def table(self) -> pa.Table:
        """All rows."""
        try:
            return self._relation.to_arrow_table()
        except (duckdb.Error, OSError, pa.ArrowException) as error:
            raise _explained(error, {}) from None


def answer(database: Database, sql: str, as_of: datetime | None = None) -> Answer:
    """Run one reading statement over the published state, as one read of all pointers saw it.

    Tables are ``NETWORK.table``, with the views of :mod:`permalake.contracts.views` beside them; only those
    that the text names are opened. The connection can read no file, load no extension and change no setting.
    Errors are one line.
    """
    connection = duckdb.connect(":memory:")
    published = state(database, as_of)
    try:
        _check(connection, sql)
        for network in {network for network, _ in published}:
            connection.execute(f"CREATE SCHEMA {_quoted(network)}")
        views = _views_in(sql, published)
        named = sorted({*_named_in(sql, published), *(name for tables in views.values() for name in tables)})
        if as_of is not None:
            check_history(database, named, as_of)
        for name in named:
            _open(connection, name, published[name])
        for network, view in views:
            _define(connection, network, view)
        for lock in _LOCKS:
            connection.execute(lock)
        relation = connection.sql(sql)
    except duckdb.Error as error:
        raise _explained(error, published) from None
    if relation is None:
        raise PermalakeError("the statement returns no rows; write a SELECT")
    return Answer(connection, relation)


def _check(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise PermalakeError(f"one statement at a time; the text holds {len(statements)}")
    if statements[0].type not in _READING:
        raise PermalakeError(f"{statements[0].type.name} is not allowed; the lake is read with SELECT")


def _named_in(sql: str, published: State) -> list[TableName]:
    """Tables whose network and name stand in the text as words; a few too many do no harm."""
    return [name for name in sorted(published) if all(_stands_in(sql, word) for word in name)]


def _stands_in(sql: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word.casefold())}(?!\w)", sql.casefold()) is not None


def _views_in(sql: str, published: State) -> dict[TableName, list[TableName]]:
    """Views whose network and name stand in the text, each with the tables that it reads."""
    networks = {network for network, _ in published if _stands_in(sql, network)}
    return {
        (network, view.name): [(network, table) for table in view.tables]
        for network in sorted(networks)
        for view in views_of("wormhole" if network == NAMESPACE else "iota")
        if _stands_in(sql, view.name) and all((network, table) in published for table in view.tables)
    }


def _define(connection: duckdb.DuckDBPyConnection, network: str, name: str) -> None:
    schema = _quoted(network)
    view = f"{schema}.{_quoted(name)}"
    body = VIEWS[name].sql.format(network=schema)
    connection.execute(f"CREATE MACRO {view}(as_of) AS TABLE {body}")
    connection.execute(f"CREATE VIEW {view} AS SELECT * FROM {view}(DATE '{date.max}')")  # noqa: S608


def _open(connection: duckdb.DuckDBPyConnection, name: TableName, location: str | None) -> None:
    network, table = name
    source = f"source of {network}.{table}"
    connection.register(source, dataset(name, location))
    view = f"{_quoted(network)}.{_quoted(table)}"
    # Identifiers cannot be bound; both are names of the lake's own, and quoted.
    connection.execute(f"CREATE VIEW {view} AS SELECT * FROM {_quoted(source)}")  # noqa: S608


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _explained(error: Exception, published: State) -> PermalakeError:
    text = str(error)
    missing = re.search(r"Table with name (.+?) does not exist", text)
    if missing is None:
        # What follows the first paragraph is an excerpt of the query with a caret.
        return PermalakeError(" ".join(text.partition("\n\n")[0].split()))
    wanted = missing[1].replace('"', "")
    known = {f"{_bare(network)}.{table}": f"{network}.{table}" for network, table in published}
    by_table = [name for name, plain in known.items() if plain.split(".", 1)[1] == wanted.split(".")[-1]]
    near = by_table or difflib.get_close_matches(wanted, list(known), n=3, cutoff=0.4)
    if not known:
        return PermalakeError(
            f"{wanted}: no such table; the lake is empty, build a day first (permalake run)"
        )
    hint = f"did you mean {' or '.join(near)}?" if near else "`permalake tables` lists them"
    return PermalakeError(f"{wanted}: no such table; tables are NETWORK.table; {hint}")


def _bare(network: str) -> str:
    return network if re.fullmatch(r"[a-z_][a-z0-9_]*", network) else _quoted(network)
