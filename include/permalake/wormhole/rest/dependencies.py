"""Dependencies that Wormhole's handlers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path
from pydantic import BeforeValidator
from starlette.requests import Request

from permalake.config import Settings
from permalake.web.problems import bad_request
from permalake.web.responses import also_shows
from permalake.wormhole.reference import Reference, load_reference
from permalake.wormhole.rest import identifiers
from permalake.wormhole.rest.identifiers import MessageId

_Read = TypeVar("_Read")


def _reference(request: Request) -> Reference:
    settings: Settings = request.app.state.settings
    reference = load_reference(settings.wormhole.reference if settings.wormhole else None)
    also_shows(request, reference.version)
    return reference


_EMITTER = "0000000000000000000000003ee18b2214aff97000d974cf647e7c347e8fa585"
BundledReference = Annotated[Reference, Depends(_reference)]
"""A handler's argument: the reference data, read again after a change."""


def read(function: Callable[..., _Read], *text: Any) -> _Read:
    """Return what ``function`` reads from a request's text; its :class:`ValueError` becomes a 400."""
    try:
        return function(*text)
    except ValueError as error:
        raise bad_request(str(error)) from None


# What they say to OpenAPI alone: the identifiers are read with clearer errors.
_ADDRESS = {"pattern": "^((0[xX])?([0-9a-fA-F]{40}|[0-9a-fA-F]{64})|[1-9A-HJ-NP-Za-km-z]{32,44})$"}
Chain = Annotated[
    str,
    Path(
        description="Wormhole chain id, or a chain's name.",
        examples=["2"],
        json_schema_extra={"pattern": "^[0-9]{1,4}$"},
    ),
]
Emitter = Annotated[
    str,
    Path(
        description="32 bytes in hex, or native form.", examples=[_EMITTER], json_schema_extra=dict(_ADDRESS)
    ),
]
MessageSequence = Annotated[
    str,
    Path(description="Sequence (u64).", examples=["85075"], json_schema_extra={"pattern": "^[0-9]{1,19}$"}),
]


def _number_of(value: Any) -> Any:
    try:
        return identifiers.chain_id(value) if isinstance(value, str) else value
    except ValueError:
        return value  # the field says what it takes


ChainNumber = Annotated[int, BeforeValidator(_number_of)]
"""A parameter: a Wormhole chain id, or the name of a chain."""


# A coroutine: FastAPI would give another function a thread of its own.
async def _message(chain: Chain, emitter: Emitter, sequence: MessageSequence) -> MessageId:
    return read(identifiers.message_id, chain, emitter, sequence)


NamedMessage = Annotated[MessageId, Depends(_message)]
"""A handler's argument: the message that its path names."""
