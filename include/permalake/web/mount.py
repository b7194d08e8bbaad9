"""Mounts: a domain's routes in the REST API.

A domain names a function in its declaration, ``Domain(…, routes="permalake.iota.rest.mounts:mounts")``; it is
imported when the server starts. It returns a :class:`Mount` for each router and network::

    router = APIRouter(tags=["core v2"])

    @router.get("/blocks/{blockId}/metadata", responses={**documented(), **answer(BlockMetadata)})
    def block_metadata(
        lake: PublishedLake,
        blockId: Annotated[str, Path(examples=["0xa62c…"])],
        query: Nothing,
    ) -> Response:
        '''Return the metadata of a block (TIP-25).'''
        …
        return lake.current({"blockId": …})

    def mounts(settings: Settings) -> tuple[Mount, ...]:
        return tuple(Mount(f"/api/permanode/v1/{name}", router, name) for name in settings.networks)

Rules for handlers:

- A plain ``def``: it runs in a thread, and a query past the request's time is cancelled.
- It reads through :class:`~permalake.web.state.RequestLake` only, so that an answer is of one state.
- Its query parameters are one model below :class:`~permalake.web.paging.NoQuery`, which refuses unknown ones.
  Pages stand on a router of :func:`~permalake.web.page_router.page_router`, which does so for all of them.
- It raises :class:`~permalake.web.problems.ProblemError` (``not_found``, ``bad_request``, ``not_served``).
- Its answer has a type that OpenAPI shows, by :func:`~permalake.web.answers.answer`; ``route_groups`` of the
  domain describes its group (tag).
- It returns :func:`~permalake.web.responses.immutable_json` or ``lake.current(…)``, never a bare dictionary.
"""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter


@dataclass(frozen=True)
class Mount:
    """A router at a prefix.

    ``network``: the lake namespace that its handlers read. ``documented``: whether OpenAPI lists its routes;
    a second prefix of the same routes need not be.
    """

    prefix: str
    router: APIRouter
    network: str
    documented: bool = True
