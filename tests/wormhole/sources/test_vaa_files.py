"""The source `files`: JSON Lines and CSV dumps, plain and gzip, broken lines and all."""

import base64
import datetime as dt
import gzip
import json

import pytest

from permalake.errors import ConfigError
from permalake.wormhole.sources import vaa_files

VAA = bytes.fromhex("0100000000")
BASE64 = base64.b64encode(VAA).decode()
ID = f"2/{'ab' * 32}/18446744073709551615"


@pytest.fixture
def documents(spark, tmp_path):
    def write_and_read(**files):
        for name, text in files.items():
            file = tmp_path / name.replace("__", "/").replace("_DOT_", ".")
            file.parent.mkdir(parents=True, exist_ok=True)
            data = text.encode()
            file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)
        return [row.asDict() for row in vaa_files.read(spark, tmp_path).orderBy("origin").collect()]

    return write_and_read


def test_json_lines_and_csv_dumps_lie_under_one_path(documents):
    document = {
        "id": ID,
        "sequence": 18446744073709551615,
        "vaa": BASE64,
        "timestamp": "2024-03-10T00:00:01Z",
        "indexedAt": "2024-03-10T00:01:09.190Z",
        "txHash": "0xAB",
    }
    rows = documents(
        a_DOT_jsonl=json.dumps(document) + "\n\n",
        deep__b_DOT_jsonl_DOT_gz=json.dumps({"vaa": BASE64}),
        c_DOT_csv=f"{ID},0x{VAA.hex().upper()}\n",
        README_DOT_md="not a source\n",
    )
    whole = {
        "source": "files",
        "origin": f"a.jsonl#{ID}",
        "claimed_id": ID,
        "raw": VAA,
        "fault": None,
        "document_time": dt.datetime(2024, 3, 10, 0, 0, 1),
        "indexed_at": dt.datetime(2024, 3, 10, 0, 1, 9, 190000),
        "tx_id": "0xAB",
    }
    nothing = {"document_time": None, "indexed_at": None, "tx_id": None}
    assert rows == [
        whole,
        {**whole, **nothing, "origin": "b.jsonl.gz", "claimed_id": None},
        {**whole, **nothing, "origin": f"c.csv#{ID}"},
    ]


def test_a_line_that_cannot_be_read_is_a_document_with_a_fault(documents):
    cut = f'{{"id": "{ID}", "timestamp": "2024-03-10T00:00:01Z", "vaa": "AQ'
    rows = documents(
        a_DOT_jsonl=f'{cut}\n{{"id": "b"}}\n{{"id": "c", "vaa": "*"}}\n',
        d_DOT_csv="no comma\ne,0g\n",
    )
    assert [(row["origin"], row["fault"], row["raw"]) for row in rows] == [
        (f"a.jsonl#{ID}", "the line is not a JSON object", cut.encode()),
        ("a.jsonl#b", "the document has no field vaa", b'{"id": "b"}'),
        ("a.jsonl#c", "the field vaa is not base64", b'{"id": "c", "vaa": "*"}'),
        ("d.csv", "the line is not chain/emitter/sequence,hex", b"no comma"),
        ("d.csv#e", "the line is not chain/emitter/sequence,hex", b"e,0g"),
    ]
    assert rows[0]["document_time"] == dt.datetime(2024, 3, 10, 0, 0, 1), "salvaged from the broken line"


def test_a_missing_path_says_what_to_do(spark, tmp_path):
    with pytest.raises(ConfigError, match=r"wormhole\.path: .*nowhere does not exist; point it at"):
        vaa_files.read(spark, tmp_path / "nowhere")


def test_what_is_quarantined_is_the_exact_input(spark, tmp_path):
    lines = [b'{"id": "\xff", "vaa": "*"}', b'\xfe{"vaa"', b'[{"vaa": ""}, {"vaa": ""}]']
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    (tmp_path / "b [1].csv").write_bytes(b"2/\xff/1,0g")
    rows = vaa_files.read(spark, tmp_path).collect()
    assert {bytes(row["raw"]) for row in rows} == {*lines, b"2/\xff/1,0g"}
    assert all(row["fault"] for row in rows)


def test_no_link_out_of_the_folder_is_followed(spark, tmp_path):
    root = tmp_path / "vaas"
    (root / "inner").mkdir(parents=True)
    (tmp_path / "secret.jsonl").write_text("password")
    (root / "inner" / "a.jsonl").write_text(json.dumps({"id": ID, "vaa": BASE64}))
    (root / "b.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (root / "c.csv").symlink_to(tmp_path / "nothing")
    assert [row["origin"] for row in vaa_files.read(spark, root).collect()] == [f"a.jsonl#{ID}"]
    (root / "inner" / "a.jsonl").unlink()
    assert vaa_files.read(spark, root).count() == 0
