"""SQL over the published lake: DuckDB reads the snapshots' files through Arrow, without Spark."""

from __future__ import annotations

import difflib
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping
from datetime import date

import duckdb
import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from permalake.contracts import Table
from permalake.contracts.namespaces import Namespaces, contracts_in, is_live, live_namespace
from permalake.contracts.sql_text import identifier, literal
from permalake.contracts.views import LakeView
from permalake.engine.connection import connect
from permalake.errors import PermalakeError
from permalake.lake.database import Database
from permalake.lake.published import (
    AsOf,
    LakeState,
    TableName,
    check_history,
    dataset,
    past_state,
    state_with_heads,
)
from permalake.lake.statements import check_reads_only, unique_names
from permalake.query_process import DEFAULT_LIMITS, QueryLimits

# DuckDB hands on whole vectors: fewer rows at once are not less memory.
_BATCH = 2_048
_BATCH_BYTES = 8 << 20
_NO_MEMORY = ("Out of Memory Error", "bad allocation", "bad_alloc")
_LISTING = ("show", "information_schema", "duckdb_tables", "duckdb_views", "duckdb_columns")
_SHOW_TABLES = re.compile(r"\s*SHOW\s+TABLES\s*;?\s*", re.IGNORECASE)
_LOCKS = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


class _Session:
    """A DuckDB connection with the limits of one query."""

    def __init__(self, limits: QueryLimits, *, draws_progress: bool) -> None:
        self.limits = limits
        self.connection = connect()
        if draws_progress:
            self.connection.execute("SET enable_progress_bar = true")
        self._expired = threading.Event()
        self._spill = tempfile.mkdtemp(prefix="permalake-query-")
        weakref.finalize(self, shutil.rmtree, self._spill, ignore_errors=True)
        self._timer: threading.Timer | None = None
        if limits.timeout is not None:
            self._timer = threading.Timer(limits.timeout, _interrupt, (self.connection, self._expired))
            self._timer.daemon = True
            self._timer.start()
            weakref.finalize(self, self._timer.cancel)

    def lock(self) -> None:
        """Set the limits, then forbid files, extensions and further settings."""
        self.connection.execute(f"SET temp_directory = {literal(self._spill)}")
        self.connection.execute(f"SET max_temp_directory_size = '{self.limits.spill}'")
        self.connection.execute(f"SET memory_limit = '{self.limits.memory}'")
        for lock in _LOCKS:
            self.connection.execute(lock)

    def close(self) -> None:
        """End the session: a thread of DuckDB's that outlives the interpreter's end aborts the process."""
        if self._timer:
            self._timer.cancel()
        self.connection.close()

    def check_time(self) -> None:
        """Raise :class:`PermalakeError` once the time is up."""
        if self._expired.is_set():
            raise self.limits.too_slow()

    def explained(self, error: Exception, published: LakeState) -> PermalakeError:
        """Return the error that one line explains."""
        self.check_time()
        if isinstance(error, duckdb.OutOfMemoryException | MemoryError) or any(
            words in str(error) for words in _NO_MEMORY
        ):
            return self.limits.too_large()
        return _explained(error, published)


def _interrupt(connection: duckdb.DuckDBPyConnection, expired: threading.Event) -> None:
    expired.set()
    connection.interrupt()


class QueryResult:
    """The result of a query: column ``names``, their DuckDB ``kinds``, and the rows as Arrow.

    Names are unique: a repeated one gets a number, as DuckDB does in a subquery. HUGEINT comes as decimal128
    with scale 0; ``kinds`` distinguishes the two.
    """

    def __init__(self, session: _Session, relation: duckdb.DuckDBPyRelation) -> None:
        self._session = session
        self._relation: duckdb.DuckDBPyRelation | None = relation
        self.names: list[str] = unique_names(relation.columns)
        self.kinds: list[DuckDBPyType] = list(relation.types)

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows, before they are read."""
        empty: pa.Table = self._open().limit(0).to_arrow_table()
        return empty.rename_columns(self.names).schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, some megabytes at once.

        Raises:
            PermalakeError: if computing them fails, or takes more time or memory than allowed.
        """
        reader = None
        try:
            reader = self._open().to_arrow_reader(_BATCH)
            for batch in reader:
                self._session.check_time()
                yield from _small(batch.rename_columns(self.names))
        except (duckdb.Error, OSError, MemoryError, pa.ArrowException) as error:
            raise self._session.explained(error, {}) from None
        finally:
            del reader
            self._close()

    def table(self) -> pa.Table:
        """Return all rows; raises as :meth:`batches` does."""
        try:
            return self._open().to_arrow_table().rename_columns(self.names)
        except (duckdb.Error, OSError, pa.ArrowException) as error:
            raise self._session.explained(error, {}) from None
        finally:
            self._close()

    def _open(self) -> duckdb.DuckDBPyRelation:
        if self._relation is None:
            raise PermalakeError("the rows of a query can be read once; run it again")
        return self._relation

    def _close(self) -> None:
        # Relation and reader keep the database open, and its threads running, after the connection is closed.
        self._relation = None
        self._session.close()


def run_query(
    database: Database,
    namespaces: Namespaces,
    sql: str,
    as_of: AsOf | None = None,
    limits: QueryLimits = DEFAULT_LIMITS,
    *,
    draws_progress: bool = False,
) -> QueryResult:
    """Run one reading statement over the published state, as one read of all pointers saw it.

    Tables are ``NETWORK.table``, with the views of :mod:`permalake.contracts.views` beside them; only those
    that the text names are opened, and all of them where it lists tables or columns. The connection can read
    no file, load no extension and change no setting. Where the standard output is a person's terminal,
    ``draws_progress`` shows there how far a query of more than two seconds is.

    Raises:
        PermalakeError: on one line, if the statement is wrong, writes, or exceeds the limits.
    """
    published = state_with_heads(database) if as_of is None else past_state(database, namespaces, as_of)
    session = _Session(limits, draws_progress=draws_progress)
    connection = session.connection
    try:
        if _SHOW_TABLES.fullmatch(sql):
            sql = _list_tables(published, namespaces)
        else:
            check_reads_only(connection, sql)
            if as_of is not None:
                check_history(database, _read_by(sql, published, namespaces), as_of)
            _define_all(connection, sql, published, namespaces)
        session.lock()
        relation = connection.sql(sql)
    except duckdb.Error as error:
        session.close()
        raise session.explained(error, published) from None
    if relation is None:
        session.close()
        raise PermalakeError("the statement returns no rows; write a SELECT")
    return QueryResult(session, relation)


def _define_all(
    connection: duckdb.DuckDBPyConnection, sql: str, published: LakeState, namespaces: Namespaces
) -> None:
    """Define the tables and views that a statement names; where it lists them or their columns, all."""
    for network in {network for network, _ in published}:
        connection.execute(f"CREATE SCHEMA {identifier(network)}")
    named, views = _read_by(sql, published, namespaces), _views_in(sql, published, namespaces)
    for name in named:
        _open(connection, name, contracts_in(namespaces, name[0]), published[name])
    if any(_stands_in(sql, word) for word in _LISTING):
        # Columns follow from the contracts: what is only listed needs no file.
        for name in published.keys() - set(named):
            _open(connection, name, contracts_in(namespaces, name[0]), None)
        views = _views_over(published, namespaces)
    for network, view in views:
        _define(connection, network, view, published)


def _read_by(sql: str, published: LakeState, namespaces: Namespaces) -> list[TableName]:
    """Return the tables that a statement names, and those below the views that it names."""
    views = _views_in(sql, published, namespaces)
    below = (name for network, view in views for name in _below(network, view, published))
    return sorted({*_named_in(sql, published), *below})


def _small(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in parts of some megabytes: rows may hold long texts."""
    rows = max(_BATCH_BYTES * batch.num_rows // max(batch.nbytes, 1), 1)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _named_in(sql: str, published: LakeState) -> list[TableName]:
    """Return the tables whose network and name stand in the text as words; too many do no harm."""
    return [name for name in sorted(published) if all(_stands_in(sql, word) for word in name)]


def _stands_in(sql: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word.casefold())}(?!\w)", sql.casefold()) is not None


def _list_tables(published: LakeState, namespaces: Namespaces) -> str:
    """Return a query for network and name of every table and view: who lists them all opens none."""
    views = ((network, view.name) for network, view in _views_over(published, namespaces))
    rows = ", ".join(f"({literal(network)}, {literal(name)})" for network, name in (*published, *views))
    listed = f"VALUES {rows}" if rows else "SELECT '', '' LIMIT 0"
    return f'SELECT * FROM ({listed}) AS listed(network, "table") ORDER BY ALL'  # noqa: S608


def _views_in(sql: str, published: LakeState, namespaces: Namespaces) -> list[tuple[str, LakeView]]:
    """Return the views whose network and name stand in the text, each with the tables that it reads."""
    return [
        (network, view)
        for network, view in _views_over(published, namespaces)
        if _stands_in(sql, network) and _stands_in(sql, view.name)
    ]


def _views_over(published: LakeState, namespaces: Namespaces) -> list[tuple[str, LakeView]]:
    """Return every view whose tables are published, by network; a head has none of its own."""
    return [
        (network, view)
        for network in sorted({network for network, _ in published if not is_live(network)})
        for view in namespaces(network).views
        if all((network, table) in published for table in view.tables)
    ]


def _below(network: str, view: LakeView, published: LakeState) -> Iterator[TableName]:
    """Yield the tables that a view reads."""
    yield from ((network, table) for table in view.tables)
    if _has_head(network, view, published):
        yield from ((live_namespace(network), table) for table in view.live)


def _has_head(network: str, view: LakeView, published: LakeState) -> bool:
    return all((live_namespace(network), table) in published for table in view.live)


def _define(
    connection: duckdb.DuckDBPyConnection, network: str, defined: LakeView, published: LakeState
) -> None:
    schema = identifier(network)
    view = f"{schema}.{identifier(defined.name)}"
    live = identifier(live_namespace(network)) if _has_head(network, defined, published) else None
    body = defined.body(schema, live, as_of="as_of")
    connection.execute(f"CREATE MACRO {view}(as_of) AS TABLE {body}")
    connection.execute(f"CREATE VIEW {view} AS SELECT * FROM {view}(DATE '{date.max}')")  # noqa: S608


def _open(
    connection: duckdb.DuckDBPyConnection,
    name: TableName,
    contracts: Mapping[str, Table],
    location: str | None,
) -> None:
    network, table = name
    source = f"source of {network}.{table}"
    empty = contracts[table].arrow.empty_table()
    connection.register(source, empty if location is None else dataset(contracts[table], location))
    view = f"{identifier(network)}.{identifier(table)}"
    # Identifiers cannot be bound; both are names of the lake's own, and quoted.
    connection.execute(f"CREATE VIEW {view} AS SELECT * FROM {identifier(source)}")  # noqa: S608


def _explained(error: Exception, published: LakeState) -> PermalakeError:
    text = str(error)
    missing = re.search(r"Table with name (.+?) does not exist", text)
    if missing is None:
        # What follows the first paragraph is an excerpt of the query with a caret.
        return PermalakeError(" ".join(text.partition("\n\n")[0].split()))
    return unknown_table(missing[1].replace('"', ""), published)


def unknown_table(missing: str, published: LakeState) -> PermalakeError:
    """Return the error for a table that is not published; it names those that may be meant."""
    names = {f"{_bare(network)}.{table}": f"{network}.{table}" for network, table in published}
    by_table = [
        name for name, plain in names.items() if plain.split(".", 1)[1] == missing.rsplit(".", maxsplit=1)[-1]
    ]
    near = by_table or difflib.get_close_matches(missing, list(names), n=3, cutoff=0.4)
    if not names:
        return PermalakeError(
            f"{missing}: no such table; the lake is empty, build a day first (permalake run)"
        )
    hint = f"did you mean {' or '.join(near)}?" if near else "`permalake tables` lists them"
    return PermalakeError(f"{missing}: no such table; tables are NETWORK.table; {hint}")


def _bare(network: str) -> str:
    return network if re.fullmatch(r"[a-z_][a-z0-9_]*", network) else identifier(network)
