"""Step ``ingest_decode`` of an IOTA network: source → proven, decoded rows → staged tables, quarantine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from pyspark.sql import SparkSession

from permalake.config.networks import NetworkSettings
from permalake.contracts.steps import MIRRORED, StepResult
from permalake.errors import InvalidInputError, PermalakeError
from permalake.iota.cone.known_outputs import resolved
from permalake.iota.cone.ledger_history import EarlierOutputs
from permalake.iota.cone.source_records import MilestoneDay
from permalake.iota.cone.verdict import DISAGREEMENTS, FIRST_CAUSES, refused_days, rejected
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.sources.chronicle import PublishedLedger
from permalake.iota.sources.iota_source import (
    IotaSource,
    day_notes,
    decoded_days,
    has_no_reasons,
    open_source,
)
from permalake.iota.sources.source_ends import continued
from permalake.iota.steps.table_writer import LANDED, PENDING, TOUCHED_OUTPUTS, TableWriter
from permalake.iota.tables.base_tables import BASE_TABLES
from permalake.iota.tables.milestone_table import MILESTONE_TABLE
from permalake.lake import Attempt
from permalake.net import object_storage
from permalake.pipeline import jobs
from permalake.pipeline.day_queries import DayQueries, few_rows, stage_queries
from permalake.pipeline.jobs import StepContext
from permalake.pipeline.landing import Written
from permalake.pipeline.mirrored_days import landed_days
from permalake.pipeline.quarantining import quarantine
from permalake.spark.sizes import PENDING_ROWS
from permalake.spark.tasks import in_tasks


def run(context: StepContext) -> StepResult:
    """Prove, decode and stage the days; :class:`InvalidInputError` when no day can be proven."""
    with context.begin(partial(prepare, context)) as (attempt, (source, days)):
        return staged(context, attempt, source, days)


def prepare(context: StepContext) -> tuple[IotaSource, list[MilestoneDay]]:
    """Open the source and find the milestones of the days.

    Days beside these whose published rows end where the source now goes on become stale.
    """
    arguments, work = context.arguments, context.work
    network = work.settings.network(arguments.network)
    source = open_source(
        context.spark,
        arguments.network,
        network,
        published(context),
        landed_days(context),
        force=arguments.force,
    )
    days = source.days(arguments.start, arguments.end)
    context.report(f"ingest {arguments}: {described(days)}")
    notes = {
        published_day.date: published_day.notes
        for published_day in work.reader.status(arguments.network)
        if published_day.published
    }
    for day, text in continued(notes, lambda milestone: milestone < source.last_milestone).items():
        if not arguments.start <= day <= arguments.end:
            work.builds.mark_stale(arguments.network, [day], text)
    return source, days


def staged(
    context: StepContext, attempt: Attempt, source: IotaSource, days: Sequence[MilestoneDay]
) -> StepResult:
    """Prove, decode and stage the days of an attempt."""
    arguments, spark = context.arguments, context.spark
    network = context.work.settings.network(arguments.network)
    if not network.coordinator_public_keys:
        attempt.record.note("coordinator keys are unchecked")
    for day, text in day_notes(source, days, arguments.start, arguments.end):
        attempt.record.note(text, day)
    table = partial(context.work.reader.table, spark, arguments.network)
    contracts = [IOTA_TABLES[name] for name in BASE_TABLES]
    targets = tuple(attempt.targets(contracts))
    writer = TableWriter(
        targets, attempt.landing, network.chunk_size, network.v_byte_cost, object_storage.file_io()
    )
    written = Written(LANDED)
    if days:
        written.collect(decoded_days(source, days, network, table, sink=writer))
    resolve(context, written, writer, days)
    written.keep(attempt.landing)
    quarantined = quarantine(attempt, rejected(source.name), written, lambda: spark)
    rows = few_rows(
        DayQueries({"first_causes": FIRST_CAUSES, "disagreements": DISAGREEMENTS}, {}, written.datasets),
        lambda: spark,
    )
    for row in rows["disagreements"] if quarantined else ():
        attempt.record.note(
            f"conflicts unlike the source's: {row['transactions']} (quarantine: conflict_disagreement)",
            row["date"],
        )
    refused = refused_days(rows["first_causes"], days)
    source.distrust(refused, days)
    for day, reason in refused.items():
        attempt.record.refuse(day, reason)
        context.report(f"ingest {arguments}: {day} stays unpublished: {reason}")
    if days and len(refused) == len(days):
        reasons = "; ".join(f"{arguments.network} {day}: {why}" for day, why in refused.items())
        # A live source, which has no fingerprint, may answer better next time.
        raise (InvalidInputError if arguments.fingerprint else PermalakeError)(reasons)
    attempt.stage_files(written.files, contracts)
    queries = DayQueries({"milestones": MILESTONE_TABLE}, IOTA_TABLES, written.datasets)
    stage_queries(attempt, queries, lambda: spark)
    counted = jobs.counted(attempt, "messages", "milestones")
    context.report(f"ingest {arguments}: {counted}, {quarantined} quarantined")
    return StepResult()


def resolve(
    context: StepContext, written: Written, writer: TableWriter, days: Sequence[MilestoneDay]
) -> None:
    """Find the reasons of the days' conflicts; their messages join what is ``written``.

    Where the source gives none, the published days before the first one help, so that a day alone has the
    reasons that it has in a range.
    """
    first = days[0].date if days else context.arguments.start
    network, reader = context.work.settings.network(context.arguments.network), context.work.reader
    before = partial(reader.dataset, context.arguments.network, last=first - timedelta(days=1))
    earlier = EarlierOutputs.of(before, network.protocol) if has_no_reasons(network) else None
    resolve_conflicts(context.spark, written, network, writer, days, earlier=earlier)


def resolve_conflicts(
    spark: SparkSession,
    written: Written,
    network: NetworkSettings,
    writer: TableWriter,
    days: Sequence[MilestoneDay],
    *,
    earlier: EarlierOutputs | None = None,
) -> None:
    """Find the reasons of the conflicts in what is ``written``, from its outputs and ``earlier`` ones."""
    work = partial(
        resolved,
        touched=written.dataset(TOUCHED_OUTPUTS),
        protocol=network.protocol,
        ends={day.date: day.last for day in days},
        signatures=network.transaction_signatures,
        is_copy=network.source == MIRRORED,
        earlier=earlier,
        sink=writer,
    )
    parts = written.parts(PENDING, PENDING_ROWS)
    records = in_tasks(
        spark, lambda part, _: [row for batch in work(part) for row in batch.to_pylist()], parts
    )
    for task in records:
        written.add(task)


def published(context: StepContext) -> PublishedLedger:
    """Return what a source may ask of earlier days."""
    reader, network = context.work.reader, context.arguments.network
    return PublishedLedger(
        # One that was published without rows may have milestones by now.
        dates=lambda: {day.date for day in reader.status(network) if day.published and day.rows},
        table=partial(reader.table, context.spark, network),
    )


def described(days: Sequence[MilestoneDay]) -> str:
    """Return the milestones of the days in words."""
    if not days:
        return "no milestones; earlier rows are replaced by none"
    read = [day for day in days if day.has_milestones]
    if not read:
        return "no usable milestones"
    return f"milestones {read[0].first} to {read[-1].last} of {len(read)} days"
