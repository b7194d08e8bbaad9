"""Copies of single rows: as the lake has them, of one state, and never needed."""

from __future__ import annotations

import fcntl

import pytest

from permalake.domains import domain_of
from permalake.lake.serving import LakeQuery, LakeReader, Scan
from support import lakes

FIRST = Scan(milestones=(1,))


@pytest.fixture
def lake_settings(tmp_path):
    settings = lakes.settings_of(tmp_path / "warehouse")
    lake = lakes.OpenLake(settings)
    lakes.build(settings, lake, lakes.DAY1, 1, 3, "first")
    lakes.build(settings, lake, lakes.DAY2, 2, 5, "second")
    return settings


@pytest.fixture
def reader(lake_settings, tmp_path):
    reader = LakeReader(lake_settings, domain_of, pool_size=1, cache=tmp_path / "cache")
    yield reader
    reader.close()


def message_id(milestone, at) -> str:
    return f"{milestone:060x}{at:04x}"


def copied(reader, value, scan, snapshot=None):
    snapshot = snapshot or reader.snapshot()
    return reader.copied(snapshot, lakes.NETWORK, "messages", scan, column="message_id", value=value)


def files(tmp_path):
    return sorted((tmp_path / "cache").rglob("messages.rows/*.arrow"))


def test_a_copy_has_the_row_of_the_lake(reader) -> None:
    assert copied(reader, message_id(1, 0), FIRST) is None
    reader.copy_rows()
    columns = reader.snapshot().table(lakes.NETWORK, "messages").contract.copied
    for milestone, count in ((1, 3), (2, 5)):
        for at in range(count):
            value, scan = message_id(milestone, at), Scan(milestones=(milestone,))
            sql = f"SELECT {', '.join(columns)} FROM messages WHERE message_id = $id"
            query = LakeQuery(
                reader.snapshot(), lakes.NETWORK, sql, {"id": value}, {"messages": scan}, float("inf")
            )
            assert copied(reader, value, scan) == reader.rows(query) != []


@pytest.mark.parametrize("count", [64, 65, 300])
def test_a_row_is_found_among_few_and_many_of_its_milestone(reader, lake_settings, count) -> None:
    lakes.build(lake_settings, lakes.OpenLake(lake_settings), lakes.DAY1, 1, count, "crowded")
    reader.refresh()
    reader.copy_rows()
    for at in (0, count // 2, count - 1):
        (row,) = copied(reader, message_id(1, at), FIRST)
        assert (row["message_id"], row["white_flag_index"]) == (message_id(1, at), at)
    assert copied(reader, message_id(1, count), FIRST) == []


def test_a_value_elsewhere_or_nowhere_is_no_row(reader) -> None:
    reader.copy_rows()
    assert copied(reader, message_id(2, 0), FIRST) == []
    assert copied(reader, message_id(9, 9), FIRST) == []
    assert copied(reader, message_id(1, 0), Scan(milestones=())) == []
    assert copied(reader, message_id(1, 0), Scan(milestones=(7,))) == []


def test_a_request_of_an_earlier_state_never_reads_a_later_copy(reader, lake_settings, tmp_path) -> None:
    reader.copy_rows()
    before, old = reader.snapshot(), files(tmp_path)
    lakes.build(lake_settings, lakes.OpenLake(lake_settings), lakes.DAY1, 1, 1, "again")
    assert reader.refresh()
    assert copied(reader, message_id(1, 2), FIRST) is None, "the new day is not copied yet"
    reader.copy_rows()
    assert len(files(tmp_path)) == len(old)
    assert set(files(tmp_path)) != set(old)
    assert copied(reader, message_id(1, 2), FIRST) == []
    # Its copy is mapped, or gone: then the lake answers.
    assert copied(reader, message_id(1, 2), FIRST, before) in (None, [copied_row(before, reader)])


def copied_row(snapshot, reader):
    query = LakeQuery(
        snapshot,
        lakes.NETWORK,
        f"SELECT {', '.join(snapshot.table(lakes.NETWORK, 'messages').contract.copied)} FROM messages "
        "WHERE message_id = $id",
        {"id": message_id(1, 2)},
        {"messages": FIRST},
        float("inf"),
    )
    return reader.rows(query)[0]


@pytest.mark.parametrize("content", [b"", b"ARROW1\0\0", bytes(4096)])
def test_a_damaged_copy_is_made_again(reader, lake_settings, tmp_path, caplog, content) -> None:
    reader.copy_rows()
    for file in files(tmp_path):
        file.write_bytes(content)
    assert copied(reader, message_id(1, 0), FIRST) is None
    assert "is damaged" in caplog.text
    reader.copy_rows()
    assert len(copied(reader, message_id(1, 0), FIRST)) == 1


def test_the_newest_days_are_copied_first_and_the_rest_later(reader, tmp_path) -> None:
    answers = iter([True, False])
    reader.copy_rows(lambda: next(answers))
    assert [file.name[:10] for file in files(tmp_path)] == [str(lakes.DAY2)]
    reader.copy_rows()
    assert len(files(tmp_path)) == 2


def test_one_process_of_all_makes_the_copies(reader, lake_settings, tmp_path) -> None:
    with (tmp_path / "cache" / reader.lake_id / ".copies.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        reader.copy_rows()
    assert not files(tmp_path)
    reader.copy_rows()
    other = LakeReader(lake_settings, domain_of, pool_size=1, cache=tmp_path / "cache")
    try:
        assert len(copied(other, message_id(1, 0), FIRST)) == 1
    finally:
        other.close()


def test_a_folder_that_cannot_be_written_leaves_the_lake_to_answer(lake_settings, tmp_path, caplog) -> None:
    (tmp_path / "file").write_text("")
    reader = LakeReader(lake_settings, domain_of, pool_size=1, cache=tmp_path / "file")
    try:
        reader.copy_rows()
        assert "single rows are read from the lake" in caplog.text
        assert copied(reader, message_id(1, 0), FIRST) is None
    finally:
        reader.close()
