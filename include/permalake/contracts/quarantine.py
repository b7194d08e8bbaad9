"""Contract of the quarantine, present in every namespace."""

from __future__ import annotations

from permalake.contracts.schema import Column, Table

RAW_LIMIT = 64 * 2**10
"""The quarantine keeps no more bytes of an input than this; its ``detail`` then has length and digest."""


def whole_in_words(size: object, digest: object) -> str:
    """Return the detail of an input of ``size`` bytes of which only the head is kept, with its SHA-256."""
    return f"{size} bytes, SHA-256 {digest}, of which the first {RAW_LIMIT} are kept"


QUARANTINE = Table(
    "quarantine",
    "all",
    "Input that was refused, with the reason. Committed apart from the day's tables, so that a day that "
    "stays unpublished shows why.",
    (
        Column("source", "string", "Source it came from (archive_rest, files, …)."),
        Column("origin", "string", "Where exactly: file, id, milestone or VAA."),
        Column("reason", "string", "Why it was refused, one word."),
        Column("detail", "string", "What was found, one line.", required=False),
        Column(
            "raw",
            "binary",
            "The refused bytes; of more than 65,536 the first, and detail tells length and SHA-256.",
            required=False,
        ),
        Column("seen_at", "timestamptz", "When it was first refused."),
    ),
    key=("date", "source", "origin", "reason", "raw"),
    sort=("reason", "origin"),
    first_value=("seen_at",),
    commit="side",
    date_doc="UTC date of the day that the input belongs to.",
)
