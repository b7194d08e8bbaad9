"""The log of manifests: tiles that agree with a signed checkpoint, whatever was killed before."""

from __future__ import annotations

import random
from dataclasses import asdict

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from permalake.errors import PermalakeError
from permalake.transparency import log as logs
from permalake.transparency import merkle
from permalake.transparency.digest import canonical_json
from permalake.transparency.log import Entry, InvalidLogError, append, files_of, read_log
from permalake.transparency.notes import InvalidNoteError, SignerKey
from permalake.transparency.places import FolderPlace

KEY = SignerKey("example.org/log", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
ORIGIN = f"{KEY.name}/lake"
NAMED = {"checkpoint": "note|signature|checkpoint"}


def entries(start, end):
    return [
        Entry("shimmer", f"2022-{1 + at % 12:02d}-{1 + at % 28:02d}", at, f"{at:064x}")
        for at in range(start, end)
    ]


def read(place):
    return read_log(place, "log", [KEY.verifier])


@pytest.fixture
def place(tmp_path):
    return FolderPlace(str(tmp_path))


def test_a_log_grows_over_the_borders_of_tiles(place) -> None:
    size = 0
    for step in (1, 1, 253, 1, 1, 255, 256, 300):
        append(place, "log", read(place), entries(size, size + step), key=KEY, origin=ORIGIN)
        size += step
        log = read(place)
        assert list(log.entries) == entries(0, size)
        assert log.checkpoint.root == merkle.root(
            [merkle.leaf_hash(entry.content) for entry in entries(0, size)]
        )


def test_numbers_of_tiles_are_spelled_as_specified() -> None:
    paths = [path for path, _ in logs._tiles("0", 1234068 * 256, 1234067 * 256)]
    assert paths == ["tile/0/x001/x234/067"]
    assert [path for path, _ in logs._tiles("entries", 257)] == ["tile/entries/000", "tile/entries/001.p/1"]


def test_there_is_a_tile_of_each_level(place) -> None:
    append(place, "log", None, entries(0, 256 * 3 + 5), key=KEY, origin=ORIGIN)
    assert {"tile/0/002", "tile/0/003.p/5", "tile/1/000.p/3", "tile/entries/003.p/5"} <= set(
        files_of(read(place))
    )


def test_no_log_is_none_and_one_of_another_key_is_refused(place) -> None:
    assert read(place) is None
    append(place, "log", None, entries(0, 3), key=KEY, origin=ORIGIN)
    other = SignerKey(KEY.name, Ed25519PrivateKey.from_private_bytes(bytes(32)))
    with pytest.raises(InvalidNoteError):
        read_log(place, "log", [other.verifier])


def test_an_append_that_was_killed_before_the_checkpoint_is_made_good(place, monkeypatch) -> None:
    append(place, "log", None, entries(0, 250), key=KEY, origin=ORIGIN)
    whole = FolderPlace.write

    def killed(self, path, content):
        if path.endswith("checkpoint"):
            raise KeyboardInterrupt
        whole(self, path, content)

    before = read(place)
    with monkeypatch.context() as patch:
        patch.setattr(FolderPlace, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            append(place, "log", before, entries(250, 520), key=KEY, origin=ORIGIN)
    assert read(place).checkpoint.size == 250
    append(place, "log", read(place), entries(600, 900), key=KEY, origin=ORIGIN)
    assert list(read(place).entries) == [*entries(0, 250), *entries(600, 900)]


def test_any_damage_of_any_file_is_noticed_and_named(place, tmp_path) -> None:
    append(place, "log", None, entries(0, 600), key=KEY, origin=ORIGIN)
    chance = random.Random(3)
    for path in files_of(read(place)):
        file = tmp_path / "log" / path
        sound = file.read_bytes()
        for damaged in (_flipped(sound, chance), sound[: chance.randrange(len(sound))], sound + b"x", None):
            file.unlink()
            if damaged is not None:
                file.write_bytes(damaged)
            if damaged is None and path == "checkpoint":
                assert read(place) is None
            else:
                with pytest.raises((InvalidLogError, InvalidNoteError), match=NAMED.get(path, path)):
                    read(place)
            file.write_bytes(sound)
    assert read(place).checkpoint.size == 600


def _flipped(content, chance):
    at = chance.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b"nope", b'{"date":"2022-01-01", "manifest":"","network":"n","publication":1}'],
)
def test_what_is_no_entry_is_refused(content) -> None:
    with pytest.raises(PermalakeError):
        Entry.parse(content)


@pytest.mark.parametrize(
    "field",
    [
        {"date": "2022-02-30"},
        {"date": "20220228"},
        {"date": "../../.."},
        {"date": 20220228},
        {"network": "../shimmer"},
        {"network": "a/b"},
        {"network": None},
        {"publication": "1"},
        {"publication": None},
        {"manifest": "00"},
        {"manifest": 10**63},
    ],
)
def test_an_entry_whose_fields_are_not_what_they_say_is_refused(field) -> None:
    [entry] = entries(1, 2)
    assert Entry.parse(entry.content) == entry
    with pytest.raises(InvalidLogError, match="is damaged"):
        Entry.parse(canonical_json({**asdict(entry), **field}))


def test_an_entry_of_nothing_but_brackets_is_refused() -> None:
    with pytest.raises(InvalidLogError, match="is damaged"):
        Entry.parse(b"[" * 65_000)
