"""Metadata of NFTs (TIP-27, IRC-27) and of native tokens (TIP-30, IRC-30): JSON that anybody may write.

Ledgers check nothing of it. What is no such JSON has no fields; a field of another type is absent.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

_MAX_DECIMALS = 2**31 - 1
_NOT_JSON = (ValueError, RecursionError)


class NftMetadata(NamedTuple):
    """Fields of IRC-27: ``collectionName``, ``name`` and ``uri``."""

    collection: str | None = None
    name: str | None = None
    uri: str | None = None


class TokenMetadata(NamedTuple):
    """Fields of IRC-30: ``name``, ``symbol`` and ``decimals``."""

    name: str | None = None
    symbol: str | None = None
    decimals: int | None = None


@lru_cache(1024)
def nft_metadata(raw: bytes) -> NftMetadata:
    """Return the fields of an NFT's immutable metadata (TIP-27); none where it is not IRC-27."""
    body = _object(raw, "IRC27")
    return NftMetadata(*(_text(body.get(name)) for name in ("collectionName", "name", "uri")))


@lru_cache(1024)
def token_metadata(raw: bytes) -> TokenMetadata:
    """Return the fields of a token in its foundry's immutable metadata (TIP-30)."""
    body = _object(raw, "IRC30")
    decimals = body.get("decimals")
    is_valid = type(decimals) is int and 0 <= decimals <= _MAX_DECIMALS
    return TokenMetadata(_text(body.get("name")), _text(body.get("symbol")), decimals if is_valid else None)


def _object(raw: bytes, standard: str) -> dict[str, Any]:
    """Return a JSON object of a standard; empty where the bytes are none, or nest too deeply."""
    try:
        body = json.loads(raw.decode())
    except _NOT_JSON:
        return {}
    return body if isinstance(body, dict) and body.get("standard") == standard else {}


def _text(value: Any) -> str | None:
    """Return text that UTF-8 can hold: JSON may escape half of a surrogate pair."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else None
