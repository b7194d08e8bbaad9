"""Chronicle archive logs: real messages packed from their dialect, synthetic days with the expected rows."""

import gzip
import json
import shutil
from datetime import date

import pytest

from permalake import paths
from permalake.config.networks import NetworkSettings
from permalake.errors import ConfigError, PermalakeError
from permalake.iota.cone.source_records import Record
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.sources import chronicle
from permalake.iota.sources.chronicle import Chronicle, PublishedLedger
from permalake.iota.sources.iota_source import open_source
from support.iota_days import DATA, differences, expected
from support.source_builds import analysed, build_from, settings

LOGS = DATA / "synthetic" / "chronicle" / "logs"
SPAN = ("2021-05-10", "2021-05-12")
TABLES = sorted(file.name.split(".")[0] for file in (LOGS.parent / "expected").iterdir())


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(paths, "HOME", tmp_path / "home")


def unpublished(spark):
    return PublishedLedger(set, lambda name: spark.createDataFrame([], IOTA_TABLES[name].spark))


def network(path=LOGS):
    return settings("chronicle", source="chronicle", path=path)


@pytest.fixture(scope="module")
def built(spark, tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setattr(paths, "HOME", tmp_path_factory.mktemp("home"))
    source = open_source(spark, "chronicle", network(), unpublished(spark))
    landing = tmp_path_factory.mktemp("decoded") / "days"
    yield analysed(spark, build_from(spark, source, network(), SPAN, landing))
    patch.undo()


@pytest.mark.parametrize("name", TABLES)
def test_rows_of(built, name) -> None:
    assert built.refused == {}
    assert built.quarantine == []
    ours, theirs = built.rows(name), expected("chronicle", name)
    assert theirs
    if name == "messages":
        reasons = [{row["message_id"]: row.pop("conflict_reason") for row in rows} for rows in (ours, theirs)]
        told, right = ({key: reason for key, reason in some.items() if reason} for some in reasons)
        # Logs tell no reasons. One that follows from outputs older than the logs stays untold.
        assert told
        assert told.items() <= right.items()
    assert differences(ours, theirs) == ([], [])


@pytest.mark.parametrize(
    ("number", "sent_whole"), [(10, chronicle.BROADCAST_ROWS), (11, chronicle.BROADCAST_ROWS), (12, 0)]
)
def test_a_day_alone_takes_its_inputs_from_what_is_published(
    spark, built, tmp_path, monkeypatch, number, sent_whole
) -> None:
    monkeypatch.setattr(chronicle, "BROADCAST_ROWS", sent_whole)
    day = date(2021, 5, number)
    before = {date(2021, 5, n) for n in range(10, number)}
    source = Chronicle(spark, LOGS, PublishedLedger(lambda: before, built.tables.__getitem__))
    alone = build_from(
        spark, source, network(), (day.isoformat(),) * 2, tmp_path / "decoded", built.tables.__getitem__
    )
    assert alone.refused == {}
    for name in ("messages", "legacy_outputs", "consumed_outputs"):
        ours = [row for row in built.rows(name) if row["date"] == day.isoformat()]
        assert ours
        assert differences(alone.rows(name), ours) == ([], []), name


def test_a_mirror_keeps_the_reasons_of_its_publisher(spark, tmp_path) -> None:
    """Of a reason that the publisher could not tell nothing else is said, and that is marked."""
    mirror = settings("chronicle", source="permalake", url="https://example.org", publisher_keys=("key",))
    source = open_source(spark, "chronicle", network(), unpublished(spark))
    copied = build_from(spark, source, mirror, SPAN[:1] * 2, tmp_path / "decoded")
    assert copied.refused == {}
    assert {row["conflict_reason"] for row in copied.rows("messages")} == {0}
    assert {row["reason"] for row in copied.quarantine} == {"conflict_disagreement"}


def test_a_day_whose_predecessors_are_not_published_names_the_first_to_build(spark) -> None:
    source = Chronicle(spark, LOGS, PublishedLedger(lambda: {date(2021, 5, 9)}, None))
    with pytest.raises(PermalakeError, match=r"^2021-05-12 spends .*: build 2021-05-10 first$"):
        source.days(date(2021, 5, 12), date(2021, 5, 12))
    assert len(source.days(date(2021, 5, 10), date(2021, 5, 12))) == 3


@pytest.mark.parametrize(
    ("ends", "extent"), [([250_002], "up to milestone 250002 of 250003 only"), ([], "without milestones")]
)
def test_a_day_whose_predecessor_is_published_in_part_asks_for_that_again(spark, ends, extent) -> None:
    """Not an InvalidInputError: once the other day is built, the same input is good."""
    eve = date(2021, 5, 11)
    cache = spark.createDataFrame([(eve, end) for end in ends], "date date, end_ms int")
    source = Chronicle(spark, LOGS, PublishedLedger(lambda: {eve}, {"date_cache": cache}.__getitem__))
    with pytest.raises(PermalakeError) as caught:
        source.days(date(2021, 5, 12), date(2021, 5, 12))
    assert type(caught.value) is PermalakeError
    assert str(caught.value) == (
        f"2021-05-12 spends what earlier days created, and 2021-05-11 is published {extent}: "
        "build 2021-05-11 again first"
    )


def test_real_messages_have_their_ids(spark, tmp_path) -> None:
    rows = [json.loads(line) for line in (DATA / "iota" / "chronicle_archive_messages.jsonl").open()]
    raws = [json.loads(line) for line in (DATA / "iota" / "chrysalis_messages.jsonl").open()]
    metadata = {"ledgerInclusionState": "noTransaction"}
    with (LOGS / "249993to249998.log").open() as text:
        line = json.loads(text.readline())
    line["messages"] |= {row["id"]: [row["message"], metadata] for row in rows}
    (tmp_path / "249993to249994.log").write_text(json.dumps(line) + "\n")
    source = Chronicle(spark, tmp_path, unpublished(spark))
    (day,) = source.days(date(2021, 5, 10), date(2021, 5, 10))
    made = {
        bytes(row["id"]).hex(): bytes(row["raw"]).hex()
        for row in source.records([day]).collect()
        if row["kind"] == Record.BLOCK
    }
    assert len(rows) == 10
    assert {row["id"]: made[row["id"]] for row in raws} == {row["id"]: row["raw"] for row in raws}


def test_spoilt_lines_and_messages_are_kept_and_the_day_is_not(spark, tmp_path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(LOGS, logs)
    file = logs / "249998to250003.log.gz"
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    (one, *_), (other, *_) = lines[1]["messages"], lines[2]["messages"]
    lines[1]["messages"][one][0]["nonce"] += 1
    lines[2]["messages"][other][0]["payload"] = {"type": "Poem", "data": {}}
    spoilt = b'no line\n{"milestone_index": 300000}\n'
    file.write_bytes(gzip.compress(b"".join(json.dumps(x).encode() + b"\n" for x in lines) + spoilt))
    source = Chronicle(spark, logs, unpublished(spark))
    built = build_from(spark, source, network(logs), SPAN, tmp_path / "decoded")
    found = {(row["reason"], bytes(row["raw"] or b"").decode(errors="replace")) for row in built.quarantine}
    assert {("malformed", line) for line in spoilt.decode().splitlines()} <= found
    (raw,) = [raw for reason, raw in found if reason == "malformed" and other in raw]
    assert raw in gzip.decompress(file.read_bytes()).decode()
    assert json.loads(f"{{{raw}}}")[other][0]["payload"] == {"type": "Poem", "data": {}}
    assert "id_mismatch" in {reason for reason, _ in found}
    assert date(2021, 5, 11) in built.refused
    assert f"{one}" in built.refused[date(2021, 5, 11)]


def test_what_cannot_be_read_is_one_line_that_names_the_key(spark, tmp_path) -> None:
    with pytest.raises(PermalakeError, match=r"no \{from\}to\{to\}\.log\[\.gz\] there; set networks"):
        Chronicle(spark, tmp_path, unpublished(spark))
    stardust = NetworkSettings(protocol="stardust", bech32_hrp="smr", source="chronicle", path=tmp_path)
    with pytest.raises(ConfigError, match=r"networks\.x\.source: chronicle is for chrysalis"):
        open_source(spark, "x", stardust, unpublished(spark))
    absent = stardust.model_copy(update={"path": tmp_path / "nowhere"})
    with pytest.raises(ConfigError, match=r"networks\.x\.path: .*nowhere is no directory"):
        open_source(spark, "x", absent, unpublished(spark))
