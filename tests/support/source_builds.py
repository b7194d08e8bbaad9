"""Builds days from any IOTA source without a lake, for comparison with expected rows."""

from __future__ import annotations

from datetime import date

from permalake.config import NetworkSettings
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.sources.iota_source import decoded_days, resolved_days
from permalake.iota.steps.table_writer import PENDING, PROBLEMS, TOUCHED_OUTPUTS
from support.iota_days import Built, coordinator_keys, shaped, tangle
from support.iota_queries import by_spark
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
    if pending := made.written.count(PENDING):
        table = published or (lambda name: spark.createDataFrame([], IOTA_TABLES[name].spark))
        landed = (made.written.frame(spark, name) for name in (PENDING, TOUCHED_OUTPUTS))
        told = resolved_days(*landed, network, pending, table, first=days[0].date, sink=made.writer)
        made.written.collect(told)
    problems = made.written.frame(spark, PROBLEMS)
    refused = refused_days(problems, days)
    source.distrust(refused, days)
    built = Built(refused=refused, quarantine=quarantine(problems, source.name))
    built.written = made.written
    built.tables = {name: shaped(name, frame) for name, frame in made.frames(spark).items()}
    return built


def analysed(spark, built):
    """The same with the analytics of the days."""
    built.tables |= by_spark(spark, built.tables, built.written)
    return built
