"""Step ``ingest_decode`` of Wormhole: source → verified, decoded VAAs → staged events and quarantine."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame

from permalake.contracts.steps import StepResult
from permalake.lake import Attempt
from permalake.net import object_storage
from permalake.pipeline import jobs
from permalake.pipeline.day_landing import DayLanding
from permalake.pipeline.day_queries import DayQueries, stage_queries
from permalake.pipeline.jobs import StepContext
from permalake.pipeline.landing import LANDED_RECORD, Written
from permalake.pipeline.mirrored_days import landed_days
from permalake.pipeline.quarantining import quarantine
from permalake.pipeline.side_rows import append_new
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.tables import CHAIN_ANSWERS, OBSERVATIONS
from permalake.wormhole.sources.day_input import WormholeInput
from permalake.wormhole.sources.published_vaas import COUNTS
from permalake.wormhole.sources.wormhole_source import Days, section
from permalake.wormhole.steps import observation_writer
from permalake.wormhole.steps.event_writer import CONFLICTS, LANDED, REFUSED_VAAS, EventWriter
from permalake.wormhole.steps.observation_writer import REFUSED_OBSERVATIONS, ObservationWriter
from permalake.wormhole.tables.documents import deciding
from permalake.wormhole.tables.event_tables import EVENT_TABLES, MESSAGES_DAILY
from permalake.wormhole.tables.observations import of_messages
from permalake.wormhole.tables.reported_details import SENDER, SENDERS, sender_answers
from permalake.wormhole.tables.verified_vaas import conflicts_elsewhere

_REFUSED = f"SELECT * FROM {REFUSED_VAAS} UNION ALL SELECT * FROM {REFUSED_OBSERVATIONS}"


def run(context: StepContext) -> StepResult:
    """Verify, decode and stage the days' VAAs."""
    arguments, settings, spark = context.arguments, context.work.settings, context.spark

    def prepare() -> WormholeInput:
        days = Days(arguments.start, arguments.end, arguments.force)
        return WormholeInput(spark, context.work, days, landed_days(context))

    with context.begin(prepare) as (attempt, given):
        context.report(f"ingest {arguments}: verifying")
        reference = section(settings).reference
        contracts = list(EVENT_TABLES.values())
        writer = EventWriter(
            tuple(attempt.targets(contracts)),
            attempt.landing,
            arguments.start,
            arguments.end,
            reference,
            object_storage.file_io(),
        )
        written = Written({**LANDED, **observation_writer.LANDED})
        written.collect(
            deciding(given.documents, arguments.start, arguments.end).mapInArrow(writer, LANDED_RECORD)
        )
        attempt.stage_files(written.files, [*contracts, OBSERVATIONS])
        if (observed := given.observations(attempt.days(spark, "quorum_state"))) is not None:
            _stage_observations(attempt, observed, written, reference)
        quarantined = quarantine(attempt, _REFUSED, written, lambda: spark)
        if given.published is None:
            counts = DayQueries({"messages_daily": MESSAGES_DAILY}, WORMHOLE_TABLES, written.datasets)
            stage_queries(attempt, counts, lambda: spark)
        else:  # It counts what the publisher refused, which is not exported.
            attempt.stage(given.published.taken(COUNTS), WORMHOLE_TABLES[COUNTS])
        if (senders := given.senders) is not None:
            _keep_senders(context, attempt, senders)
        if written.count(CONFLICTS):
            whole = attempt.table(spark, "message_publication")
            for cause, other in conflicts_elsewhere(written.frame(spark, CONFLICTS), whole):
                attempt.record.announce_stale(
                    other, other, f"another VAA of the same message lies on {cause}", cause
                )
        given.report(attempt.record)
        counted = jobs.counted(attempt, "message_publication")
        context.report(f"ingest {arguments}: {counted}, {quarantined} quarantined")
        return StepResult()


def _keep_senders(context: StepContext, attempt: Attempt, senders: DataFrame) -> None:
    """Keep who sent the days' transfers, as the source's API reports it."""
    days = DayLanding.of(context.spark, attempt)
    reported = days.frames({SENDERS: senders}, {SENDERS: SENDER}).datasets
    query = sender_answers(datetime.now(UTC))
    answers = days.queries(
        DayQueries({"answers": query}, WORMHOLE_TABLES, reported), {"answers": CHAIN_ANSWERS.arrow}
    )
    append_new(attempt, answers.dataset("answers"), CHAIN_ANSWERS, context.spark)


def _stage_observations(
    attempt: Attempt, observed: DataFrame, written: Written, reference: Path | None
) -> None:
    """Stage the observations that hold; ``written`` takes what is landed of the others."""
    tables = [attempt.days(observed.sparkSession, name) for name in ("message_publication", "quorum_state")]
    [target] = attempt.targets([OBSERVATIONS])
    writer = ObservationWriter(target, attempt.landing, reference, object_storage.file_io())
    files = len(written.files)
    written.collect(of_messages(observed, *tables).mapInArrow(writer, LANDED_RECORD))
    attempt.stage_files(written.files[files:], [OBSERVATIONS])
