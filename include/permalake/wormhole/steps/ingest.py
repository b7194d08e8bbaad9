"""Step ``ingest_decode`` of Wormhole: source → verified, decoded VAAs → staged events and quarantine."""

from __future__ import annotations

from permalake.contracts.steps import StepResult
from permalake.pipeline import jobs
from permalake.pipeline.jobs import StepContext
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.tables import CHAIN_ANSWERS
from permalake.wormhole.sources.day_input import WormholeInput
from permalake.wormhole.sources.wormhole_source import Days, section
from permalake.wormhole.tables.documents import candidates
from permalake.wormhole.tables.event_tables import events
from permalake.wormhole.tables.observations import observations
from permalake.wormhole.tables.reported_details import reported_senders
from permalake.wormhole.tables.verified_vaas import conflicts_elsewhere, judged, of_bridges, quarantine


def run(context: StepContext) -> StepResult:
    """Verify, decode and stage the days' VAAs."""
    order, settings, spark = context.order, context.work.settings, context.spark

    def prepare() -> WormholeInput:
        return WormholeInput(spark, context.work, Days(order.start, order.end, order.force))

    with context.begin(prepare) as (attempt, given):
        context.report(f"ingest {order}: verifying")
        reference = section(settings).reference
        # Kept by checkpoint: of cached frames that stand in each other Spark writes the whole plan each time.
        vaas = judged(candidates(given.documents, order.start, order.end), reference).localCheckpoint()
        quarantined = attempt.quarantine(quarantine(vaas))
        frames = events(vaas)
        if (observed := given.observations) is not None:
            frames["observations"] = observations(observed, frames["message_publication"], reference)
        jobs.stage(attempt, frames, WORMHOLE_TABLES)
        if (senders := given.senders) is not None:
            attempt.append_new(reported_senders(of_bridges(vaas).join(senders, "row_key")), CHAIN_ANSWERS)
        whole = attempt.table(spark, "message_publication")
        for cause, other in conflicts_elsewhere(vaas, whole):
            attempt.record.announce_stale(
                other, other, f"another VAA of the same message lies on {cause}", cause
            )
        given.report(attempt.record)
        counted = jobs.counted(attempt, "message_publication")
        context.report(f"ingest {order}: {counted}, {quarantined} quarantined")
        return StepResult()
