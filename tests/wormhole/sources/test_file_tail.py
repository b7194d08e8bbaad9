"""Files that grow, as a live head reads them."""

from __future__ import annotations

from permalake.wormhole.sources.file_tail import FileTail


def read(file, ranges):
    return b"".join(file.read_bytes()[part.start : part.end] for part in ranges)


def test_a_file_is_read_on_until_it_is_written_anew_in_place(tmp_path) -> None:
    file = tmp_path / "vaas.jsonl"
    tail = FileTail(file, lambda root: [root])
    file.write_bytes(b"first\nsecond\nhalf")
    ranges, marks = tail.after({})
    assert read(file, ranges) == b"first\nsecond\n"
    assert tail.after(marks) is None
    with file.open("ab") as text:
        text.write(b" of it\n" + b"x" * 5_000 + b"\n")
    ranges, marks = tail.after(marks)
    assert read(file, ranges).startswith(b"half of it\nxx")
    file.write_bytes(b"others\n" + b"y" * 6_000 + b"\n")
    ranges, marks = tail.after(marks)
    assert ranges[0].start == 0
    assert tail.after(marks) is None


def test_a_mark_of_an_earlier_version_counts(tmp_path) -> None:
    file = tmp_path / "vaas.jsonl"
    file.write_bytes(b"first\nsecond\n")
    ((part,), _) = FileTail(file, lambda root: [root]).after({"vaas.jsonl": [file.stat().st_ino, 6]})
    assert (part.start, part.end) == (6, 13)
