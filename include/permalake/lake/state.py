"""The lake's records beside Iceberg's own pointers: attempts, days, publications and leases.

All of it lives in the catalog database, so that moving the tables' pointers and recording why is one
transaction. Times are UTC text of fixed width (``2022-09-28T00:00:00.000000Z``): it sorts as it reads, in
any database.

Whoever adds a table or a column also appends a migration to ``MIGRATIONS``, below the tables: that is how
catalogs of released versions get it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Date,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    and_,
    func,
    insert,
    select,
    update,
)

from permalake.lake import iceberg_tables
from permalake.lake.migrations import Migration, add_column, add_table

PUBLISHED = "permalake"
"""``catalog_name`` of the pointers that readers follow."""
STORES = "permalake_stores"
"""``catalog_name`` of what was recorded of the stores: it grows when a store is written, no publication moves
it."""

LIVE = "permalake_live"
"""``catalog_name`` of the heads of networks: provisional rows of days that are not published, which no
publication, past state or manifest knows."""

_TIME = String(27)
_metadata = MetaData()

pointers, namespaces = iceberg_tables.pointers, iceberg_tables.namespaces


networks = Table(
    "permalake_networks",
    _metadata,
    Column("network", String(64), primary_key=True),
    # Counted up by whoever takes a lease: the row lock makes taking leases of a network one by one.
    Column("turn", BigInteger, nullable=False, default=0),
    Column("history_from", _TIME),  # earlier states were forgotten; null: none was
)

lake_ids = Table(
    "permalake_lake",
    _metadata,
    Column("lake_id", String(36), primary_key=True),
    Column("created_at", _TIME, nullable=False),
)

leases = Table(
    "permalake_leases",
    _metadata,
    Column("network", String(64), primary_key=True),
    # days, carry, maintenance, or the name of a store
    Column("kind", String(32), primary_key=True, server_default="days"),
    Column("start", Date, primary_key=True),
    Column("end", Date, primary_key=True),
    Column("run_id", String(250), nullable=False),
    Column("owner", String(250)),  # the process that the run ends with, where there is one
    Column("taken_at", _TIME, nullable=False),
    Column("beat_at", _TIME, nullable=False),
)

attempts = Table(
    "permalake_attempts",
    _metadata,
    Column("attempt_id", String(64), primary_key=True),
    Column("kind", String(16), nullable=False, server_default="days"),  # days, carry
    Column("network", String(64), nullable=False, index=True),
    Column("start", Date, nullable=False),
    Column("end", Date, nullable=False),
    Column("run_id", String(250), nullable=False, index=True),
    Column("state", String(16), nullable=False),  # open, published, superseded, discarded
    Column("begun_at", _TIME, nullable=False),
    Column("pinned_at", _TIME),
    Column("fingerprint", Text, nullable=False, default=""),
    Column("notes", Text, nullable=False, default="[]"),
    Column("publication_id", Integer),
)

attempt_tables = Table(
    "permalake_attempt_tables",
    _metadata,
    Column("attempt_id", String(64), primary_key=True),
    Column("table_name", String(255), primary_key=True),
    Column("base_location", String(1000), nullable=False),
    Column("pinned_location", String(1000)),
)

attempt_days = Table(
    "permalake_attempt_days",
    _metadata,
    Column("attempt_id", String(64), primary_key=True),
    Column("date", Date, primary_key=True),
    Column("refused", Text),
    Column("audited", String(8)),  # passed, failed
    Column("failures", Text),  # JSON list of lines
    Column("notes", Text),  # JSON list of lines
    Column("gaps", Text),  # JSON list of lines
)

step_runs = Table(
    "permalake_steps",
    _metadata,
    Column("network", String(64), primary_key=True),
    Column("run_id", String(250), primary_key=True),
    Column("step", String(64), primary_key=True),
    Column("try_number", Integer, primary_key=True),
    Column("dag_run", String(250), nullable=False, index=True),
    Column("start", Date, nullable=False),
    Column("end", Date, nullable=False),
    Column("state", String(16), nullable=False),  # running, done, skipped, invalid, failed
    Column("submit", String(64)),  # the step in whose Spark submit it ran
    Column("attempt_id", String(64)),
    Column("inputs", Text, nullable=False, default=""),  # digest of the staged state that it worked on
    Column("began_at", _TIME, nullable=False, index=True),
    Column("ended_at", _TIME),
    Column("milliseconds", BigInteger),
    Column("rows", Text),  # JSON object: table -> rows
    Column("quarantined", BigInteger),
    Column("log", Text),  # JSON list of lines
    Column("reason", Text),
    Column("retryable", Integer, nullable=False, default=1),
    Column("docs", Text),
    Column("served", Text),  # JSON object: store -> days
    Column("days", Text),  # JSON list of dates
    Column("claimed_by", String(250)),
    Column("claimed_at", _TIME),
)

days = Table(
    "permalake_days",
    _metadata,
    Column("network", String(64), primary_key=True),
    Column("date", Date, primary_key=True),
    Column("run_id", String(250)),
    Column("attempt_id", String(64)),
    Column("built_at", _TIME),
    Column("audited", String(8)),
    Column("failures", Text),
    Column("refused", Text),
    Column("published_at", _TIME),
    Column("publication_id", Integer),
    Column("carried_id", Integer),  # publication of the day that the carried tables rest on
    Column("rows", Text),  # JSON object: table -> rows as published
    Column("quarantined", BigInteger, nullable=False, default=0),
    Column("notes", Text),
    Column("gaps", Text),  # JSON list of lines
    Column("stale_reason", Text),
)

served = Table(
    "permalake_served",
    _metadata,
    Column("network", String(64), primary_key=True),
    Column("store", String(16), primary_key=True),  # cassandra, bigtable
    Column("date", Date, primary_key=True),
    Column("publication_id", Integer),  # of the day as the store has it whole; null: not whole
    Column("served_at", _TIME),
    # States of the lake, as JSON list of {table: metadata location}, rows of which may be in the store. They
    # tell which rows of an earlier build have to go, so maintenance keeps their files.
    Column("states", Text, nullable=False, default="[]"),
    Column("micros", BigInteger, nullable=False, default=0),  # write time of the last publish begun
    Column("error", Text),
)

publications = Table(
    "permalake_publications",
    _metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("kind", String(16), nullable=False),  # days, carry, quarantine, cache
    Column("network", String(64), nullable=False, index=True),
    Column("start", Date, nullable=False),
    Column("end", Date, nullable=False),
    Column("attempt_id", String(64), nullable=False),
    Column("run_id", String(250), nullable=False),
    Column("fingerprint", Text, nullable=False, default=""),
    Column("replayed", Integer, nullable=False, default=0),
    Column("published_at", _TIME, nullable=False, index=True),
    Column("logged", Integer),  # 1 once the warehouse has it on record; null: not yet
    Column("withdrawn", Text),  # JSON object: date -> tables that lost their rows; null: not known
    Column("withheld", Text),  # JSON object: date -> why the day stays as it was; null: not known
    Column("announced", Integer),  # 1 once the webhook has it
    Column("signed", Integer),  # the publication as of which the signed log has its days; null: not yet
)

publication_tables = Table(
    "permalake_publication_tables",
    _metadata,
    Column("publication_id", Integer, primary_key=True),
    Column("network", String(64), primary_key=True),
    Column("table_name", String(255), primary_key=True),
    Column("metadata_location", String(1000), nullable=False),
)

signed_logs = Table(
    "permalake_signed_logs",
    _metadata,
    Column("origin", String(250), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("root", String(64), nullable=False),  # over so many entries, in hex
    Column("signed_at", _TIME, nullable=False),
)

price_asks = Table(
    "permalake_price_asks",
    _metadata,
    Column("provider", String(32), primary_key=True),
    Column("coin", String(250), primary_key=True),
    Column("start", BigInteger, primary_key=True),  # unix seconds, as the following
    Column("end", BigInteger, primary_key=True),
    Column("asked_at", BigInteger, nullable=False),
)

fixed_settings = Table(
    "permalake_fixed_settings",
    _metadata,
    Column("network", String(64), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),  # JSON
    Column("recorded_at", _TIME, nullable=False),
)

heads = Table(
    "permalake_heads",
    _metadata,
    Column("network", String(64), primary_key=True),
    Column("position", BigInteger, nullable=False),  # last milestone, where the network has any
    Column("position_at", _TIME, nullable=False),  # time of the last milestone or message at the source
    Column("moved_at", _TIME, nullable=False),
    Column("source", Text),  # JSON: how far a source without milestones was read
)

provisional = Table(
    "permalake_provisional",  # messages of a head whose provisional rows may be in a store
    _metadata,
    Column("network", String(64), primary_key=True),
    Column("message_id", String(64), primary_key=True),
    Column("estimate", Integer, nullable=False),  # first milestone that might reference it, when it was seen
    Column("seen_at", _TIME, nullable=False),
    Column("message", LargeBinary, nullable=False),  # raw: its rows follow from it
)

outdated = Table(
    "permalake_outdated",
    _metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("network", String(64), nullable=False, index=True),
    Column("start", Date, nullable=False),
    Column("end", Date, nullable=False),
    Column("reason", Text, nullable=False),
    # Of an attempt whose publication will bring it about: which, and of which of its days.
    Column("attempt_id", String(64)),
    Column("cause", Date),
    Column("marked_at", _TIME),  # null: not yet
)


def _create_all(connection: Connection) -> None:
    """Whatever table is missing, as it is defined now; all that an empty database needs."""
    iceberg_tables.metadata.create_all(connection)
    _metadata.create_all(connection)


MIGRATIONS: Sequence[Migration] = (
    _create_all,
    add_column(publications.c.withdrawn),
    add_column(publications.c.withheld),
    add_column(publications.c.announced),
    add_table(heads),
    add_column(heads.c.source),
    add_table(provisional),
    add_column(publications.c.signed),
    add_table(signed_logs),
)
"""In the order in which they were added; a released one is never changed."""


def upsert(
    connection: Connection,
    table: Table,
    key: Mapping[str, object],
    values: Mapping[str, object],
    first: Mapping[str, object] | None = None,
) -> None:
    """Set values of the row with a key; a row that is new has those of ``first`` besides."""
    here = and_(*(table.c[name] == value for name, value in key.items()))
    if not connection.execute(update(table).where(here).values(**values)).rowcount:
        connection.execute(insert(table).values(**{**(first or {}), **values, **key}))


def now() -> str:
    """Return this moment by the machine's clock, as the state tables keep it."""
    return stamp(datetime.now(UTC))


def clock(connection: Connection) -> str:
    """Return this moment by the database's clock: machines whose clocks differ agree on that one."""
    if connection.dialect.name == "postgresql":
        form = 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'
        clock_text = select(func.to_char(func.timezone("UTC", func.clock_timestamp()), form))
    else:
        clock_text = select(func.strftime("%Y-%m-%dT%H:%M:%f000Z", "now"))
    return str(connection.execute(clock_text).scalar_one())


def stamp(moment: datetime) -> str:
    """Return a moment as the state tables keep it; a naive one is taken as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str) -> datetime:
    """Return the moment of a text that :func:`stamp` made."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
