"""Files of VAAs, observations and quotes with 10,000 seeded mutations each: none of them fails a job."""

from __future__ import annotations

import base64
import datetime as dt
import json
import random

import pytest

from permalake.config.services import PricesSettings
from permalake.paths import SAMPLE
from permalake.wormhole.enrich.providers.file import FilePrices
from permalake.wormhole.reference import load_reference
from permalake.wormhole.sources import observation_files, vaa_files
from permalake.wormhole.tables.event_tables import chain_messages
from permalake.wormhole.tables.observations import judged_observations, of_messages
from permalake.wormhole.tables.verified_vaas import verified
from support.deciding_vaas import candidates
from support.mutations import mutated, mutated_line, one_line
from support.quotes import LOCAL, nearest_rows, wants

MUTATIONS = 10_000
FIRST, LAST = dt.date(1970, 1, 1), dt.date(9999, 12, 31)


def documents():
    with (SAMPLE / "wormhole" / "mainnet_vaas.jsonl").open() as lines:
        return [json.loads(line) for line in lines]


def json_lines():
    rng, samples = random.Random("jsonl"), documents()
    return [one_line(mutated(rng, rng.choice(samples))) for _ in range(MUTATIONS)]


def csv_lines():
    rng = random.Random("csv")
    samples = [f"{one['id']},{base64.b64decode(one['vaa']).hex()}".encode() for one in documents()]
    return [mutated_line(rng, rng.choice(samples)) for _ in range(MUTATIONS)]


@pytest.mark.parametrize(("name", "lines"), [("a.jsonl", json_lines), ("a.csv", csv_lines)])
def test_files_of_vaas(spark, tmp_path, name, lines) -> None:
    given = lines()
    (tmp_path / name).write_bytes(b"\n".join(given))
    found = vaa_files.read(spark, tmp_path).cache()
    rows = found.select("raw", "fault").collect()
    assert len(rows) == len([line for line in given if line.strip(b" ")])
    faulty = {bytes(row["raw"]) for row in rows if row["fault"]}
    assert faulty <= set(given)
    assert 500 < len(faulty) < MUTATIONS
    vaas = verified(candidates(found, FIRST, LAST), load_reference(None))
    assert any(vaas.published.to_pylist())
    assert chain_messages(vaas).num_rows > 0
    set_apart = set(vaas.refused["raw"].to_pylist())
    dated = set(candidates(found.where("fault IS NOT NULL"), FIRST, LAST)["raw"].to_pylist())
    assert dated <= set_apart
    assert faulty - dated == set()
    found.unpersist()


def observed():
    one = documents()[0]
    chain, emitter, sequence = one["id"].split("/")
    return {
        "sequence": int(sequence),
        "emitterChain": int(chain),
        "emitterAddr": emitter,
        "guardianAddr": "0x" + "58CC3AE5C097b213cE3c81979e1B9f9570746AA5",
        "signature": base64.b64encode(bytes(65)).decode(),
        "indexedAt": "2024-03-10T12:00:00.250Z",
    }


def test_files_of_observations(spark, tmp_path) -> None:
    rng, sample = random.Random("observations"), observed()
    lines = [one_line(mutated(rng, sample)) for _ in range(MUTATIONS)]
    (tmp_path / "o.jsonl").write_bytes(b"\n".join(lines))
    files = observation_files.files_of(tmp_path)
    found = observation_files.read(spark, files, observation_files.NAME).cache()
    assert 500 < found.count() < MUTATIONS
    schema = "row_key string, date date, guardian_set_index long, digest string"
    keys = [
        (row["row_key"], dt.date(2024, 3, 10), index, digest)
        for row in found.select("row_key").distinct().collect()
        for index, digest in ((3, "00" * 32), (4, "ab" * 32))
    ]
    published = spark.createDataFrame(keys, schema)
    signed = published.selectExpr("row_key", "unhex(repeat('00', 6)) AS signed_vaa").distinct()
    rows = of_messages(found, published, signed).toArrow()
    kept, refused = judged_observations(rows, load_reference().guardian_sets)
    assert (kept.num_rows, refused.num_rows) == (0, rows.num_rows)
    assert set(refused["reason"].to_pylist()) == {"malformed", "unknown_guardian", "bad_signature"}
    found.unpersist()


def test_files_of_quotes(tmp_path) -> None:
    rng, token = random.Random("quotes"), "ab" * 32
    sound = [f"2024-03-10T14:{n // 60:02}:{n % 60:02}Z,2,{token},A,a,18,2.5".encode() for n in range(3_600)]
    header = b"quoted_at,chain,token_address,symbol,coingecko_id,decimals,price_usd"
    lines = [mutated_line(rng, rng.choice(sound)) for _ in range(MUTATIONS)]
    (tmp_path / "quotes.csv").write_bytes(b"\n".join([header, *lines, sound[0]]))
    wanted = wants((2, token, dt.datetime(2024, 3, 10, 14, tzinfo=dt.UTC)))
    quotes = FilePrices(tmp_path, 12).quotes(LOCAL, wanted)
    assert quotes.num_rows > 200
    assert len(nearest_rows(wanted, quotes, PricesSettings())) == 1
