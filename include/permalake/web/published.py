"""The published state that a request is answered from: one, whatever is published meanwhile."""

from __future__ import annotations

from starlette.requests import Request

from permalake.lake.serving import LakeSnapshot


def published_state(request: Request) -> LakeSnapshot:
    """Return the published state of a request: the newest one when it was first asked for.

    Where the request is answered from a live head too, the state has the head's rows beside the published
    ones.
    """
    state = request.state
    whole: LakeSnapshot | None = getattr(state, "whole", None)
    if whole is not None:
        return whole
    if not hasattr(state, "published"):
        state.published = request.app.state.reader.snapshot()
    published: LakeSnapshot = state.published
    return published
