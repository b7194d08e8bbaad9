"""The source `files`: JSON Lines and CSV dumps, plain and gzip, broken lines and all."""

import base64
import datetime as dt
import gzip
import hashlib
import json

import pytest

from permalake.errors import ConfigError
from permalake.pipeline import line_tasks
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


def test_json_lines_and_csv_dumps_lie_under_one_path(documents) -> None:
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


def test_a_line_that_cannot_be_read_is_a_document_with_a_fault(documents) -> None:
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


def test_a_missing_path_says_what_to_do(spark, tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"wormhole\.path: .*nowhere does not exist; point it at"):
        vaa_files.read(spark, tmp_path / "nowhere")


def test_what_is_quarantined_is_the_exact_input(spark, tmp_path) -> None:
    lines = [b'{"id": "\xff", "vaa": "*"}', b'\xfe{"vaa"', b'[{"vaa": ""}, {"vaa": ""}]']
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    (tmp_path / "b [1].csv").write_bytes(b"2/\xff/1,0g")
    rows = vaa_files.read(spark, tmp_path).collect()
    assert {bytes(row["raw"]) for row in rows} == {*lines, b"2/\xff/1,0g"}
    assert all(row["fault"] for row in rows)


AWKWARD = ("2024:05", "a b", "%41", "#1", "?", "*", "[a]", "{a,b}", "a\\b", "new\nline", "Ünï→", "\udcff")


def test_files_with_awkward_names(spark, tmp_path) -> None:
    """Hadoop's paths refuse a colon, and take other signs for patterns."""
    for place, name in enumerate(AWKWARD):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name}.jsonl").write_text(json.dumps({"id": f"2/aa/{place}", "vaa": BASE64}))
        (folder / f"{name}.csv").write_text(f"4/aa/{place},{VAA.hex()}\n")
    rows = vaa_files.read(spark, tmp_path).collect()
    assert {row["claimed_id"] for row in rows} == {
        f"{chain}/aa/{place}" for chain in (2, 4) for place in range(len(AWKWARD))
    }
    assert {row["raw"] for row in rows} == {VAA}
    assert "2024:05.jsonl#2/aa/0" in {row["origin"] for row in rows}


def test_a_line_that_is_too_long_is_a_document_with_a_fault(spark, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(line_tasks, "LONGEST_DOCUMENT", 1_000)
    told = f'{{"id": "{ID}", "timestamp": "2024-03-10T00:00:01Z", "vaa": "'.encode()
    bomb = told + b"A" * 500_000 + b'"}'
    sound = json.dumps({"id": ID, "vaa": BASE64}).encode()
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(sound + b"\n" + bomb + b"\n" + sound))
    (tmp_path / "b.csv").write_bytes(b"2/aa/1," + b"0" * 5_000 + b"\n" + f"{ID},{VAA.hex()}".encode())
    rows = vaa_files.read(spark, tmp_path).orderBy("origin").collect()
    assert [(row["origin"], row["raw"]) for row in rows if not row["fault"]] == [
        *[(f"a.jsonl.gz#{ID}", VAA)] * 2,
        (f"b.csv#{ID}", VAA),
    ]
    [of_json, of_csv] = [row for row in rows if row["fault"]]
    assert of_json["fault"].startswith(f"a line of more than 1000 bytes: {len(bomb)} bytes, SHA-256 ")
    assert (of_json["origin"], bytes(of_json["raw"])) == (f"a.jsonl.gz#{ID}", bomb[:65_536])
    assert of_json["document_time"] == dt.datetime(2024, 3, 10, 0, 0, 1), "salvaged from its head"
    assert bytes(of_csv["raw"]) == b"2/aa/1," + b"0" * 5_000


def test_of_a_long_line_that_cannot_be_read_the_head_is_kept(documents) -> None:
    bad = f"[{' ' * 100_000}]"
    [row] = documents(a_DOT_jsonl=bad)
    assert bytes(row["raw"]) == bad[:65_536].encode()
    digest = hashlib.sha256(bad.encode()).hexdigest()
    assert row["fault"] == (
        f"the line is not a JSON object; 100002 bytes, SHA-256 {digest}, of which the first 65536 are kept"
    )


def test_no_link_out_of_the_folder_is_followed(spark, tmp_path) -> None:
    root = tmp_path / "vaas"
    (root / "inner").mkdir(parents=True)
    (tmp_path / "secret.jsonl").write_text("password")
    (root / "inner" / "a.jsonl").write_text(json.dumps({"id": ID, "vaa": BASE64}))
    (root / "b.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (root / "c.csv").symlink_to(tmp_path / "nothing")
    assert [row["origin"] for row in vaa_files.read(spark, root).collect()] == [f"a.jsonl#{ID}"]
    (root / "inner" / "a.jsonl").unlink()
    assert vaa_files.read(spark, root).count() == 0
