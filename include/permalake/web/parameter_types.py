"""Types of parameters: dates and times as ISO 8601 has them, ids as hex with or without ``0x``."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, StringConstraints, WithJsonSchema

from permalake.config.networks import NetworkName
from permalake.web.problems import bad_request

MAX_TAG_BYTES = 64
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([Tt ].*)?")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_GROUPED = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?\s*")


def _iso(value: object) -> object:
    """Refuse what pydantic would take for seconds since 1970."""
    if isinstance(value, str) and not _ISO.fullmatch(value):
        raise ValueError("not a date or time as ISO 8601 has it, such as 2022-09-28")
    return value


def _utc(value: datetime) -> datetime:
    """Return a time in UTC; one without a zone is."""
    try:
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("not within the years 1 to 9999 in UTC") from None


def _bytes(value: object) -> object:
    if not isinstance(value, str):
        return value
    bare = value[2:] if value[:2].lower() == "0x" else value
    if not _HEX.fullmatch(bare):
        raise ValueError("not hex digits in pairs")
    return bytes.fromhex(bare)


IsoDate = Annotated[date, BeforeValidator(_iso)]
FormDate = Annotated[
    IsoDate | None,
    BeforeValidator(lambda value: value or None),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "maxLength": 0}]}),
]
"""The date of a form, which sends an empty field as empty text."""
IsoTime = Annotated[datetime, BeforeValidator(_iso), AfterValidator(_utc)]
HexBytes = Annotated[bytes, BeforeValidator(_bytes)]
"""Bytes as hex, with or without ``0x``."""
FormNetwork = Annotated[NetworkName | None, BeforeValidator(lambda value: value or None)]
"""The network of a form, which sends empty text for all of them."""
PrintableText = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*$")]
"""Text without control characters: PostgreSQL takes no NUL."""


def decimal_number(text: str, what: str) -> Decimal:
    """Return a number, which may be infinite or none; commas may only set off groups of three digits.

    Raises:
        ProblemError: 400 that names ``what``: where a comma begins a fraction, among others.
    """
    try:
        if "," in text and not _GROUPED.fullmatch(text):
            raise ArithmeticError
        return Decimal(text.replace(",", ""))
    except ArithmeticError:
        raise bad_request(f"{what}: {text} is no number; write it as 1000 or 0.5") from None


def hex_schema(size: int) -> dict[str, Any]:
    """Return what OpenAPI says of an id of ``size`` bytes; :func:`hex_id` checks it, with a clearer error."""
    return {"pattern": f"^(0[xX])?[0-9a-fA-F]{{{2 * size}}}$"}


def hex_text(text: str, what: str, minimum: int, maximum: int) -> str:
    """Return hex digits as the lake has them, lower-case and bare, of ``minimum`` to ``maximum`` bytes.

    Raises:
        ProblemError: 400 that names ``what``.
    """
    bare = text[2:] if text[:2].lower() == "0x" else text
    if not _HEX.fullmatch(bare):
        raise bad_request(f"{what}: not hex digits in pairs")
    if not minimum <= len(bare) // 2 <= maximum:
        size = f"{minimum}" if minimum == maximum else f"{minimum} to {maximum}"
        raise bad_request(f"{what}: {len(bare) // 2} bytes; it has {size}")
    return bare.lower()


def hex_id(text: str, what: str, size: int = 32) -> str:
    """Return an id of ``size`` bytes; see :func:`hex_text`."""
    return hex_text(text, what, size, size)


def output_id(text: str) -> str:
    """Return an output id: 32 bytes of the transaction id and the index as u16 LE."""
    return hex_id(text, "outputId", 34)


def tag_hex(text: str, what: str, *, utf8: bool = False) -> str:
    """Return a tag of 1 to 64 bytes as hex; ``utf8``: ``text`` is the tag itself, not its hex."""
    return hex_text(text.encode().hex() if utf8 else text, what, 1, MAX_TAG_BYTES)
