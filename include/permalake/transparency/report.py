"""What a check has shown, in words for someone who knows neither Merkle trees nor Iceberg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from permalake.transparency.verify import Checked


def report(checked: Checked) -> Iterator[str]:
    """Yield what a check has shown, in words."""
    log = checked.log
    days = sum(checked.days.values())
    as_signed = "day is as it was" if days == 1 else "days are as they were"
    yield f"{log.checkpoint.origin}: {days:,} {as_signed} signed."
    yield "Proven:"
    for network, days in sorted(checked.days.items()):
        yield (
            f"  {network}: {days:,} day{'s' * (days != 1)}, {checked.tables[network]:,} tables of days, "
            f"{checked.rows[network]:,} rows: each row is one that was signed, and none is missing."
        )
    yield f"  All {log.checkpoint.size:,} entries of the log belong to the signed checkpoint."
    if checked.seen:
        yield (
            f"  The log only grew since this machine saw it on {checked.seen.at}, "
            f"with {checked.seen.size:,} entries."
        )
    else:
        yield "  This machine had not seen the log before; from now on it notices if the past is changed."
    yield "Rests on:"
    yield f"  the signature of {checked.key}: {checked.trust}."
    for network, evidence in sorted(checked.evidence.items()):
        yield from (f"  {network}: {line}" for line in _basis(evidence))
    yield "Not covered:"
    yield "  prices and answers of chains: they are the publisher's word, nobody can derive them again."
    yield "  days without a manifest, and whether the publisher has read its sources to the end."
    if checked.unread:
        yield f"  tables that this version does not know: {', '.join(sorted(checked.unread))}."


def _basis(evidence: Mapping[str, Any]) -> Iterator[str]:
    """Yield on whose keys a network's days rest, as the last manifest says."""
    if "guardian_sets" in evidence:
        sets = evidence["guardian_sets"]
        listed = ", ".join(
            f"{name} ({len(one['guardians'])} guardians, {one['quorum']} must sign)"
            for name, one in sets.items()
        )
        yield f"the publisher checked guardian signatures; the last day's sets: {listed}."
        return
    coordinator = evidence.get("coordinator")
    if coordinator:
        yield (
            f"the publisher checked the coordinator's signatures, {coordinator['threshold']} of "
            f"{len(coordinator['keys'])} known keys."
        )
    else:
        yield "the publisher had no keys of the coordinator: milestones were checked against their own keys."
