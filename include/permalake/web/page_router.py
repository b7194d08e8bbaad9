"""Routers of pages: a page answers only to parameters that it knows."""

from __future__ import annotations

from difflib import SequenceMatcher

from fastapi import APIRouter, Depends, Request
from fastapi.dependencies.utils import get_flat_dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel

from permalake.sanitize import shown
from permalake.web.problems import bad_request

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


def parameters_of(route: APIRoute) -> set[str]:
    """Return the query parameters that a page knows."""
    names = set(_EVERYWHERE)
    for field in get_flat_dependant(route.dependant).query_params:
        model = field.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            names |= {inner.alias or name for name, inner in model.model_fields.items()}
        else:
            names.add(field.alias)
    return names


# A coroutine needs no thread of its own.
async def _refuse_unknown(request: Request) -> None:
    asked = request.query_params
    if "as_of" in asked:
        raise bad_request("as_of: pages show what is published now; /data/sql shows rows as published then")
    declared = sorted(parameters_of(request.scope["route"]))
    for name in asked:
        if name not in declared:
            nearest = max(
                declared, key=lambda other: SequenceMatcher(None, name[:40].casefold(), other).ratio()
            )
            raise bad_request(
                f"{shown(name, 40)}: this page knows no such parameter; the nearest one is {nearest} "
                f"(it has {', '.join(declared)})"
            )
