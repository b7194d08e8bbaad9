"""Every row of every table and view on a real Cassandra, for two synthetic tangles."""

from __future__ import annotations

import datetime as dt
import operator
from functools import partial

import pytest
from cassandra import InvalidRequest
from pyspark.sql import functions as F

from permalake.config.stores import CassandraSettings
from permalake.errors import ConfigError, PermalakeError
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.permanode import chrysalis_rows as transforms_v1
from permalake.iota.permanode import chrysalis_schema as v1
from permalake.iota.permanode import stardust_schema as store
from permalake.iota.permanode.chrysalis_schema import keyspace_of
from permalake.iota.permanode.partitions import ends_of, lacking, new_segments, with_partition
from permalake.iota.permanode.permanode_writer import at_once
from permalake.iota.permanode.placement import PERMANODE_PARTITIONS
from permalake.iota.permanode.stardust_rows import STARDUST_ROWS
from permalake.iota.permanode.store import check_names, ensure_keyspaces
from permalake.local.services.daemon import free_port
from permalake.stores import cassandra, connector
from support import expected_cassandra, lake_frames, permanode_selects, places
from support.cassandra_rows import as_set, held, plain

DATA = places.DATA / "synthetic"
TANGLES = {"chrysalis": "chrysalis-testnet", "stardust": "stardust-testnet"}
SIZE = 7
MICROS = 1_700_000_000_000_000


@pytest.fixture(scope="module")
def settings(cassandra_server):
    return CassandraSettings(contact_points=("127.0.0.1",), port=cassandra_server.port)


@pytest.fixture(scope="module", params=sorted(TANGLES))
def tangle(request, spark, settings):
    """A tangle published whole: protocol, keyspace, lake tables."""
    protocol, network = request.param, TANGLES[request.param]
    lake = lake_of(spark, DATA / protocol / "expected")
    losses = []
    for _ in range(2):
        ensure_keyspaces(settings, network, protocol, lambda: losses.append(network))
    assert losses == [network]
    publish(settings, network, lake, MICROS)
    if protocol == "chrysalis":
        publish_v1(spark, settings, keyspace_of(network), lake)
    return protocol, keyspace_of(network), lake


def lake_of(spark, folder):
    days = {row["milestone_index"]: row["date"] for row in lake_frames.read(folder / "messages")}
    lake = {
        name: lake_frames.frame(spark, IOTA_TABLES[name], folder, days=days).coalesce(1).cache()
        for name in (*expected_cassandra.NAMES, "date_cache")
        if name in IOTA_TABLES
    }
    unspent = {one["output_id"] for one in lake_frames.read(folder / "ledger")[-1]["unspent"]}
    created = [row["output_id"] for row in lake_frames.read(folder / "legacy_outputs")]
    spent = [(output_id,) for output_id in created if output_id not in unspent]
    return {**lake, "spent": spark.createDataFrame(spent, "output_id string")}


def publish(settings, network, lake, micros) -> None:
    at_once(
        [
            partial(
                cassandra.write,
                STARDUST_ROWS[table.name](lake),
                settings,
                keyspace_of(network),
                table,
                micros,
            )
            for table in store.STARDUST_TABLES
        ]
    )


def publish_v1(spark, settings, keyspace, lake, micros=MICROS) -> None:
    """All days at once into partitions of SIZE, with nothing placed before."""
    second = f"{keyspace}_v1"
    for table, rows in (
        (v1.MESSAGES, transforms_v1.messages),
        (v1.TRANSACTIONS, transforms_v1.transactions),
        (v1.MILESTONES, transforms_v1.milestones),
        (v1.SYNC, transforms_v1.sync),
    ):
        cassandra.write(rows(lake), settings, second, table, micros)
    nothing = spark.createDataFrame([], PERMANODE_PARTITIONS.spark)
    for variant, (table, _, order) in transforms_v1.LOOKUPS.items():
        rows = transforms_v1.lookups(lake)[variant]
        placed = with_partition(rows, new_segments(lacking(rows, nothing), ends_of(nothing), SIZE), order)
        home = second if table.second else keyspace
        cassandra.write(transforms_v1.placed(variant, placed), settings, home, table, micros)
        cassandra.write(transforms_v1.hints(placed), settings, keyspace, v1.HINTS, micros)


def test_every_row_of_every_table_and_view(settings, tangle) -> None:
    protocol, keyspace, _ = tangle
    expected = expected_cassandra.stardust(DATA / protocol / "expected")
    assert set(expected) == {table.name for table in store.STARDUST_TABLES}
    for table in store.STARDUST_TABLES:
        rows = held(settings, keyspace, table.name)
        assert as_set(rows) == as_set(expected[table.name]), table.name
        assert len(rows) == len(expected[table.name]), table.name
        for view in table.views:
            seen = [
                row for row in expected[table.name] if all(row.get(name) is not None for name in view.key)
            ]
            assert as_set(held(settings, keyspace, view.name)) == as_set(seen), view.name


def facts(protocol):
    folder = DATA / protocol / "expected"
    rows = expected_cassandra.stardust(folder)
    return rows | (expected_cassandra.chrysalis(folder, SIZE) if protocol == "chrysalis" else {})


def home(keyspace, name) -> str:
    return f"{keyspace}_{name}" if name.startswith("v1.") else f"{keyspace}.{name}"


def test_every_row_of_the_chrysalis_schema(settings, tangle) -> None:
    protocol, keyspace, _ = tangle
    listed = {name: rows for name, rows in facts(protocol).items() if protocol == "chrysalis"}
    expected = {name: rows for name, rows in listed.items() if name not in STARDUST_ROWS}
    assert len(expected) == (8 if protocol == "chrysalis" else 0)
    for name, rows in expected.items():
        space, _, table = home(keyspace, name).partition(".")
        assert as_set(held(settings, space, table)) == as_set(rows), name


def test_every_select_of_the_proposals_finds_the_right_rows(settings, tangle) -> None:
    protocol, keyspace, _ = tangle
    known = facts(protocol)
    selects = [*permanode_selects.STARDUST, *(permanode_selects.CHRYSALIS if protocol == "chrysalis" else [])]
    found = 0
    with cassandra.session(settings) as session:
        for select in selects:
            prepared = session.prepare(select.text.format(ks=keyspace, v1=f"{keyspace}_v1"))
            rows = known[select.facts]
            columns = {column for column, _ in select.bound}
            samples = [row for row in rows if all(row.get(column) is not None for column in columns)]
            for sample in samples[:: max(1, len(samples) // 5)]:
                values = [bound(sample, column, sign) for column, sign in select.bound]
                wanted = [row for row in rows if matches(row, select, values)]
                got = [row._asdict() for row in session.execute(prepared, values)]
                names = list(got[0]) if got else []
                assert sorted(map(repr, (picked(row, names) for row in got))) == sorted(
                    map(repr, (picked(row, names) for row in wanted))
                ), select.text
                found += len(got)
        for variant, metric in permanode_selects.COUNTS:
            counting = session.prepare(
                f"SELECT count(1) FROM {keyspace}.metrics_cache WHERE date = ? AND variant = '{variant}' "
                f"AND metric = '{metric}'"
            )
            for day in {row["date"] for row in known["metrics_cache"]}:
                rows = known["metrics_cache"]
                wanted = sum(
                    (row["date"], row["variant"], row["metric"]) == (day, variant, metric) for row in rows
                )
                assert session.execute(counting, [day]).one()[0] == wanted > 0
    assert found > 200


def bound(row, column, sign):
    """A value that the row itself satisfies."""
    value = row[column]
    if sign != "<":
        return value
    return value + (dt.timedelta(hours=6) if isinstance(value, dt.datetime) else 5)


def matches(row, select, values):
    signs = {"=": operator.eq, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
    return all(
        row.get(column) is not None and signs[sign](row[column], value)
        for (column, sign), value in zip(select.bound, values, strict=True)
    ) and all(row[column] in accepted for column, accepted in select.literal.items())


def picked(row, names):
    return [plain(row.get(name)) for name in names]


@pytest.fixture(scope="module")
def mended(settings):
    """A session, and both keyspaces of a network that holds nothing."""
    ensure_keyspaces(settings, "mended", "chrysalis")
    with cassandra.session(settings) as session:
        yield session


@pytest.mark.parametrize("statement", [text for texts in permanode_selects.WRITES.values() for text in texts])
def test_the_server_takes_what_the_proposals_write(mended, statement) -> None:
    mended.prepare(statement.format(ks="mended", v1="mended_v1"))


def test_a_hint_of_a_tag_needs_its_kind(mended) -> None:
    """As proposed: every column of the key must be given, and the proposals ask by kind."""
    with pytest.raises(InvalidRequest, match="Some clustering keys are missing: table_kind"):
        mended.execute("INSERT INTO mended.tag_hints (tag, ms_range_id) VALUES ('spam', 1)")


def test_parents_by_ms_loses_nothing_without_a_condition_on_the_milestone(mended) -> None:
    """Cassandra takes the proposed condition on a column outside the key, and lets every row through."""
    view = next(text for text in store.PARENTS.ddl("mended") if "parents_by_ms" in text)
    conditioned = view.replace("parents_by_ms", "as_proposed").replace(
        "AND message_id IS NOT NULL", "AND message_id IS NOT NULL\nAND milestone_index IS NOT NULL"
    )
    mended.execute(conditioned)
    mended.execute(
        "INSERT INTO mended.parents (parent_id, message_id, ms_timestamp) VALUES ('p', 'without', 1)"
    )
    mended.execute(
        "INSERT INTO mended.parents (parent_id, message_id, ms_timestamp, milestone_index) "
        "VALUES ('p', 'with', 2, 7)"
    )
    for name in ("as_proposed", "parents_by_ms"):
        rows = mended.execute(f"SELECT message_id FROM mended.{name} WHERE parent_id = 'p'")
        assert [row.message_id for row in rows] == ["with", "without"], name
    mended.execute("DELETE FROM mended.parents WHERE parent_id = 'p'")


def test_publishing_again_changes_nothing(spark, settings, tangle) -> None:
    protocol, keyspace, lake = tangle
    before = whole(settings, TANGLES[protocol], protocol)
    publish(settings, TANGLES[protocol], lake, MICROS + 10)
    if protocol == "chrysalis":
        publish_v1(spark, settings, keyspace, lake, MICROS + 10)
    assert whole(settings, TANGLES[protocol], protocol) == before


def whole(settings, network, protocol):
    """All rows of all tables and views."""
    return {
        (keyspace, name): as_set(held(settings, keyspace, name))
        for keyspace, table in v1.placed(network, protocol)
        for name in (table.name, *(view.name for view in table.views))
    }


def test_deleted_rows_leave_the_table_and_its_views(settings, tangle) -> None:
    protocol, keyspace, lake = tangle
    table = store.BASIC_OUTPUTS if protocol == "stardust" else store.LEGACY_OUTPUTS
    view = table.views[0].name
    rows = STARDUST_ROWS[table.name](lake)
    gone = rows.orderBy("output_id").limit(5).cache()
    ids = {row.output_id for row in gone.collect()}
    assert cassandra.delete(gone, settings, keyspace, table, MICROS + 20) == 5
    for name in (table.name, view):
        assert not ids & {row["output_id"] for row in held(settings, keyspace, name)}
    cassandra.write(gone, settings, keyspace, table, MICROS + 21)
    assert as_set(held(settings, keyspace, table.name)) == as_set(
        expected_cassandra.stardust(DATA / protocol / "expected")[table.name]
    )


def test_two_states_of_an_alias_in_one_milestone_leave_the_last_in_white_flag_order(spark, settings) -> None:
    """The earlier state has a sender, the later none: nothing of the earlier one shines through."""
    with cassandra.session(settings) as session:
        for statement in v1.schema("two-states", "stardust", settings.local_dc, settings.replication):
            if "KEYSPACE" in statement or "two_states.alias_outputs" in statement:
                session.execute(statement)
    connector.close_sessions(spark)  # an open one learns of a new keyspace with a delay
    moment = dt.datetime(2022, 9, 28, tzinfo=dt.UTC)
    alias = "aa" * 32

    def state(transaction, message, sender):
        return {
            "output_id": transaction * 32 + "0000",
            "alias_id": alias,
            "ms_range_id": 0,
            "milestone_index": 7,
            "ms_timestamp": moment,
            "inclusion_state": 1,
            "amount": 1,
            "message_id": message,
            "state_index": 1,
            "foundry_counter": 0,
            "native_token_count": 0,
            "sender": sender,
            "data": b"x",
            "date": moment.date(),
        }

    outputs = IOTA_TABLES["alias_outputs"]
    rows = [state("ff", "m1", "smr1earlier"), state("11", "m2", None)]
    lake = {
        "alias_outputs": spark.createDataFrame(
            [tuple(row.get(name) for name in outputs.names) for row in rows], outputs.spark
        ),
        "messages": spark.createDataFrame([("m1", 0), ("m2", 5)], "message_id string, white_flag_index int"),
    }
    written = STARDUST_ROWS["alias_outputs"](lake)
    for micros in (MICROS, MICROS + 1):
        cassandra.write(written, settings, "two_states", store.ALIAS_OUTPUTS, micros)
        (row,) = held(settings, "two_states", "alias_outputs")
        assert row["output_id"] == "11" * 32 + "0000"
        assert "sender" not in row
    assert held(settings, "two_states", "alias_outputs_by_sender") == []


def test_bytes_beyond_127_fit_their_signed_columns(spark) -> None:
    from permalake.iota.permanode.store_columns import small, state_byte, tiny

    row = (
        spark.range(1)
        .select(
            tiny(F.lit(255)), tiny(F.lit(127)), small(F.lit(65535)), small(F.lit(5)), state_byte(F.lit(2))
        )
        .first()
    )
    assert tuple(row) == (-1, 127, -1, 5, b"\x02")


def test_a_loss_that_cannot_be_noted_is_noted_by_the_next_who_looks(settings) -> None:
    """Tables that were made before the loss was noted hid it for good."""

    def refuse():
        raise PermalakeError("lake.catalog: locked")

    for _ in range(2):
        with pytest.raises(PermalakeError, match=r"lake\.catalog: locked"):
            ensure_keyspaces(settings, "unnoted", "stardust", refuse)


def test_a_store_that_is_down_says_what_to_do() -> None:
    down = CassandraSettings(contact_points=("127.0.0.1",), port=free_port())
    with pytest.raises(
        PermalakeError, match=r"Cassandra does not answer at 127\.0\.0\.1:\d+ .*services status"
    ):
        ensure_keyspaces(down, "shimmer", "stardust")


@pytest.mark.parametrize(
    ("networks", "culprit"),
    [(("a-b", "a_b"), "a_b"), (("a", "a_v1"), "a_v1"), (("system_auth",), "system_auth"), (("x" * 46,), "x")],
)
def test_networks_that_cannot_share_a_cluster_are_refused(networks, culprit) -> None:
    with pytest.raises(ConfigError, match=culprit):
        check_names(networks)


def test_usual_networks_are_taken() -> None:
    check_names(["shimmer", "chrysalis-mainnet", "iota"])
