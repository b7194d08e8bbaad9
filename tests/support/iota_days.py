"""Runs the IOTA transforms over an archive without a lake, and compares tables with expected rows."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from pyspark.sql import DataFrame

from permalake.config import CoordinatorKey
from permalake.iota.cone import verdict
from permalake.iota.cone.conflict_reasons import resolved
from permalake.iota.cone.prove import decoded
from permalake.iota.cone.rules import ConeRules
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.sources.archive_rest import ArchiveRest
from permalake.iota.tables.carried_tables import StateRules, carried_tables, spans
from permalake.iota.tables.day_tables import analytics_tables
from support import places
from support.made_tables import MadeTables

DATA = places.DATA
SYNTHETIC = DATA / "synthetic"
RICHEST = 10


@dataclass
class Built:
    """The tables of a range of days, and what kept days back."""

    tables: dict = field(default_factory=dict)
    decoded: DataFrame | None = None
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


def build(spark, path, start, end, landing, protocol="stardust", hrp="smr", keys=(), threshold=None):
    """Build start..end (ISO dates) from the archive at ``path``, with nothing before it."""
    source = ArchiveRest(spark, Path(path))
    days = source.days(date.fromisoformat(start), date.fromisoformat(end))
    rules = ConeRules(protocol, hrp, tuple(days), source.first_milestone, tuple(keys), threshold)
    made = MadeTables(landing)
    made.written.collect(decoded(source.records(days), rules, made.writer))
    made.written.collect(resolved(made.written.decoded(spark), protocol, few=True, sink=made.writer))
    landed = made.written.decoded(spark).cache()
    built = Built(decoded=landed, refused=verdict.refused_days(landed, days))
    built.quarantine = verdict.quarantine(landed, source.name).collect()
    made = {name: shaped(name, frame) for name, frame in made.frames(spark).items()}

    def history(name):
        return spark.createDataFrame([], IOTA_TABLES[name].spark)

    rules = StateRules(richest=RICHEST, v_byte_cost=100, rented=protocol == "stardust")
    for group in analytics_tables(landed, made.__getitem__, 100):
        made |= {name: shaped(name, frame()) for name, frame in group.items()}
    group = carried_tables(made.__getitem__, history, spans(made["date_cache"]), rules)
    made |= {name: shaped(name, frame()) for name, frame in group.items()}
    built.tables = made
    return built


def shaped(name, frame):
    """The frame in its contract's columns and types, as the lake stages it."""
    contract = IOTA_TABLES[name]
    columns = (frame[c.name].cast(contract.spark[c.name].dataType.simpleString()) for c in contract.columns)
    return frame.select(*columns).cache()


def tangle(protocol):
    """What the generator of a synthetic tangle says of it."""
    return json.loads((SYNTHETIC / protocol / "tangle.json").read_text())


def coordinator_keys(protocol):
    return tuple(CoordinatorKey(**key) for key in tangle(protocol)["coordinator_keys"])


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


def rewrite(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
