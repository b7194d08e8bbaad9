"""Text files as lines: ranges, links, damage and limits."""

import gzip
from pathlib import Path

import pytest

from permalake.iota.cone.source_records import Record
from permalake.iota.sources import line_files
from permalake.iota.sources.archive_index import times_of
from permalake.iota.sources.archive_lines import archive_rows, milestone_time
from permalake.iota.sources.line_files import Damage, LineRange, inside, line_ranges, read_lines


def test_every_line_lies_in_one_range_wherever_a_file_is_cut(tmp_path):
    text = b"a\n\nbcd\r\n" + b"e" * 50 + b"\nf\n" + b"last without an end"
    file = tmp_path / "lines"
    file.write_bytes(text)
    whole = [line.rstrip(b"\r") for line in text.split(b"\n") if line.strip()]
    for step in range(1, len(text) + 1):
        parts = [LineRange(str(file), at, min(at + step, len(text))) for at in range(0, len(text), step)]
        assert [line for part in parts for line in read_lines(part)] == whole, step


def test_large_files_are_cut_and_gzip_files_are_not(tmp_path, monkeypatch):
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


def test_no_link_out_of_the_folder_is_followed(tmp_path, caplog):
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
def test_a_damaged_gzip_file_says_so_behind_what_was_read(tmp_path, cut):
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


def test_a_line_without_end_takes_no_more_memory_than_its_limit(tmp_path):
    file = tmp_path / "blocks.jsonl"
    file.write_bytes(b"one\n" + b"x" * 10_000 + b"\ntwo\n" + b"y" * 100)
    (part,) = line_ranges([file])
    one, damage, two, end = read_lines(part, 100)
    assert (one, two, end) == (b"one", b"two", b"y" * 100)
    assert damage == Damage("a line of more than 100 bytes", b"x" * 100)
