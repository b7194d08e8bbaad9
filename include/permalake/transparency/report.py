"""The result of a check, in words for someone who knows neither Merkle trees nor Iceberg."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from permalake.sanitize import shown
from permalake.transparency.documents import Evidence, needed_keys
from permalake.transparency.proofs import ProvenRow
from permalake.transparency.verify import Checked

_LONGEST = 400
"""Characters of a text that a report shows."""

UNSIGNED = ("redemptions", "token_custody", "token_prices", "chain_answers", "quarantine")
"""Tables of others' answers while days were built: they grow later, so that no manifest covers them."""
NOT_COVERED = (
    "prices, and what the nodes of chains answered: the publisher's word, which nobody can check again.",
    f"the tables {', '.join(UNSIGNED[:-1])} and {UNSIGNED[-1]}: not signed, and in no copy.",
    "days that the publisher has not signed, and messages that it may have left out when it built a day.",
)
"""The limits of any check of a copy."""
PROVEN, RESTS_ON, REST = "Proven:", "Whom you trust for this:", "Not covered:"
"""Headings of a report."""


def report(checked: Checked) -> Iterator[str]:
    """Yield what a check has shown, in words."""
    log = checked.log
    days = sum(checked.days.values())
    as_signed = (
        "day is as its publisher signed it" if days == 1 else "days are as their publisher signed them"
    )
    yield f"{log.checkpoint.origin}: {days:,} {as_signed}."
    yield PROVEN
    for network, days in sorted(checked.days.items()):
        yield (
            f"  {network}: {days:,} day{'s' * (days != 1)}, {checked.rows[network]:,} rows: each row is as "
            f"it was signed, none is missing, none was added ({checked.tables[network]:,} tables compared)."
        )
    for network, derivation in sorted(checked.derivations.items()):
        yield from (f"  {network}: {line}" for line in derivation.proven())
    yield (
        f"  the publisher keeps a log of its signed statements, one for each version of a day. It is whole: "
        f"{log.checkpoint.size:,} statement{'s' * (log.checkpoint.size != 1)}."
    )
    if checked.seen:
        yield (
            f"  no statement was changed or taken back since this machine saw the log on {checked.seen.at}, "
            f"when it had {checked.seen.size:,}."
        )
    else:
        yield (
            "  this machine sees the log for the first time. From now on it notices if an old statement is "
            "changed or taken back."
        )
    yield RESTS_ON
    yield f"  whoever holds the key that signed all of it, {checked.key}; {checked.trust}."
    for network, evidence in sorted(checked.evidence.items()):
        derived = checked.derivations.get(network)
        yield from (f"  {network}: {line}" for line in (derived.rests_on() if derived else basis(evidence)))
    yield REST
    if not checked.derivations:
        yield "  whether the publisher signed the truth: `permalake verify --deep` builds the days again."
    yield from (f"  {line}" for line in NOT_COVERED)
    for network, derivation in sorted(checked.derivations.items()):
        yield from (f"  {network}: {line}" for line in derivation.not_covered())
    if checked.unread:
        yield f"  tables that this version does not know: {', '.join(sorted(checked.unread))}."


def report_proof(proven: ProvenRow) -> Iterator[str]:
    """Yield what a proof of a day or of a row has shown, in words."""
    manifest = proven.manifest
    day = f"{manifest['network']} {manifest['date']}"
    yield f"{proven.origin}: the proof holds."
    yield PROVEN
    yield f"  what the publisher says of {day} is one of {proven.size:,} statements in its signed log."
    if proven.table is not None:
        rows = manifest["tables"][proven.table]["rows"]
        yield f"  this row is one of {rows:,} of {proven.table} of that day:"
        yield from (f"    {name}: {_readable(value)}" for name, value in proven.row.items())
    yield RESTS_ON
    yield f"  whoever holds the key {proven.key}: compare it with the publisher's own word."
    yield from (f"  {manifest['network']}: {line}" for line in basis(manifest["verified"]))
    yield REST
    yield "  whether others see the same log: a check of a whole copy compares it with what was seen before."
    yield (
        "  whether the publisher has replaced this statement since, as it does to correct a day: a check of "
        "a copy goes by the last one."
    )
    yield from (f"  {line}" for line in NOT_COVERED)


def _readable(value: Any) -> str:
    if value is None:
        return "none"
    return value.hex() if isinstance(value, bytes) else shown(str(value), _LONGEST)


def basis(evidence: Evidence) -> Iterator[str]:
    """Yield on whose keys a network's days rest, as the last manifest says."""
    if "guardian_sets" in evidence:
        listed = "; ".join(
            f"of set {name} at least {guardian_set['quorum']} of {len(guardian_set['guardians'])} guardians"
            for name, guardian_set in evidence["guardian_sets"].items()
        )
        yield (
            "Wormhole's guardians sign each message. That their signatures are valid is the publisher's "
            f"word; needed were, on the last day, {listed or 'none, as it had no message'}."
        )
        return
    coordinator = evidence.get("coordinator")
    if coordinator:
        thresholds = [key.get("threshold") or coordinator["threshold"] for key in coordinator["keys"]]
        yield (
            "the network's coordinator signs what was agreed on, in milestones. That its signatures are "
            "valid is the publisher's word; "
            f"{needed_keys(thresholds)} of its {len(coordinator['keys'])} keys must sign."
        )
    else:
        yield (
            "the network's coordinator signs what was agreed on, in milestones. The publisher had no list of "
            "its keys, and believed those that the milestones name themselves."
        )
