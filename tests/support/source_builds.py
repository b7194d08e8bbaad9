"""Builds days from any IOTA source without a lake, for comparison with expected rows."""

from __future__ import annotations

from datetime import date
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import functions as F

from permalake.config.networks import NetworkSettings
from permalake.iota.cone.ledger_history import EarlierOutputs
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.sources.iota_source import decoded_days, has_no_reasons
from permalake.iota.steps.ingest import resolve_conflicts
from permalake.iota.steps.table_writer import PROBLEMS
from permalake.net import object_storage
from support.iota_days import Built, coordinator_keys, shaped, tangle
from support.iota_queries import analysed as analytics_of
from support.iota_verdicts import quarantine, refused_days
from support.made_tables import MadeTables


def settings(sample, **source):
    """The network of a synthetic sample (a folder of tests/data/synthetic)."""
    told = tangle(sample)
    return NetworkSettings(
        protocol=told["protocol"],
        bech32_hrp=told["bech32_hrp"],
        coordinator_public_keys=coordinator_keys(sample),
        coordinator_threshold=2,
        **source,
    )


def build_from(spark, source, network, span, landing, published=None):
    """Base tables of the days ``span`` (two ISO dates), as the ingest job makes them."""
    days = source.days(*map(date.fromisoformat, span))
    made = MadeTables(landing)
    made.written.collect(decoded_days(source, days, network, sink=made.writer))
    before = None
    if has_no_reasons(network):
        tables = partial(_before, published, days[0].date, landing)
        before = EarlierOutputs.of(tables, network.protocol)
    resolve_conflicts(spark, made.written, network, made.writer, days, earlier=before)
    problems = made.written.frame(spark, PROBLEMS)
    refused = refused_days(problems, days)
    source.distrust(refused, days)
    built = Built(refused=refused, quarantine=quarantine(problems, source.name))
    built.written = made.written
    built.tables = {name: shaped(name, frame) for name, frame in made.frames(spark).items()}
    return built


def _before(published, day, landing, name):
    """A published table's rows before a day, in a file as tasks read it."""
    schema = IOTA_TABLES[name].arrow
    if published is None:
        return object_storage.parquet_files([], schema)
    file = Path(landing) / "before" / f"{name}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(published(name).where(F.col("date") < F.lit(day)).toArrow(), file)
    return object_storage.parquet_files([str(file)], pq.read_schema(file))


def analysed(spark, built):
    """The same with the analytics of the days."""
    built.tables |= analytics_of(spark, built.tables, built.written)
    return built
