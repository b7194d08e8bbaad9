"""What the handlers of Wormhole share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends
from starlette.requests import Request

from permalake.config import Settings
from permalake.web.problems import bad_request
from permalake.wormhole.reference import Reference, load_reference

_Read = TypeVar("_Read")


def _reference(request: Request) -> Reference:
    settings: Settings = request.app.state.settings
    return load_reference(settings.wormhole.reference if settings.wormhole else None)


BundledReference = Annotated[Reference, Depends(_reference)]
"""A handler's argument: the reference data, read again after a change."""


def read(function: Callable[..., _Read], *text: Any) -> _Read:
    """Return what ``function`` reads from a request's text; its :class:`ValueError` becomes a 400."""
    try:
        return function(*text)
    except ValueError as error:
        raise bad_request(str(error)) from None
