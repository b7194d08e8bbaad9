"""Runs the IOTA transforms over an archive without a lake, and compares tables with expected rows."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from pathlib import Path

from permalake.config.networks import CoordinatorKey
from permalake.iota.cone.decoded import ARROW
from permalake.iota.cone.known_outputs import resolved
from permalake.iota.cone.prove import AsRows, decoded
from permalake.iota.cone.rules import ConeRules
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.sources.archive_rest import ArchiveRest
from permalake.iota.steps.table_writer import PENDING, PROBLEMS, TOUCHED_OUTPUTS
from permalake.iota.tables.carried_tables import StateRules
from permalake.pipeline.landing import Written
from support import places
from support.iota_queries import analysed, carried_rows, shaped
from support.iota_verdicts import quarantine, refused_days
from support.made_tables import MadeTables
from support.own_copies import copied

DATA = places.DATA
SYNTHETIC = DATA / "synthetic"
RICHEST = 10
V_BYTE_COST = 100


@dataclass
class Built:
    """The tables of a range of days, and what kept days back."""

    tables: dict = field(default_factory=dict)
    written: Written | None = None
    refused: dict = field(default_factory=dict)
    quarantine: list = field(default_factory=list)

    def rows(self, name):
        """A table's rows as plain values: bytes and times as the expected rows have them."""
        return [plain(row.asDict()) for row in self.tables[name].collect()]


def plain(row):
    def value(v):
        if isinstance(v, bytes | bytearray):
            return bytes(v).hex()
        if isinstance(v, datetime):
            return int(v.timestamp())
        return v.isoformat() if isinstance(v, date) else v

    return {name: value(v) for name, v in row.items()}


def proven(spark, path, start, end, sink, protocol="stardust", hrp="smr", keys=(), threshold=None):
    """Source, milestone days and what ``sink`` makes of start..end (ISO dates), with nothing before it."""
    source = ArchiveRest(spark, Path(path))
    days = source.days(date.fromisoformat(start), date.fromisoformat(end))
    rules = ConeRules(protocol, hrp, tuple(days), source.first_milestone, tuple(keys), threshold)
    return source, days, decoded(partial(source.records, days), rules, sink)


def decoded_rows(spark, path, start, end, **network):
    """The decoded rows of start..end as Arrow, but for those of conflicting messages' reasons."""
    _, _, rows = proven(spark, path, start, end, AsRows(), **network)
    return rows.toArrow().cast(ARROW)


def build(spark, path, start, end, landing, protocol="stardust", **network):
    """Build start..end (ISO dates) from the archive at ``path``, with nothing before it."""
    made = MadeTables(landing, v_byte_cost=V_BYTE_COST)
    source, days, told = proven(spark, path, start, end, made.writer, protocol, **network)
    made.written.collect(told)
    written = made.written
    ends = {day.date: day.last for day in days}
    rows = map(written.dataset, (PENDING, TOUCHED_OUTPUTS))
    for batch in resolved(*rows, protocol, ends=ends, sink=made.writer):
        written.add(batch.to_pylist())
    problems = written.frame(spark, PROBLEMS).cache()
    built = Built(written=written, refused=refused_days(problems, days))
    built.quarantine = quarantine(problems, source.name)
    made = {name: shaped(name, frame) for name, frame in made.frames(spark).items()}

    def history(name):
        return spark.createDataFrame([], IOTA_TABLES[name].spark)

    rules = StateRules(richest=RICHEST, v_byte_cost=V_BYTE_COST, rented=protocol == "stardust")
    made |= analysed(spark, made, written, V_BYTE_COST)
    state = carried_rows(made.__getitem__, history, rules)
    made |= {name: spark.createDataFrame(rows).cache() for name, rows in state.items()}
    built.tables = made
    return built


def tangle(protocol):
    """What the generator of a synthetic tangle says of it."""
    return json.loads((SYNTHETIC / protocol / "tangle.json").read_text())


def coordinator_keys(protocol):
    return tuple(CoordinatorKey(**key) for key in tangle(protocol)["coordinator_keys"])


@copied
def expected(protocol, name):
    """Expected rows of a table; none when there is no file."""
    file = SYNTHETIC / protocol / "expected" / f"{name}.jsonl.gz"
    return [json.loads(line) for line in gzip.open(file, "rt")] if file.exists() else []


def differences(ours, theirs):
    """Rows only we have, rows only they have, over the columns that the expected rows name."""
    columns = sorted(theirs[0]) if theirs else []
    count = [Counter(json.dumps([row[c] for c in columns]) for row in rows) for rows in (ours, theirs)]
    if not theirs:
        return ours, []
    return list((count[0] - count[1]).elements()), list((count[1] - count[0]).elements())


def copy_archive(source, target):
    """An archive directory, unpacked, to be spoilt."""
    target.mkdir(parents=True, exist_ok=True)
    for file in Path(source).glob("*.jsonl*"):
        text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        (target / file.name.removesuffix(".gz")).write_bytes(text)
    return target


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def rewrite(file, rows) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
