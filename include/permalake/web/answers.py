"""Types of routes' answers, for OpenAPI; no answer is checked against them at run time.

An answer is a ``TypedDict``: the names of its members are those of the JSON, a member that may be absent is
``NotRequired``, and the docstring becomes the description. Where an answer is rows of a table, its type
follows from the contract (:mod:`~permalake.web.row_types`). Names of classes are unique over all modules:
they name the schemas, and with them the classes of generated clients.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, NotRequired, TypeVar

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from permalake.web.responses import JSON, RAW_TYPES

T = TypeVar("T")
_UNRESOLVED = "#/answers/"
_KINDS: dict[Any, int] = {}
"""Types of answers, numbered as routes name them."""
Responses = dict[int | str, dict[str, Any]]
"""OpenAPI's description of a route's answers, by status."""

Bytes32 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
"""32 bytes as bare hex."""
HexText = Annotated[str, Field(pattern="^([0-9a-f]{2})*$")]
"""Bytes as bare hex."""
Base64 = Annotated[str, Field(pattern="^[A-Za-z0-9+/]*=*$", description="Bytes in base64.")]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[int, Field(ge=0, description="Unix time in seconds.")]
TokenText = Annotated[str, Field(pattern="^-?[0-9]+$", description="Base tokens, as decimal text.")]
DayText = Annotated[str, Field(description="UTC date.", json_schema_extra={"format": "date"})]
UtcTime = Annotated[
    str, Field(description="Time in UTC (RFC 3339).", json_schema_extra={"format": "date-time"})
]
Cursor = Annotated[str, Field(description="Cursor of the next page; absent on the last one.")]
Provisional = Annotated[
    Literal[True],
    Field(description="It rests on the live head; said below /api/permanode and /api/wormhole alone."),
]
PageSize = Annotated[int, Field(ge=1, description="Most items of this page.")]


class Enveloped(TypedDict, Generic[T]):
    """An answer of a Chrysalis node: all of it is below ``data``."""

    data: T
    provisional: NotRequired[Provisional]


class RowPage(TypedDict, Generic[T]):
    """A page of rows of a table or view."""

    items: list[T]
    cursor: NotRequired[Cursor]
    provisional: NotRequired[Provisional]


def answer(kind: Any, *media_types: str) -> Responses:
    """Return OpenAPI's ``responses`` of an answer as JSON, and as the other media types that it comes in.

    FastAPI would make a validator of ``kind`` for each route and mount when the server starts. So the
    responses only refer to it, and :func:`resolve_answers` does the rest when the document is asked for.
    """
    number = _KINDS.setdefault(kind, len(_KINDS))
    as_json = {JSON: {"schema": {"$ref": f"{_UNRESOLVED}{number}"}}}
    return {200: {"content": as_json | {name: _content(name) for name in media_types}}}


def json_or_raw(kind: Any) -> Responses:
    """Return OpenAPI's ``responses`` of an answer as JSON, or as the bytes that it was decoded from."""
    return answer(kind, *RAW_TYPES)


def only(media_type: str) -> Responses:
    """Return OpenAPI's ``responses`` of what is no JSON, for a route with ``response_class=Response``."""
    return {200: {"content": {media_type: _content(media_type)}}}


def _content(media_type: str) -> dict[str, Any]:
    """Return OpenAPI's words of a text, or of bytes."""
    bytes_too = {} if media_type.startswith("text/") else {"format": "binary"}
    return {"schema": {"type": "string", **bytes_too}}


def resolve_answers(document: dict[str, Any]) -> None:
    """Put the schemas of :func:`answer` into an OpenAPI document, each type once."""
    contents = [
        response["content"][JSON]
        for methods in document["paths"].values()
        for operation in methods.values()
        for response in operation["responses"].values()
        if response.get("content", {}).get(JSON, {}).get("schema", {}).get("$ref", "").startswith(_UNRESOLVED)
    ]
    kinds = dict(zip((f"{_UNRESOLVED}{number}" for number in _KINDS.values()), _KINDS, strict=True))
    named = {content["schema"]["$ref"] for content in contents}
    schemas, shared = TypeAdapter.json_schemas(
        [(name, "serialization", TypeAdapter(kinds[name])) for name in sorted(named)],
        ref_template="#/components/schemas/{model}",
    )
    components = document["components"]["schemas"]
    if twice := components.keys() & shared["$defs"].keys():
        raise ValueError(f"two types share a name in OpenAPI: {', '.join(sorted(twice))}")
    # Generators of clients name classes by titles, and pydantic gives those of one generic type the same one.
    components |= {name: {**schema, "title": name} for name, schema in shared["$defs"].items()}
    for content in contents:
        content["schema"] = schemas[content["schema"]["$ref"], "serialization"]
