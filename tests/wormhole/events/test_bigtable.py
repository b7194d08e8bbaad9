"""Every cell of the event tables on a real emulator, for a synthetic world."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import hashlib
import json

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from permalake.config import Settings
from permalake.config.lake import LakeSettings
from permalake.config.networks import WormholeSettings
from permalake.config.stores import BigtableSettings
from permalake.domains import stores_of
from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.errors import PermalakeError
from permalake.spark.tasks import TaskShare
from permalake.stores import bigtable
from permalake.stores import serve as serving
from permalake.stores.serve import serve
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts import tables as wormhole
from permalake.wormhole.events import events_writer
from permalake.wormhole.events.event_cells import COLUMNS, EVENTS, QUERIES, spelled
from permalake.wormhole.events.families import (
    FAMILIES,
    FAMILIES_V1,
    prefix_of_chain,
    prefix_of_emitter,
    tables_of,
)
from permalake.wormhole.events.signature_cells import event_rows_v1, row_key_v1
from permalake.wormhole.reference import load_reference
from support import lake_frames, places
from support.lakes import OpenLake, pass_audit

WORLD = places.DATA / "synthetic" / "wormhole"
NAMES = [family.table.name for family in FAMILIES]


@pytest.fixture(scope="module")
def settings(bigtable_server):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BIGTABLE_EMULATOR_HOST", f"127.0.0.1:{bigtable_server.port}")
        yield BigtableSettings(project="p", instance="i", table="events", table_v1="events_v1")


@pytest.fixture(scope="module")
def lake(spark):
    """The world's lake tables, with the bytes that the expected rows keep as hashes."""
    raw = {}
    for file in sorted((WORLD / "input").glob("*.jsonl.gz")):
        for line in gzip.decompress(file.read_bytes()).decode().splitlines():
            data = base64.b64decode(json.loads(line)["vaa"])
            raw[hashlib.sha256(data).hexdigest()] = data

    def whole(name, row):
        if name == "quorum_state":
            row["signed_vaa"] = raw[row["signed_vaa_sha256"]].hex()
            signed[row["row_key"]] = raw[row["signed_vaa_sha256"]]
        if name == "message_publication":
            data = signed[row["row_key"]]
            # Header 6 bytes, 66 per signature; the payload follows 51 bytes of the body.
            row["payload"] = data[6 + 66 * data[5] + 51 :].hex()
        return row

    signed = {}
    order = ["quorum_state", *(name for name in NAMES if name != "quorum_state")]
    tables = {table.name: table for table in wormhole.TABLES}
    return {
        name: lake_frames.frame(spark, tables[name], WORLD / "expected", whole).coalesce(1).cache()
        for name in order
    }


def cells(settings, table):
    """Cells of a table, newest first per column, with values as the expected files keep them."""
    found = {}
    for row in bigtable._instance(settings).table(table).read_rows():
        for family, columns in row.cells.items():
            for qualifier, versions in columns.items():
                at = row.row_key.decode(), family, qualifier.decode()
                found[at] = [(cell.value.hex(), cell.timestamp_micros) for cell in versions]
    return found


def short(value):
    return value if len(value) <= 128 else "sha256:" + hashlib.sha256(bytes.fromhex(value)).hexdigest()[:16]


def faults(found, file):
    """Columns that differ from the expected ones; of a column's versions the newest is compared."""
    lines = gzip.decompress((WORLD / "expected" / file).read_bytes()).decode().splitlines()
    wanted = {(c["row"], c["family"], c["qualifier"]): c for c in map(json.loads, lines)}
    wrong = [f"unexpected {at}" for at in found if at not in wanted]
    for at, cell in wanted.items():
        if at not in found:
            wrong += [] if cell.get("opt") else [f"missing {at}"]
            continue
        value, micros = found[at][0]
        accepted = [cell["value"], *cell.get("alt", ())]
        if micros != cell["ts_micros"] or not (cell.get("any") or short(value) in accepted):
            wrong.append(f"{at}: {short(value)} at {micros}, not {cell['value']} at {cell['ts_micros']}")
    return wrong


def event_rows(lake):
    """The rows of table v2 as a frame, from the lake tables by name."""
    with QUERIES.over(lambda name: lake[name].toArrow()).engine(TaskShare("1g", 2)) as engine:
        rows = engine.table(QUERIES.tables[EVENTS]).rename_columns(COLUMNS)
    return lake["message_publication"].sparkSession.createDataFrame(rows)


def test_every_cell_of_v2_after_one_write_and_two(settings, lake) -> None:
    assert bigtable.ensure_table(settings, settings.table, [family.name for family in FAMILIES])
    rows = event_rows(lake)
    assert bigtable.write(rows, settings, settings.table) == 520
    once = cells(settings, settings.table)
    assert faults(once, "bigtable_v2.jsonl.gz") == []
    assert all(len(versions) == 1 for versions in once.values())
    assert not bigtable.ensure_table(settings, settings.table, [family.name for family in FAMILIES])
    bigtable.write(rows, settings, settings.table)
    assert cells(settings, settings.table) == once


def test_every_cell_of_v1_and_no_history_that_nobody_observed(settings, lake) -> None:
    assert bigtable.ensure_table(settings, settings.table_v1, FAMILIES_V1)
    rows = event_rows_v1(lake, WORLD / "reference")
    assert bigtable.write(rows, settings, settings.table_v1) == 520
    once = cells(settings, settings.table_v1)
    assert faults(once, "bigtable_v1.jsonl.gz") == []
    states = {at: versions for at, versions in once.items() if at[1] == "VAAState"}
    assert len(states) == 520
    for (row, _, _), versions in states.items():
        [(value, _)] = versions
        signed = [at for at in once if at[0] == row and at[1] == "Signatures"]
        assert len(json.loads(bytes.fromhex(value))) == len(signed)
    bigtable.write(rows, settings, settings.table_v1)
    assert cells(settings, settings.table_v1) == once


def test_an_observation_is_a_cell_at_its_own_time_whether_its_guardian_signed_or_not(
    spark, settings, lake
) -> None:
    one = {name: frame.where(F.col("row_key") == lake_key(lake)) for name, frame in lake.items()}
    [publication] = one["message_publication"].collect()
    [raw] = [row["signed_vaa"] for row in one["quorum_state"].collect()]
    signers = set(decode_vaas(pa.array([bytes(raw)], pa.binary())).guardian_index.tolist())
    guardians = load_reference(WORLD / "reference").guardian_sets[publication["guardian_set_index"]]
    assert len(signers) < len(guardians)
    times = {
        index: publication["timestamp"] + dt.timedelta(milliseconds=40_123 - 997 * index)
        for index in range(len(guardians))
    }
    rows = [
        (publication["row_key"], guardians[index].hex(), f"{index:0130x}", moment, None, publication["date"])
        for index, moment in times.items()
    ]
    observed = spark.createDataFrame(rows, wormhole.OBSERVATIONS.spark)
    bigtable.ensure_table(settings, "observed_v1", FAMILIES_V1)
    bigtable.write(
        event_rows_v1({**one, "observations": observed}, WORLD / "reference"), settings, "observed_v1"
    )
    found = cells(settings, "observed_v1")
    micros = {
        index: int(moment.replace(tzinfo=dt.UTC).timestamp() * 1000) * 1000 for index, moment in times.items()
    }
    assert {at[2]: versions for at, versions in found.items() if at[1] == "Signatures"} == {
        f"0x{guardians[index].hex()}": [(f"{index:0130x}".encode().hex(), time)]
        for index, time in micros.items()
    }
    [versions] = [versions for at, versions in found.items() if at[1] == "VAAState"]
    states = {time: [one["index"] for one in json.loads(bytes.fromhex(value))] for value, time in versions}
    order = sorted(micros, key=lambda index: micros[index])
    assert states == {micros[last]: order[: at + 1] for at, last in enumerate(order)}


def lake_key(lake):
    return lake["message_publication"].orderBy("row_key").first()["row_key"]


def test_scans_of_chain_1_leave_chains_10_to_19_out(settings, lake) -> None:
    handle = bigtable._instance(settings).table(settings.table)
    bigtable.ensure_table(settings, settings.table, [family.name for family in FAMILIES])
    bigtable.write(event_rows(lake), settings, settings.table)
    publication = lake["message_publication"].select("emitter_chain", "emitter_address").collect()

    def scanned(prefix):
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        return sum(1 for _ in handle.read_rows(start_key=prefix.encode(), end_key=end.encode()))

    assert scanned(prefix_of_chain(1)) == sum(row.emitter_chain == 1 for row in publication)
    assert scanned("1") > scanned(prefix_of_chain(1))
    chain, address = publication[0]
    assert scanned(prefix_of_emitter(chain, address)) == sum(row == publication[0] for row in publication)


def test_a_rebuilt_row_keeps_no_old_cell_and_a_deleted_one_is_gone(spark, settings, lake) -> None:
    bigtable.ensure_table(settings, "rebuilt", [family.name for family in FAMILIES])
    two = event_rows(lake).orderBy("row_key").limit(2).cache()
    bigtable.write(two, settings, "rebuilt")
    first, second = (row.row_key for row in two.orderBy("row_key").collect())
    bigtable.write(two.select("row_key", "micros", "QuorumState:SignedVAA"), settings, "rebuilt")
    found = cells(settings, "rebuilt")
    assert {at[1] for at in found} == {"QuorumState"}
    assert bigtable.delete(two.where(F.col("row_key") == first), settings, "rebuilt") == 1
    assert {at[0] for at in cells(settings, "rebuilt")} == {second}


def test_small_and_negative_decimals_are_plain_text(spark) -> None:
    rows = spark.sql(
        "SELECT cast(v AS decimal(38,8)) v FROM VALUES ('0.00000001'), ('-1.5'), ('0'), "
        "('999999999999999999999999999999.99999999'), (null) AS t(v)"
    )
    text = spelled("decimal(38,8)", "v")
    duckdb = DuckDBEngine(lambda _: rows.toArrow())
    duckdb.open("cells")
    got = [row["text"] for row in duckdb.rows(f"SELECT {text} AS text FROM cells")]
    assert [row[0] for row in rows.select(F.expr(text)).collect()] == got
    assert got == [
        "0.00000001",
        "-1.50000000",
        "0.00000000",
        "999999999999999999999999999999.99999999",
        None,
    ]


def test_a_server_that_refuses_fails_the_write(settings, lake) -> None:
    with pytest.raises(Exception, match="events_gone"):
        bigtable.write(event_rows(lake).limit(3), settings, "events_gone")


def test_a_store_that_is_down_says_what_to_do(monkeypatch) -> None:
    from permalake.local.services.daemon import free_port

    monkeypatch.setenv("BIGTABLE_EMULATOR_HOST", f"127.0.0.1:{free_port()}")
    down = BigtableSettings(project="p", instance="i", table="t")
    with pytest.raises(PermalakeError, match=r"Bigtable table t: .*services status"):
        bigtable.ensure_table(down, "t", ["F"])


def test_nothing_is_published_unless_configured() -> None:
    assert tables_of(BigtableSettings()) == {}
    assert tables_of(BigtableSettings(project="p", instance="i", table="t")) == {"v2": "t"}


def test_published_days_reach_both_tables_and_a_rebuilt_day_leaves_nothing_behind(
    spark, settings, lake, tmp_path, monkeypatch
) -> None:
    whole = Settings(
        lake=LakeSettings(warehouse=str(tmp_path)),
        wormhole=WormholeSettings(path=WORLD / "input", reference=WORLD / "reference"),
        bigtable=BigtableSettings(project="p", instance="served", table="v2", table_v1="v1"),
    )
    session = spark.newSession()
    last = dt.date(2024, 3, 12)
    publish(whole, lake, dt.date(1970, 1, 1), last, F.lit(True))
    # Killed half-way: one table is written, the other is not.
    with monkeypatch.context() as patch:
        patch.setattr(serving, "_TRIES", 1)
        patch.setattr(events_writer, "event_rows_v1", None)
        with pytest.raises(PermalakeError, match="bigtable took not all"):
            serve(session, whole, "wormhole", stores_of(whole, "wormhole"))
    assert serving.waiting(whole, "wormhole", stores_of(whole, "wormhole"))["bigtable"][-1] == last
    days = serve(session, whole, "wormhole", stores_of(whole, "wormhole"))["bigtable"]
    assert days[-1] == last
    assert serve(session, whole, "wormhole", stores_of(whole, "wormhole")) == {"bigtable": []}
    once = cells(whole.bigtable, "v2")
    assert faults(once, "bigtable_v2.jsonl.gz") == []
    once_v1 = cells(whole.bigtable, "v1")
    assert faults(once_v1, "bigtable_v1.jsonl.gz") == []

    kept = F.col("row_key").startswith("2:")
    publish(whole, lake, last, last, kept)
    assert serve(session, whole, "wormhole", stores_of(whole, "wormhole")) == {"bigtable": [last]}
    keys = (
        lake["message_publication"]
        .select("row_key", row_key_v1(), "date")
        .where(kept | (F.col("date") < last))
    )
    rows, rows_v1, _ = map(set, zip(*keys.collect(), strict=True))
    left = {at: cell for at, cell in once.items() if at[0] in rows}
    left_v1 = {at: cell for at, cell in once_v1.items() if at[0] in rows_v1}
    assert 0 < len(left) < len(once)
    assert cells(whole.bigtable, "v2") == left
    assert cells(whole.bigtable, "v1") == left_v1

    # The store loses a table: all days are due for both.
    bigtable._instance(whole.bigtable).table("v1").delete()
    assert sorted(serve(session, whole, "wormhole", stores_of(whole, "wormhole"))["bigtable"]) == sorted(days)
    assert cells(whole.bigtable, "v2") == left
    assert cells(whole.bigtable, "v1") == left_v1


def publish(settings, lake, start, end, keep) -> None:
    """The range with the rows that ``keep`` keeps, through the lake's own front door."""
    front = OpenLake(settings)
    attempt = front.begin("wormhole", start, end, f"run-{start}")
    for name, frame in lake.items():
        days = F.col("date").between(F.lit(start), F.lit(end))
        attempt.stage(frame.where(days & keep), WORMHOLE_TABLES[name])
    front.builds.publish(pass_audit(attempt))
