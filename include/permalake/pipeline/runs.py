"""The beginning and the end of a run: it holds its days, ends early, or goes on with an earlier staging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from permalake.contracts.steps import PUBLISH
from permalake.errors import PermalakeError
from permalake.intervals import ranges
from permalake.lake.leases import format_range
from permalake.lake.unchanged import not_built
from permalake.pipeline.fingerprint import fingerprint
from permalake.pipeline.jobs import StepArguments
from permalake.pipeline.request import BuildRequest
from permalake.pipeline.workspace import Workspace

WAIT_SECONDS = 150
"""A run that was killed holds its days for two minutes more; one that lives may take longer than this."""


def arguments_of(request: BuildRequest) -> StepArguments:
    """Return the order that the request's steps are given."""
    return StepArguments(
        request.network,
        request.start,
        request.end,
        request.run_id,
        force=request.force,
        stored=request.stored,
        dag_run=request.dag_run or request.run_id,
    )


def is_unchanged(work: Workspace, request: BuildRequest) -> bool:
    """Return whether all days are published, built from the very inputs and configuration of now.

    False for a run with ``--force``, which builds them anyway.
    """
    if request.force or request.only:
        return False
    digest = fingerprint(work.inputs)
    if digest is None:
        return False
    return work.builds.is_unchanged(request.network, request.start, request.end, digest)


def is_unreported(work: Workspace, request: BuildRequest) -> bool:
    """Return whether an earlier try of this run published its days, and no task has reported it.

    That is a Spark submit that outlived its task: the scheduler was killed, the task's machine lost.
    """
    row = work.steps.latest(request.network, request.run_id, PUBLISH)
    return row is not None and row.result.state == "done" and row.claimed_by is None


def hold(work: Workspace, request: BuildRequest, say: Callable[[str], None]) -> None:
    """Acquire the lease of the days; while another run builds one of them, ``say`` it and wait a while."""
    days = request.network, request.start, request.end, request.run_id
    try:
        work.builds.lease(*days)
    except PermalakeError as busy:
        say(f"waiting up to {WAIT_SECONDS} s: {busy}")
        work.builds.lease(*days, wait=WAIT_SECONDS)


def startable(work: Workspace, request: BuildRequest) -> BuildRequest:
    """Return the request, from the top where the step that it starts at lacks what an earlier one landed.

    That is gone with the staging that it was landed for.
    """
    if not request.only or not request.domain.step_of(request.only).needs_landing:
        return request
    is_landed = work.builds.unfinished(request.network, request.start, request.end) is not None
    return request if is_landed else replace(request, only=None, force=True)


def continued(work: Workspace, request: BuildRequest, say: Callable[[str], None]) -> BuildRequest:
    """Return the request on the staging that it goes on with.

    That is what the last run over these days staged if its audit failed or never ended, else a new attempt
    as of what is published, with its notes and gaps. :class:`PermalakeError` when a day was never built, or
    failed as part of a range: nothing of it is left to go on with.
    """
    hold(work, request, say)
    if unfinished := work.builds.unfinished(request.network, request.start, request.end):
        work.builds.release(request.network, request.run_id)
        request = replace(request, run_id=unfinished)
        hold(work, request, say)
        return request
    if missing := not_built(work.database, request.network, request.start, request.end):
        days = ", ".join(format_range(*span) for span in ranges(missing))
        raise PermalakeError(
            f"{request.network} {days} has not been built; run it without --only. "
            "A day that failed within a range counts as not built"
        )
    with work.builds.begin(request.network, request.start, request.end, request.run_id) as attempt:
        attempt.record.keep()
        return request
