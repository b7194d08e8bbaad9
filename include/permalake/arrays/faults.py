"""Fault codes of any row of bytes, whatever its format. Formats number their own faults from 3."""

from __future__ import annotations

from typing import Final

NONE: Final = 0
TRUNCATED: Final = 1
"""The row ends before its last field does."""
TRAILING: Final = 2
"""Bytes are left after the last field."""
