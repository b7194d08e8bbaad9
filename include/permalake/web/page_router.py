"""Routers of pages: a page answers only to parameters that it knows."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute

from permalake.web.problems import bad_request
from permalake.web.unknown_parameters import parameters_of, unknown_parameter

_EVERYWHERE = ("format", "list")
"""Parameters of every page: see :func:`~permalake.web.html.page`."""


def page_router(*, prefix: str = "", route_class: type[APIRoute] = APIRoute) -> APIRouter:
    """Return a router for pages.

    A request with a parameter that its page does not declare is an error, which names the nearest one: a
    misspelt filter would show rows that nobody asked for.
    """
    return APIRouter(
        prefix=prefix,
        tags=["pages"],
        include_in_schema=False,
        route_class=route_class,
        dependencies=[Depends(_refuse_unknown)],
    )


def page_parameters(route: APIRoute) -> set[str]:
    """Return the query parameters that a page knows."""
    return {*parameters_of(route), *_EVERYWHERE}


# A coroutine needs no thread of its own.
async def _refuse_unknown(request: Request) -> None:
    asked = request.query_params
    if "as_of" in asked:
        raise bad_request("as_of: pages show what is published now; /data/sql shows rows as published then")
    declared = page_parameters(request.scope["route"])
    for name in asked:
        if name not in declared:
            raise bad_request(unknown_parameter(name, declared))
