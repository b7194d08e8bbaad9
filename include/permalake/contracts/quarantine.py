"""Contract of the quarantine, present in every namespace."""

from __future__ import annotations

from permalake.contracts.schema import Column, Table

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
        Column("raw", "binary", "The refused bytes.", required=False),
        Column("seen_at", "timestamptz", "When it was first refused."),
    ),
    key=("date", "source", "origin", "reason", "raw"),
    sort=("reason", "origin"),
    first_value=("seen_at",),
    commit="side",
    date_doc="UTC date of the day that the input belongs to.",
)
