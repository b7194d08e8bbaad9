"""Observations: read, checked against their message, and refused with a reason."""

from __future__ import annotations

import base64
import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from permalake.errors import ConfigError
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.sources import observation_files
from permalake.wormhole.tables.observations import judged_observations, of_messages
from permalake_simulate.wormhole.encode_vaa import guardian_address, sign_body
from support.guardians import BRIDGE, SECRETS, SET, vaa

DAY = dt.date(2024, 3, 10)
KEY = f"2:{BRIDGE.hex()}:{7:016}"
RAW = vaa(7, DAY, signers=3)
BODY = RAW[6 + 66 * RAW[5] :]
SIGNED = dict(sign_body(BODY, SECRETS))
ADDRESSES = [guardian_address(secret) for secret in SECRETS.values()]
STRANGER = bytes([99]) * 32


def document(guardian: int, second: int, signature: bytes | None = None, **other: Any) -> dict[str, Any]:
    """As ``GET /api/v1/observations`` serves it."""
    return {
        "sequence": 7,
        "id": "2/…/7/…",
        "emitterChain": 2,
        "emitterAddr": BRIDGE.hex(),
        "guardianAddr": "0x" + ADDRESSES[guardian].hex().upper(),
        "signature": base64.b64encode(signature or SIGNED[guardian]).decode(),
        "indexedAt": f"2024-03-10T12:00:{second:02}.250Z",
        **other,
    }


@pytest.fixture(scope="module")
def found(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, pa.Table]:
    folder = tmp_path_factory.mktemp("observations")
    by_stranger = base64.b64encode(dict(sign_body(BODY, {1: STRANGER}))[1]).decode()
    documents = [
        document(2, 1),
        document(0, 9),
        document(0, 5),
        document(3, 30),
        document(1, 3, signature=SIGNED[2]),
        document(1, 4, sequence=8),
        document(1, 4, signature=b"short"),
        document(1, 4, indexedAt="yesterday"),
        document(1, 4, indexedAt="1970-01-01T00:00:01Z"),
        document(1, 4, guardianAddr="0xabcd"),
        document(1, 2, signature=None, guardianAddr=None),
        document(1, 2, signature=by_stranger.encode(), guardianAddr="0x" + guardian_address(STRANGER).hex()),
        {"signature": "names no message"},
    ]
    documents[-2]["signature"] = by_stranger
    (folder / "o.jsonl").write_text("\n".join(["no json", *map(json.dumps, documents)]))
    digest = decode_vaas(pa.array([RAW], pa.binary())).publication()["digest"][0].as_py()
    schema = "row_key string, date date, guardian_set_index long, digest string"
    published = spark.createDataFrame([(KEY, DAY, SET, digest)], schema)
    files = observation_files.files_of(folder)
    signed = spark.createDataFrame([(KEY, bytearray(RAW))], "row_key string, signed_vaa binary")
    told = observation_files.read(spark, files, observation_files.NAME)
    rows = of_messages(told, published, signed).toArrow()
    return judged_observations(rows, {SET: ADDRESSES})


def test_an_observation_counts_when_its_guardian_signed_that_very_message(
    found: tuple[pa.Table, pa.Table],
) -> None:
    moment = dt.datetime(2024, 3, 10, 12, 0, 0, 250_000, tzinfo=dt.UTC)
    rows = sorted(found[0].to_pylist(), key=lambda row: row["observed_at"])
    assert rows == [
        {
            "row_key": KEY,
            "guardian_address": ADDRESSES[guardian].hex(),
            "signature": SIGNED[guardian].hex(),
            "observed_at": moment.replace(second=second),
            "in_vaa": int(guardian < 3),
            "date": DAY,
        }
        for guardian, second in ((2, 1), (0, 5), (3, 30))
    ]


def test_what_does_not_hold_is_refused_with_reason_and_origin(found: tuple[pa.Table, pa.Table]) -> None:
    refused = found[1].to_pylist()
    assert sorted(row["reason"] for row in refused) == [
        "bad_signature",
        *["malformed"] * 5,
        "unknown_guardian",
    ]
    assert {row["source"] for row in refused} == {"observations"}
    assert {row["date"] for row in refused} == {DAY}
    [bad] = [row for row in refused if row["reason"] == "bad_signature"]
    assert bad["origin"] == f"o.jsonl#2/{BRIDGE.hex()}/7/0x{ADDRESSES[1].hex().upper()}"
    assert json.loads(bad["raw"])["indexedAt"] == "2024-03-10T12:00:03.250Z"


def test_a_wrong_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"wormhole\.observations: .*nowhere does not exist"):
        observation_files.files_of(tmp_path / "nowhere")
