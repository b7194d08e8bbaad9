"""Decoded fields of a payload, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Union

FieldValue = Union[str, int, None, Sequence["FieldValue"], Mapping[str, "FieldValue"]]  # noqa: UP007 - recursive
"""A value of JSON: 32-byte words and raw bytes as hex, numbers beyond 32 bits as decimal text."""
Fields = dict[str, FieldValue]
