"""Text files as lines: ranges, links, damage and limits."""

import gzip
import os
import tracemalloc
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from permalake.errors import InvalidInputError
from permalake.iota.cone.source_records import Record
from permalake.iota.sources.archive_index import times_of
from permalake.iota.sources.archive_lines import archive_rows, malformed_row, milestone_time
from permalake.pipeline import line_files
from permalake.pipeline.line_files import (
    TOO_LONG,
    Damage,
    LineRange,
    files_below,
    inside,
    line_ranges,
    read_lines,
    read_pieces,
    refuse_damaged,
)


def test_every_line_lies_in_one_range_wherever_a_file_is_cut(tmp_path) -> None:
    text = b"a\n\nbcd\r\n" + b"e" * 50 + b"\nf\n" + b"last without an end"
    file = tmp_path / "lines"
    file.write_bytes(text)
    whole = [line.rstrip(b"\r") for line in text.split(b"\n") if line.strip()]
    for step in range(1, len(text) + 1):
        parts = [LineRange(str(file), at, min(at + step, len(text))) for at in range(0, len(text), step)]
        assert [line for part in parts for line in read_lines(part)] == whole, step


def test_large_files_are_cut_and_gzip_files_are_not(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(line_files, "_RANGE_BYTES", 10)
    plain, packed = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    plain.write_bytes(b"x\n" * 12)
    packed.write_bytes(gzip.compress(b"y\n" * 12))
    parts = line_ranges([plain, packed])
    assert [(Path(part.path).name, part.start) for part in parts] == [
        *((plain.name, at) for at in (0, 10, 20)),
        (packed.name, 0),
    ]
    assert [line for part in parts for line in read_lines(part)] == [b"x"] * 12 + [b"y"] * 12


def test_no_link_out_of_the_folder_is_followed(tmp_path, caplog) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_text("password")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "blocks.jsonl").write_text("password")
    root = tmp_path / "archive"
    (root / "own").mkdir(parents=True)
    (root / "own" / "milestones.jsonl").write_text("{}")
    (root / "blocks.jsonl").symlink_to(secret)
    (root / "folder").symlink_to(tmp_path / "elsewhere")
    (root / "utxo_changes.jsonl").symlink_to(tmp_path / "nothing")
    (root / "milestones-b.jsonl").symlink_to(root / "own" / "milestones.jsonl")
    found = inside(root, [*root.rglob("*.jsonl*"), root / "folder" / "blocks.jsonl"])
    assert [file.name for file in found] == ["milestones-b.jsonl", "milestones.jsonl"]
    assert "blocks.jsonl is not read" in caplog.text


@pytest.mark.parametrize("cut", ["truncated", "flipped", "no gzip"])
def test_a_damaged_gzip_file_says_so_behind_what_was_read(tmp_path, cut) -> None:
    text = b"".join(b"%064x\n" % (i * 7919**20) for i in range(20_000))
    packed = bytearray(gzip.compress(text))
    if cut == "truncated":
        packed = packed[: len(packed) // 2]
    elif cut == "flipped":
        packed[len(packed) // 2] ^= 0xFF
    else:
        packed = bytearray(b"plain text\n")
    file = tmp_path / "blocks.jsonl.gz"
    file.write_bytes(packed)
    (part,) = line_ranges([file])
    *lines, damage = read_lines(part)
    assert isinstance(damage, Damage)
    assert "gzip file is damaged" in damage.reason
    assert bool(lines) == (cut != "no gzip")
    *_, row = archive_rows(read_lines(part), Record.BLOCK, 7)
    assert (row["kind"], row["milestone"]) == (Record.MALFORMED, 7)
    assert b"gzip file is damaged" in row["link"]
    assert times_of(part, milestone_time).damage == (f"{file.name}: {damage.reason}",)


def test_a_line_without_end_takes_no_more_memory_than_its_limit(tmp_path) -> None:
    file = tmp_path / "blocks.jsonl"
    file.write_bytes(b"one\n" + b"x" * 10_000 + b"\ntwo\n" + b"y" * 100)
    (part,) = line_ranges([file])
    one, damage, two, end = read_lines(replace(part, longest=100))
    assert (one, two, end) == (b"one", b"two", b"y" * 100)
    assert damage == damage_of(b"x" * 10_000, 100)


def damage_of(line, longest):
    whole = f"{len(line)} bytes, SHA-256 {sha256(line).hexdigest()}, of which the first 65536 are kept"
    return Damage(f"a line of more than {longest} bytes: {whole}", line[:65_536])


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_lines_do_not_depend_on_how_a_file_is_read(tmp_path, monkeypatch, name, chunk) -> None:
    text = b"one\r\n\r\n\n" + b"x" * 20 + b"\ntwo\r\r\n" + b"y" * 21 + b"\n" + b"z" * 70 + b"\r\nthree"
    file = tmp_path / name
    file.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    (part,) = line_ranges([file])
    monkeypatch.setattr(line_files, "_CHUNK", chunk)
    for piece in (1, 5, 1_000):
        monkeypatch.setattr(line_files, "_PIECE", piece)
        pieces = list(read_pieces(replace(part, longest=71)))
        assert b"".join(pieces) == text
        assert all(one.endswith(b"\n") for one in pieces[:-1])
        found = list(read_lines(replace(part, longest=20)))
        long = [damage_of(line, 20) for line in (b"y" * 21, b"z" * 70 + b"\r")]
        assert found == [b"one", b"x" * 20, b"two", *long, b"three"]


def test_a_bomb_is_read_in_little_memory(tmp_path) -> None:
    """200 MB in one line, 200 KB compressed: the head is kept, with what the whole is."""
    file = tmp_path / "bomb.jsonl.gz"
    block = b"x" * 2**20
    with gzip.open(file, "wb", compresslevel=1) as packed:
        packed.write(b"{}\n")
        for _ in range(200):
            packed.write(block)
        packed.write(b"\n[]\n")
    (part,) = line_ranges([file], 2**20)
    tracemalloc.start()
    first, damage, last = read_lines(part)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (first, last) == (b"{}", b"[]")
    assert damage.reason.startswith(f"{TOO_LONG} {2**20} bytes: {200 * 2**20} bytes, SHA-256 ")
    assert damage.raw == b"x" * 65_536
    assert peak < 16 * 2**20


def test_a_malformed_line_keeps_its_head(tmp_path) -> None:
    row = malformed_row(b"[" * 100_000, "no JSON", 7)
    assert row["raw"] == b"[" * 65_536
    assert row["link"].startswith(b"no JSON; 100000 bytes, SHA-256 ")


def test_damage_while_a_long_line_is_passed_over_tells_both(tmp_path) -> None:
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(gzip.compress(os.urandom(200_000).replace(b"\n", b"-"))[:-1_000])
    long, broken = read_lines(*line_ranges([file], 1_000))
    assert long.reason.startswith(TOO_LONG)
    assert "gzip file is damaged" in broken.reason


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path) -> None:
    for name, pack in (("a.jsonl", bytes), ("a.jsonl.gz", gzip.compress)):
        file = tmp_path / name
        file.write_bytes(pack(b"\xef\xbb\xbf{}\n[]"))
        assert list(read_lines(*line_ranges([file]))) == [b"{}", b"[]"]
    file.write_bytes(gzip.compress(b"\xef"))
    assert list(read_lines(*line_ranges([file]))) == [b"\xef"]


def test_names_are_names(tmp_path) -> None:
    names = ["a:b", "a b", "%41", "#", "?", "*", "[a]", "{a,b}", "new\nline", "Ünï→", os.fsdecode(b"\xff")]
    for name in names:
        (tmp_path / f"{name}.jsonl").write_text(f"{len(name)}\n")
    found = files_below(tmp_path, (".jsonl",))
    assert {file.stem for file in found} == set(names)
    parts = line_ranges(found)
    assert sorted(int(line) for part in parts for line in read_lines(part)) == sorted(map(len, names))
    assert all(part.name.encode() for part in parts)


def test_what_comes_before_damage_is_read(tmp_path) -> None:
    file = tmp_path / "blocks.jsonl.gz"
    file.write_bytes(gzip.compress(b"{}\n" * 1_000 + b"{")[:-4])
    (part,) = line_ranges([file])
    piece, damage = read_pieces(part)
    assert piece == b"{}\n" * 1_000
    assert isinstance(damage, Damage)


def test_files_of_a_source_by_their_endings(tmp_path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("deep/b [1].csv", "a.csv.gz", ".hidden.csv", "_folder.csv", "c.txt"):
        (tmp_path / name).write_text("x")
    found = files_below(tmp_path, (".csv", ".csv.gz"))
    assert [str(file.relative_to(tmp_path)) for file in found] == ["a.csv.gz", "deep/b [1].csv"]
    assert files_below(tmp_path / "c.txt", (".csv",)) == [tmp_path / "c.txt"]


@pytest.mark.parametrize("keep", [10, -1])
def test_a_gzip_file_that_breaks_off_is_refused_on_one_line(tmp_path, keep) -> None:
    whole, cut = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz"
    whole.write_bytes(gzip.compress(b"{}\n" * 1_000))
    cut.write_bytes(whole.read_bytes()[:keep])
    refuse_damaged([whole, tmp_path / "plain.jsonl"], "wormhole.path")
    with pytest.raises(
        InvalidInputError, match=rf"wormhole\.path: {cut}: the gzip file is damaged: .*; put a"
    ):
        refuse_damaged([whole, cut], "wormhole.path")
