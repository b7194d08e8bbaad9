"""Rows added to side tables: DuckDB tells the new ones in a Spark task, which writes their files."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from permalake.audit.suite import value_rules
from permalake.contracts import Table
from permalake.contracts.sql_text import alike
from permalake.engine.local_files import sendable
from permalake.engine.rows import Relation
from permalake.lake import Attempt, CarryAttempt
from permalake.lake.day_rows import DayRows
from permalake.lake.task_files import TaskFiles, WrittenFile
from permalake.net import object_storage
from permalake.pipeline.day_queries import QueriesOverFiles, cast, ordered, write
from permalake.pipeline.relations import dates_of
from permalake.spark.tasks import TaskShare, in_task

if TYPE_CHECKING:
    from datetime import date

    from pyspark.sql import SparkSession

_GIVEN, _SOUND, _STORED, _REPLACING = "given_rows", "sound_rows", "stored_rows", "replacing_rows"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Replacement:
    """Which rows replace the stored one of their key.

    Attributes:
        condition: What must hold of the rows ``new`` and ``old``, as SQL.
        values: Columns that are made of both, as SQL by name; the others are those of ``new``.
    """

    condition: str = "true"
    values: Mapping[str, str] = field(default_factory=dict)


def append_new(attempt: Attempt | CarryAttempt, rows: Relation, contract: Table, spark: SparkSession) -> int:
    """Add the rows whose key is new to a side table, seen by readers at once; return how many were new.

    Rows may be of any date. Those that break the table's contract are left out: once stored, they would fail
    the audit of their day for ever.
    """
    added, _ = add_or_replace(attempt, rows, contract, spark, Replacement("false"))
    return added


def add_or_replace(
    attempt: Attempt | CarryAttempt,
    rows: Relation,
    contract: Table,
    spark: SparkSession,
    replacement: Replacement,
) -> tuple[int, set[date]]:
    """Do as :func:`append_new`, and let rows replace the stored ones of their key.

    Returns:
        How many were new, and the days of which rows were replaced.
    """
    dates = dates_of(rows)
    if not dates:
        return 0, set()
    name, columns, given = contract.name, ", ".join(contract.names), sendable(rows)
    same_key = alike("new", "old", *contract.key)
    every = cast(f"SELECT * FROM {_GIVEN}", contract)
    sound = (
        f"SELECT DISTINCT ON ({', '.join(contract.key)}) * FROM ({every}) AS every WHERE {_keeps(contract)}"
    )
    new = f"SELECT {columns} FROM {_SOUND} AS new ANTI JOIN {_STORED} AS old ON {same_key}"
    values = ", ".join(f"{replacement.values.get(c, f'new.{c}')} AS {c}" for c in contract.names)
    replacing = (
        f"SELECT {values} FROM {_SOUND} AS new JOIN {_STORED} AS old ON {same_key} "
        f"AND new.date = old.date AND ({replacement.condition})"
    )
    written = (
        f"{new} UNION ALL SELECT {columns} FROM {_REPLACING} "
        f"UNION ALL SELECT {columns} FROM {_STORED} AS old "
        f"SEMI JOIN {_REPLACING} AS day ON old.date = day.date ANTI JOIN {_REPLACING} AS new ON {same_key}"
    )
    [target] = attempt.targets([contract])
    file_io = object_storage.file_io()
    added = broken = 0
    replaced: set[date] = set()

    def addition(published: DayRows) -> tuple[list[WrittenFile], set[date]]:
        nonlocal added, broken, replaced
        sent = QueriesOverFiles({}, {_GIVEN: given, _STORED: sendable(published.scan())})

        def work(share: TaskShare) -> tuple[int, int, list[WrittenFile], set[date]]:
            with sent.engine(share) as engine:
                engine.keep(_SOUND, sound)
                engine.keep(_REPLACING, cast(replacing, contract))
                days = {row["date"] for row in engine.rows(f"SELECT DISTINCT date FROM {_REPLACING}")}
                [counted] = engine.rows(
                    f"SELECT (SELECT count(*) FROM ({new}) AS news) AS added, "
                    f"(SELECT count(*) FROM {_GIVEN} WHERE NOT ({_keeps(contract)})) AS broken"
                )
                if not (counted["added"] or days):
                    return 0, counted["broken"], [], days
                engine.keep(name, cast(written, contract))
                files = write(engine, ordered(name, contract), TaskFiles([target], file_io), name)
                return counted["added"], counted["broken"], files, days

        added, broken, files, replaced = in_task(spark, work)
        return files, replaced

    attempt.add(name, (min(dates), max(dates)), addition)
    if broken:
        log.warning("%s: %d rows left out that break the table's contract", name, broken)
    return added, replaced


def _keeps(contract: Table) -> str:
    """Return the condition that a row keeps to the rules of each column."""
    kept = []
    for column in contract.columns:
        rules = [f"{column.name} IS NOT NULL", *(rule.predicate for rule in value_rules(column))]
        lacks = "false" if column.required else f"{column.name} IS NULL"
        kept.append(f"({lacks} OR coalesce({' AND '.join(rules)}, false))")
    return " AND ".join(kept)
