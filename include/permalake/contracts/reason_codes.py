"""The codes of reasons: why input is refused, a day is not as it should be, or a transfer has no value.

:mod:`permalake.contracts.reasons` has what they mean and what to do.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

RUNBOOK = "docs/runbooks/reasons.md"

ConeReason = Literal[
    "malformed",
    "undecodable",
    "id_mismatch",
    "milestone_conflict",
    "milestone_signature",
    "milestone_time",
    "milestone_missing",
    "milestone_gap",
    "milestone_link",
    "milestone_message_missing",
    "receipt_amount",
    "parent_missing",
    "not_in_cone",
    "cone_size",
    "white_flag_order",
    "inclusion_state",
    "inclusion_root",
    "applied_root",
    "consumed_missing",
    "consumed_unexpected",
    "consumed_conflict",
    "utxo_changes",
    "amount_mismatch",
    "transaction_signature",
    "inputs_commitment",
    "conflict_disagreement",
]
"""Faults of IOTA input."""
MessageReason = Literal[
    "malformed",
    "undecodable",
    "unknown_guardian_set",
    "duplicate_guardian",
    "bad_signature",
    "no_quorum",
    "conflicting_digest",
    "unknown_guardian",
]
"""Faults of a VAA or an observation."""
ValueReason = Literal[
    "no_quote",
    "not_listed",
    "not_answered",
    "not_asked",
    "low_confidence",
    "outlier",
    "denied",
    "no_decimals",
    "too_large",
    "no_token",
    "no_amount",
]
"""Why a transfer has no value in dollars."""
DayReason = Literal[
    "day_incomplete",
    "audit_failed",
    "submit_ended",
    "step_failed",
    "late",
    "stale",
    "milestones_missing",
    "milestones_overlap",
    "days_not_built",
    "sequences_missing",
    "gaps_unknown",
    "store_behind",
]
"""Why a day is not as it should be, where it is not for its input."""
Code = ConeReason | MessageReason | ValueReason | DayReason


_OF_INPUT = {*get_args(ConeReason), *get_args(MessageReason), "day_incomplete"}
_CODE = re.compile(rf"\b({'|'.join(sorted(_OF_INPUT))})(?=[:)])")
_FAILURES: tuple[tuple[DayReason, re.Pattern[str]], ...] = (
    ("audit_failed", re.compile(r"\baudit\b.*\bfailed\b")),
    ("submit_ended", re.compile(r"\bthe Spark submit ended\b")),
    ("days_not_built", re.compile(r"^never built$")),
)
_GAPS: tuple[tuple[DayReason, re.Pattern[str]], ...] = (
    ("gaps_unknown", re.compile(r"^gaps are unknown")),
    ("milestones_overlap", re.compile(r"^milestones overlap")),
    ("milestones_missing", re.compile(r"^milestones .* missing$")),
    ("days_not_built", re.compile(r" never built$")),
)


def address(code: str) -> str:
    """Return the place of a code in the runbook: the file, and the anchor of its section."""
    return f"{RUNBOOK}#{code}"


def failure_codes(line: str) -> tuple[str, ...]:
    """Return the codes of the reasons in a failure's line; the step's failure where it has none."""
    codes = dict.fromkeys(_CODE.findall(line))
    codes |= dict.fromkeys(code for code, pattern in _FAILURES if pattern.search(line))
    return tuple(codes) or ("step_failed",)


def gap_code(line: str) -> DayReason:
    """Return the code of a gap, from its line in ``permalake status``."""
    return next((code for code, pattern in _GAPS if pattern.search(line)), "sequences_missing")
