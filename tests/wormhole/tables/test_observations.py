"""Observations: read, checked against the message, and the order in which v1 shows signatures."""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from permalake.errors import ConfigError
from permalake.wormhole.codec.encode_vaa import guardian_address, sign_body
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.events.signature_cells import event_rows_v1
from permalake.wormhole.sources import observation_files
from permalake.wormhole.tables.observations import observations
from support.guardians import BRIDGE, SECRETS, SET, vaa

DAY = dt.date(2024, 3, 10)
KEY = f"2:{BRIDGE.hex()}:{7:016}"
RAW = vaa(7, DAY)
BODY = RAW[6 + 66 * RAW[5] :]
SIGNED = dict(sign_body(BODY, SECRETS))


def document(guardian, second, signature=None, **other):
    """As ``GET /api/v1/observations`` serves it."""
    return {
        "sequence": 7,
        "id": "2/…/7/…",
        "emitterChain": 2,
        "emitterAddr": BRIDGE.hex(),
        "guardianAddr": "0x" + guardian_address(SECRETS[guardian]).hex().upper(),
        "signature": base64.b64encode(signature or SIGNED[guardian]).decode(),
        "indexedAt": f"2024-03-10T12:00:{second:02}.250Z",
        **other,
    }


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    guardians = [{"pubkey": "0x" + guardian_address(SECRETS[n]).hex()} for n in (0, 1, 2, 3)]
    (folder / "guardian_sets.json").write_text(json.dumps([{"index": SET, "guardians": guardians}]))
    return folder


@pytest.fixture(scope="module")
def rows(spark, reference, tmp_path_factory):
    folder = tmp_path_factory.mktemp("observations")
    stranger = bytes([99]) * 32
    documents = [
        document(2, 1),
        document(0, 5),
        document(0, 9),
        document(1, 3, signature=SIGNED[2]),
        document(3, 4, sequence=8),
        document(3, 4, signature=b"short"),
        document(3, 4, indexedAt="yesterday"),
        document(
            1,
            2,
            signature=dict(sign_body(BODY, {1: stranger}))[1],
            guardianAddr="0x" + guardian_address(stranger).hex(),
        ),
    ]
    (folder / "o.jsonl").write_text("\n".join(["no json", *map(json.dumps, documents)]))
    digest = decode_vaas(pa.array([RAW], pa.binary())).publication()["digest"][0].as_py()
    schema = "row_key string, date date, guardian_set_index long, digest string"
    published = spark.createDataFrame([(KEY, DAY, SET, digest)], schema)
    return observations(observation_files.read(spark, folder), published, reference)


def test_an_observation_counts_when_its_guardian_signed_that_very_message(rows):
    found = [tuple(row) for row in rows.orderBy("observed_at").collect()]
    moment = dt.datetime(2024, 3, 10, 12, 0, 0, 250_000)
    assert found == [
        (KEY, guardian_address(SECRETS[n]).hex(), SIGNED[n].hex(), moment.replace(second=second), DAY)
        for n, second in ((2, 1), (0, 5))
    ]


def test_v1_shows_signatures_as_they_were_observed_then_by_index(spark, rows, reference):
    columns = ("row_key", "emitter_chain", "emitter_address", "sequence", "timestamp", "guardian_set_index")
    noon = dt.datetime(2024, 3, 10, 12, tzinfo=dt.UTC)
    contract = WORMHOLE_TABLES["message_publication"].spark
    values = dict(zip(columns, (KEY, 2, BRIDGE.hex(), Decimal(7), noon, SET), strict=True))
    lake = {
        "message_publication": spark.createDataFrame(
            [tuple(values.get(field.name) for field in contract)],
            ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in contract),
        ),
        "quorum_state": spark.createDataFrame(
            [(KEY, RAW, DAY)], "row_key string, signed_vaa binary, date date"
        ),
    }

    def longest(tables):
        [row] = event_rows_v1(tables, reference).collect()
        cells = [cell for cell in row["cells"] if cell["family"] == "VAAState"]
        return [one["index"] for one in json.loads(max(cells, key=lambda cell: cell["micros"])["value"])]

    assert longest(lake) == [0, 1, 2, 3]
    assert longest({**lake, "observations": rows}) == [2, 0, 1, 3]


def test_a_wrong_path_is_named(spark, tmp_path):
    with pytest.raises(ConfigError, match=r"wormhole\.observations: .*nowhere does not exist"):
        observation_files.read(spark, tmp_path / "nowhere")
