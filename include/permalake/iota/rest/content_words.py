"""Content of messages and outputs as people read it: kinds in words, tags, data and metadata as text.

Metadata: IRC-27 of NFTs and IRC-30 of native tokens (https://github.com/iotaledger/tips, TIP-27 and TIP-30).
Nothing that it points to is fetched.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from pydantic_core import from_json

from permalake.iota.codec.features import METADATA
from permalake.iota.codec.outputs import Protocol

Json = dict[str, Any]
KINDS = {
    "basic": "basic output",
    "alias": "alias",
    "nft": "NFT",
    "foundry": "foundry of a native token",
    "legacy": "signature-locked output",
    "treasury": "treasury",
}
"""Kinds of outputs in words, by ``kind``."""
_NO_PAYLOAD = "no payload"
PAYLOADS: dict[Protocol, dict[int | None, str]] = {
    "stardust": {
        None: _NO_PAYLOAD,
        5: "tagged data",
        6: "transaction",
        7: "milestone",
    },
    "chrysalis": {None: _NO_PAYLOAD, 0: "transaction", 1: "milestone", 2: "indexation"},
}
"""Types of payloads in words; None: a message that carries none."""
_LABELS = {
    "name": "Name",
    "symbol": "Symbol",
    "decimals": "Decimals",
    "description": "Description",
    "collectionName": "Collection",
    "issuerName": "Issuer",
    "type": "Media type",
    "uri": "Content",
    "url": "Link",
    "logoUrl": "Logo",
}
"""Members of both standards that a page shows, and their labels there."""
_MOST_TRAITS = 100
_SPACES = "\n\r\t"


def payload_type(message: bytes, protocol: Protocol) -> int | None:
    """Return the type of a message's payload; None where it carries none (TIP-6, TIP-24)."""
    count = 1 if protocol == "stardust" else 8
    at = count + 1 + 32 * message[count]
    length = int.from_bytes(message[at : at + 4], "little")
    return int.from_bytes(message[at + 4 : at + 8], "little") if length else None


def payload_type_sql(message: str, protocol: Protocol) -> str:
    """Return :func:`payload_type` as an expression on a column with the bytes of messages."""
    count = 2 if protocol == "stardust" else 9  # positions count from 1
    at = f"{count} + 32 * CAST('0x' || hex({message}[{count}:{count}]) AS INTEGER)"
    kind = f"CAST('0x' || hex({message}[{at} + 5:{at} + 5]) AS INTEGER)"
    return f"CASE WHEN hex({message}[{at} + 1:{at} + 4]) <> '00000000' THEN {kind} END"


def payload_in_words(code: int | None, protocol: Protocol) -> str:
    """Return the kind of a payload, with its code where it has one."""
    words = PAYLOADS[protocol].get(code, "payload")
    return words if code is None else f"{words} ({code})"


def readable(raw: bytes) -> Json:
    """Return bytes as ``{bytes, text, json}``: ``text`` is None where they are no UTF-8 that can be shown."""
    try:
        text: str | None = raw.decode()
    except UnicodeDecodeError:
        text = None
    if text and any(unicodedata.category(letter) == "Cc" and letter not in _SPACES for letter in text):
        text = None
    document: Any = None
    if text and text.lstrip()[:1] in ("{", "["):
        document = _document(text)
    return {"bytes": len(raw), "text": text, "json": document}


def _document(text: str) -> Any:
    """Return the value of JSON that an answer may hold; None of more than 200 levels, or of other text.

    Half of a surrogate pair and a number beyond every float are nothing that JSON in UTF-8 can say again.
    """
    try:
        from_json(text)
        document = json.loads(text, parse_constant=str)
        json.dumps(document, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return document


def tagged_data(message: Json) -> Json | None:
    """Return tag and data of a message or of its transaction; None where it has none."""
    payload = message.get("payload") or {}
    inner = (payload.get("essence") or {}).get("payload") or {}
    for holder in (payload, inner):
        # The JSON of nodes leaves an empty tag out.
        tag = holder.get("tag", holder.get("index", "" if "data" in holder else None))
        if isinstance(tag, str) and isinstance(holder.get("data", ""), str):
            data = holder.get("data", "")
            bare = tag.removeprefix("0x")
            return {
                "tag": bare,
                "tag_text": readable(bytes.fromhex(bare))["text"],
                **readable(bytes.fromhex(data.removeprefix("0x"))),
            }
    return None


def metadata(output: Json) -> list[Json]:
    """Return the metadata of an output, immutable first.

    Each as ``{of, standard, facts, traits, bytes, text, json}``; ``traits`` are the attributes of IRC-27.
    """
    return [
        {"of": place, **_described(readable(bytes.fromhex(feature["data"].removeprefix("0x"))))}
        for place, name in (("immutable", "immutableFeatures"), ("of this state", "features"))
        for feature in output.get(name) or ()
        if feature["type"] == METADATA
    ]


def _described(document: Json) -> Json:
    content = document["json"] if isinstance(document["json"], dict) else {}
    standard = str(content.get("standard", "")).upper().replace("-", "")
    is_known = standard in ("IRC27", "IRC30")
    facts = [
        [label, str(content[name])]
        for name, label in _LABELS.items()
        if is_known and isinstance(content.get(name), str | int | float)
    ]
    return {
        "standard": f"{standard[:3]}-{standard[3:]}" if is_known else None,
        "facts": facts,
        "traits": _traits(content.get("attributes")) if is_known else [],
        **document,
    }


def _traits(attributes: Any) -> list[list[str]]:
    """Return name and value of each attribute (TIP-27, ``trait_type`` and ``value``); others are left out."""
    return [
        [trait["trait_type"], str(trait["value"])]
        for trait in (attributes if isinstance(attributes, list) else ())
        if isinstance(trait, dict)
        and isinstance(trait.get("trait_type"), str)
        and isinstance(trait.get("value"), str | int | float)
    ][:_MOST_TRAITS]
