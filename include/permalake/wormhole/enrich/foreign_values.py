"""Numbers and texts of services, checked before they are kept: a table may not hold what JSON can say.

All raise ``ValueError`` for another value, so that a shape made of them rejects the answer.
"""

from __future__ import annotations

import re
from typing import Any

_LAST_SECOND = 253_402_300_799
"""The end of the year 9999, the last one of Python's dates."""
_LONG = 2**63 - 1
_APTOS = re.compile(r"0x[0-9a-f]{1,64}")
_ADDRESS = re.compile(r"0x[0-9a-f]{40}")
_TRANSACTION = re.compile(r"0x[0-9a-f]{64}")


def unix_second(value: Any) -> int:
    """Return a moment in unix seconds."""
    second = int(value)
    if not 0 <= second <= _LAST_SECOND:
        raise ValueError("no moment")
    return second


def quantity(value: Any, most: int = _LONG) -> int:
    """Return a number that an EVM node writes in hex."""
    number = int(value, 16)
    if not 0 <= number <= most:
        raise ValueError("no quantity")
    return number


def aptos_address(value: Any) -> str:
    """Return an address of Aptos in lower case."""
    return _matching(_APTOS, value)


def evm_address(value: Any) -> str:
    """Return an address of an EVM chain in lower case."""
    return _matching(_ADDRESS, value)


def evm_transaction(value: Any) -> str:
    """Return the hash of a transaction of an EVM chain in lower case."""
    return _matching(_TRANSACTION, value)


def whole_text(value: Any) -> str:
    """Return a text that UTF-8 can encode; JSON can name half of a surrogate pair."""
    if not isinstance(value, str):
        raise ValueError("no text")
    value.encode()
    return value


def _matching(form: re.Pattern[str], value: Any) -> str:
    text = str(value).lower()
    if not form.fullmatch(text):
        raise ValueError("a text of another form")
    return text
