"""Step ``ingest_decode`` of an IOTA network: source → proven, decoded rows → staged tables, quarantine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import partial

from permalake.contracts.steps import StepResult
from permalake.errors import InvalidInputError, PermalakeError
from permalake.iota.cone.known_outputs import resolved_here
from permalake.iota.cone.source_records import MilestoneDay
from permalake.iota.cone.verdict import DISAGREEMENTS, FIRST_CAUSES, refused_days, rejected
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.sources.chronicle import PublishedLedger
from permalake.iota.sources.iota_source import (
    IotaSource,
    decoded_days,
    end_notes,
    open_source,
    resolved_days,
    tells_no_reasons,
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
from permalake.pipeline.quarantining import quarantine
from permalake.spark.frames import in_a_task
from permalake.spark.sizes import DRIVER_PENDING_ROWS, FEW_PENDING_ROWS
from permalake.spark.submit import is_local


def run(context: StepContext) -> StepResult:
    """Prove, decode and stage the days; :class:`InvalidInputError` when no day can be proven."""
    with context.begin(partial(prepare, context)) as (attempt, (source, days)):
        return staged(context, attempt, source, days)


def prepare(context: StepContext) -> tuple[IotaSource, list[MilestoneDay]]:
    """Open the source and find the milestones of the days.

    Days beside these whose published rows end where the source now goes on become stale.
    """
    order, work = context.order, context.work
    network = work.settings.network(order.network)
    source = open_source(context.spark, order.network, network, published(context))
    days = source.days(order.start, order.end)
    context.report(f"ingest {order}: {described(days)}")
    notes = {one.date: one.notes for one in work.reader.status(order.network) if one.published}
    for day, text in continued(notes, lambda milestone: milestone < source.last_milestone).items():
        if not order.start <= day <= order.end:
            work.builds.mark_stale(order.network, [day], text)
    return source, days


def staged(
    context: StepContext, attempt: Attempt, source: IotaSource, days: Sequence[MilestoneDay]
) -> StepResult:
    """Prove, decode and stage the days of an attempt."""
    order, spark = context.order, context.spark
    network = context.work.settings.network(order.network)
    if not network.coordinator_public_keys:
        attempt.record.note("coordinator keys are unchecked")
    for day, text in end_notes(source, days).items():
        attempt.record.note(text, day)
    table = partial(context.work.reader.table, spark, order.network)
    contracts = [IOTA_TABLES[name] for name in BASE_TABLES]
    targets = tuple(attempt.targets(contracts))
    writer = TableWriter(
        targets, attempt.landing, network.chunk_size, network.v_byte_cost, object_storage.file_io()
    )
    written = Written(LANDED)
    if days:
        written.collect(decoded_days(source, days, network, table, sink=writer))
    resolve(context, written, writer, days[0].date if days else order.start)
    written.keep(attempt.landing)
    quarantined = quarantine(attempt, rejected(source.name), written, lambda: spark)
    found = few_rows(
        DayQueries({"first_causes": FIRST_CAUSES, "disagreements": DISAGREEMENTS}, {}, written), lambda: spark
    )
    for row in found["disagreements"] if quarantined else ():
        attempt.record.note(
            f"conflicts unlike the source's: {row['transactions']} (quarantine: conflict_disagreement)",
            row["date"],
        )
    refused = refused_days(found["first_causes"], days)
    source.distrust(refused, days)
    for day, reason in refused.items():
        attempt.record.refuse(day, reason)
        context.report(f"ingest {order}: {day} stays unpublished: {reason}")
    if days and len(refused) == len(days):
        reasons = "; ".join(f"{order.network} {day}: {why}" for day, why in refused.items())
        # A live source, which has no fingerprint, may answer better next time.
        raise (InvalidInputError if order.fingerprint else PermalakeError)(reasons)
    attempt.stage_files(written.files, contracts)
    queries = DayQueries({"milestones": MILESTONE_TABLE}, IOTA_TABLES, written)
    stage_queries(attempt, queries, lambda: spark)
    counted = jobs.counted(attempt, "messages", "milestones")
    context.report(f"ingest {order}: {counted}, {quarantined} quarantined")
    return StepResult()


def resolve(context: StepContext, written: Written, writer: TableWriter, first: date) -> None:
    """Find the reasons of the days' conflicts; their messages join what is ``written``.

    Few are resolved in one task, and very few in this process where it is the executor too.
    """
    pending = written.count(PENDING)
    if not pending:
        return
    network, spark = context.work.settings.network(context.order.network), context.spark
    if pending <= FEW_PENDING_ROWS and not tells_no_reasons(network):
        here = partial(
            resolved_here,
            written.dataset(PENDING),
            written.dataset(TOUCHED_OUTPUTS),
            network.protocol,
            signatures=network.transaction_signatures,
            sink=writer,
        )
        if is_local() and pending <= DRIVER_PENDING_ROWS:
            written.add(here())
        else:
            written.collect(in_a_task(spark, here, writer.schema))
        return
    told = resolved_days(
        written.frame(spark, PENDING),
        written.frame(spark, TOUCHED_OUTPUTS),
        network,
        pending,
        partial(context.work.reader.table, spark, context.order.network),
        first=first,
        sink=writer,
    )
    written.collect(told)


def published(context: StepContext) -> PublishedLedger:
    """Return what a source may ask of earlier days."""
    reader, network = context.work.reader, context.order.network
    return PublishedLedger(
        dates=lambda: {day.date for day in reader.status(network) if day.published},
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
