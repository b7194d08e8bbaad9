"""The last line of lists of reasons: the place of each code in the runbook."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from permalake.contracts.reason_codes import address
from permalake.contracts.reasons import REASONS


def explain(codes: Iterable[str]) -> None:
    """Print a line for each code: what it means, and the section of the runbook that says what to do."""
    for code in codes:
        if reason := REASONS.get(code):
            sys.stdout.write(f"{code}: {reason.meaning.rstrip('.')}; see {address(code)}\n")
