"""Every reader of an IOTA source takes any bytes: 10,000 seeded mutations each, none of which crashes."""

import copy
import gzip
import json
import random
from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from permalake.contracts.quarantine import RAW_LIMIT
from permalake.iota.cone.source_records import Record
from permalake.iota.sources import archive_lines, archive_rest, chronicle_records, node_answers, node_api
from permalake.iota.sources.archive_columns import UnusualLinesError, archive_columns
from permalake.iota.sources.milestone_times import days_of, span_of
from permalake.net.http import Body, RequestRejectedError, document
from support import pure_archive
from support.iota_days import SYNTHETIC
from support.length import LONG
from support.mutations import mutated_line

MUTATIONS = 10_000
ODD = (
    *(
        None,
        True,
        -1,
        2**31,
        2**32,
        2**63,
        2**64,
        10**400,
        1.5,
        1e300,
        "",
        "0x",
        "zz",
        "\ud800",
        [],
        {},
        [[]],
    ),
    *([0] * 40, {"type": 7}, "1e1000000", 1_620_669_600_000),
)


def lines_of(file):
    return (
        gzip.decompress(file.read_bytes()).splitlines()
        if file.suffix == ".gz"
        else file.read_bytes().splitlines()
    )


def mutated(line, dice):
    """A line with a few bytes changed, cut or repeated, or with a value of another kind somewhere."""
    if dice.random() < 0.5:
        told = json.loads(line)
        for _ in range(dice.randint(1, 3)):
            _replace(told, dice)
        return json.dumps(told).encode()
    return mutated_line(dice, line)


def _replace(told, dice):
    while isinstance(told, dict | list) and told:
        key = dice.choice(list(told)) if isinstance(told, dict) else dice.randrange(len(told))
        if not isinstance(told[key], dict | list) or not told[key] or dice.random() < 0.25:
            told[key] = copy.deepcopy(dice.choice(ODD))
            return
        told = told[key]


@pytest.mark.parametrize("protocol", ["stardust", "chrysalis"])
@pytest.mark.parametrize("kind", [Record.MILESTONE, Record.BLOCK, Record.CONSUMED, Record.CHANGES])
def test_lines_of_an_archive(protocol, kind) -> None:
    dice = random.Random(f"{protocol} {kind}")
    root = SYNTHETIC / protocol / "archive"
    sound = [line for k, file in pure_archive.files(root) if k is kind for line in lines_of(file)]
    lines = [mutated(dice.choice(sound), dice) for _ in range(MUTATIONS // 4)]
    rows = list(archive_lines.archive_rows(lines, kind, 249_992))
    assert len(rows) == len(lines)
    malformed = [
        (row, line) for row, line in zip(rows, lines, strict=True) if row["kind"] == Record.MALFORMED
    ]
    assert 0 < len(malformed) < len(lines)
    assert all(row["raw"] == line[:RAW_LIMIT] and row["link"] for row, line in malformed)
    taken = [columns for line, row in zip(lines, rows, strict=True) if (columns := alone(line, kind, row))]
    assert 0 < len(taken) < len(lines)
    if kind is Record.MILESTONE:
        times = [told for line in lines if (told := archive_lines.milestone_time(line))]
        index, time = np.array(times, np.int64).T
        assert span_of(index, time).last < 2**32
        assert all(
            day.last - day.first < 10**6 for day in days_of(index, time, date(2000, 1, 1), date(2100, 1, 1))
        )
    found, first = pure_archive.days(root)
    others = [row for row in pure_archive.records(root) if row["kind"] != kind]
    given = [row | {"origin": "", "context": False} for row in rows]
    pure_archive.prove([*others, *given], protocol, found, first)


def alone(line, kind, row) -> bool:
    """Whether a line is taken as a column of one row; it is the row that the line alone gives."""
    try:
        columns = archive_columns(line, kind, "here")
    except UnusualLinesError:
        return False
    assert columns.to_pylist() == [row | {"origin": "here"}]
    return True


@pytest.mark.parametrize("protocol", ["stardust", "chrysalis"])
def test_whole_columns_are_the_lines_one_by_one(protocol) -> None:
    for kind, file in pure_archive.files(SYNTHETIC / protocol / "archive"):
        lines = lines_of(file)
        rows = [row | {"origin": "here"} for row in archive_lines.archive_rows(lines, kind, 1)]
        assert archive_columns(b"\n".join(lines), kind, "here").to_pylist() == rows


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b'{"milestone":1,"raw":"00"}\n\n{"milestone":2,"raw":"01"}\n',
        b'{"milestone":1,"raw":"00"}\r\n{"milestone":2,"raw":"01"}\r\n',
        b'{"milestone":1,"raw":"00"}{"milestone":2,\n"raw":"01"}\n',
        b'{"milestone":1,"raw":"00"}{"milestone":2,"raw":"01","of":\n{}}\n',
        b'{"milestone":1,"raw":"00","of":Inf}\n',
        b'{"milestone":1,"raw":"00","of":NaN}\n',
        b'{"milestone":1,"raw":"00","of":' + b"[" * 200 + b"]" * 200 + b"}\n",
        b'{"milestone":1,"raw":"00"}\n{"milestone":1,"raw":"00","of":' + b"1" * 4301 + b"}",
    ],
)
def test_unusual_lines_are_left_to_the_reader_of_single_lines(text) -> None:
    with pytest.raises(UnusualLinesError):
        archive_columns(text, Record.BLOCK, "here")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n"])
def test_ends_of_lines_do_not_matter(end) -> None:
    told = (b'{"milestone":1,"raw":"00"}', b'{"milestone":2,"raw":"01"}')
    found = archive_rest._records(end.join(told) + end, Record.BLOCK, 1, "here").to_pylist()
    assert [(row["kind"], row["milestone"], row["raw"]) for row in found] == [(1, 1, b"\0"), (1, 2, b"\1")]


def messages_of(line):
    """A line with one message for each message of a line: mutations meet messages, and lines are short."""
    told = json.loads(line)
    for message_id, pair in told["messages"].items():
        yield json.dumps(told | {"messages": {message_id: pair}}).encode()


@pytest.mark.scaled
def test_lines_of_chronicle_logs() -> None:
    dice = random.Random("chronicle")
    logs = sorted((SYNTHETIC / "chronicle" / "logs").glob("*.log*"))
    sound = [one for file in logs for line in lines_of(file) for one in messages_of(line)]
    lines = [mutated(dice.choice(sound), dice) for _ in range(MUTATIONS if LONG else MUTATIONS // 4)]
    rows = records_of(lines)
    assert {row["kind"] for row in rows} == {Record.MILESTONE, Record.BLOCK, Record.MALFORMED}
    everything = b"\n".join(lines)
    malformed = [row for row in rows if row["kind"] == Record.MALFORMED]
    assert all(row["link"] for row in malformed)
    assert all(row["raw"] in everything for row in dice.sample(malformed, 50))
    times = [told for line in lines if (told := chronicle_records.milestone_time(line))]
    index, time = np.array(times, np.int64).T
    days_of(index, time, date(2000, 1, 1), date(2100, 1, 1))
    whole = [line for file in logs for line in lines_of(file)]
    index, time = np.array([chronicle_records.milestone_time(line) for line in whole], np.int64).T
    found = days_of(index, time, date(2000, 1, 1), date(2100, 1, 1))
    milestones = [row for row in records_of(whole) if row["kind"] == Record.MILESTONE]
    _, problems = pure_archive.prove([*milestones, *rows], "chrysalis", found, int(index.min()))
    assert pure_archive.refused(problems, found) == {day.date for day in found}


def records_of(lines):
    """The records of lines of Chronicle's logs, as the cone takes them."""
    return [
        {name: row[name] for name in pure_archive.SCHEMA.names if name in row}
        | {"origin": "fuzz", "context": False}
        for batch in chronicle_records.packed(lines, 1)
        for row in batch.to_pylist()
    ]


class Given:
    """Gives a node's readers a response, as the service does."""

    def __init__(self, body, media):
        self.body, self.media = body, media

    def get(self, _, shape):
        return shape(document(Body(self.body, self.media)))

    def get_body(self, _, shape, __):
        return shape(Body(self.body, self.media))


@pytest.mark.parametrize("protocol", ["stardust", "chrysalis"])
def test_responses_of_a_node(protocol) -> None:
    dice = random.Random(protocol)
    archive = pure_archive.files(SYNTHETIC / protocol / "archive")
    rows = {kind: [json.loads(line) for line in lines_of(file)] for kind, file in archive}
    status = {"confirmedMilestone": {"index": 5}, "pruningIndex": 1}
    info = {"status": status} if protocol == "stardust" else {"data": {"confirmedMilestoneIndex": 5}}

    def wrap(told):
        return told if protocol == "stardust" else {"data": told}

    milestone, block = rows[Record.MILESTONE][0], rows[Record.BLOCK][0]
    consumed, changes = rows[Record.CONSUMED][0], rows[Record.CHANGES][0]
    block_id = bytes(32)
    calls = {
        "info": (info, lambda api: api.info()),
        "milestone": (
            milestone["payload"] if protocol == "stardust" else wrap(milestone),
            lambda api: api.timestamp(milestone["index"]),
        ),
        "block": (block.get("block", {"parents": []}), lambda api: api.block(block_id)),
        "state": (wrap(block["metadata"]), lambda api: api.state(block_id)),
        "changes": (wrap(changes), lambda api: api.changes(changes["index"])),
        "output": (wrap({"output": consumed["output"]}), lambda api: api.output(bytes(34))),
    }
    dialect = node_api.CoreV2 if protocol == "stardust" else node_api.RestV1
    outcomes = {"answered": 0, "failed": 0}
    for _ in range(MUTATIONS):
        told, call = calls[dice.choice(list(calls))]
        body = mutated(json.dumps(told).encode(), dice)
        try:
            call(dialect(Given(body, dice.choice(["application/json", "application/octet-stream"]))))
            outcomes["answered"] += 1
        except (ValueError, ArithmeticError, RequestRejectedError):
            outcomes["failed"] += 1
    assert min(outcomes.values()) > 0


def test_numbers_of_any_size_end_at_once() -> None:
    for text in (b'{"index": 1e1000000}', b'{"index": 1e999999999}', b'{"index": ' + b"9" * 10_000 + b"}"):
        (row,) = archive_lines.archive_rows([text], Record.CHANGES, 3)
        assert (row["kind"], row["milestone"], row["raw"]) == (Record.MALFORMED, 3, text)
    with pytest.raises(ValueError, match="no u32"):
        node_answers.u32(Decimal("1e999999999"))
