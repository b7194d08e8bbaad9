"""Columns and forms of tables that the contracts of Wormhole share."""

from __future__ import annotations

from permalake.contracts.schema import DATE, HEX32, ROW_KEY, Column, Commit, Table

_DATE_DOC = "UTC date of the VAA body's timestamp (of the source document where the body has none)."
_USD = "decimal(38,8)"
# DuckDB has no decimal wider than 38 digits: dollars and their fractions are summed apart.
SUMMED = "sum(trunc(notional_usd)) AS dollars, sum(notional_usd - trunc(notional_usd)) AS fractions"
"""SQL of a view that sums ``notional_usd``; :data:`TOTAL` around it puts the two sums together."""
TOTAL = "TRY(CAST(dollars AS DECIMAL(38,8)) + fractions) AS notional_usd"
NOTIONAL_SUM = Column(
    "notional_usd",
    _USD,
    "Sum of notional values (USD); null when nothing has one, and beyond this type.",
    required=False,
)


def row_key() -> Column:
    """Return the column of a VAA's key."""
    return Column("row_key", "string", "EmitterChain:EmitterAddress:Sequence (v2 key).", pattern=ROW_KEY)


def chain(name: str, doc: str, required: bool = True) -> Column:
    """Return a column of Wormhole chain ids."""
    return Column(name, "int", f"{doc} (Wormhole chain id).", required=required, minimum=0, maximum=65535)


def word(name: str, doc: str, required: bool = True) -> Column:
    """Return a column of 32 bytes in hex."""
    return Column(name, "string", f"{doc} (32 bytes, hex).", required=required, pattern=HEX32)


def text(name: str, doc: str) -> Column:
    """Return a column of optional text."""
    return Column(name, "string", doc, required=False)


def usd(name: str, doc: str, minimum: int | None = None) -> Column:
    """Return a column of values in US dollars."""
    whole = f"{doc} (USD, half-even); null when nothing has a value."
    return Column(name, _USD, whole, required=False, minimum=minimum)


def per_vaa(
    name: str,
    doc: str,
    *facts: Column,
    key: tuple[str, ...] = ("row_key",),
    lookups: tuple[str, ...] = (),
    copied: tuple[str, ...] = (),
) -> Table:
    """Return a table of facts about single VAAs."""
    body = (row_key(), *facts)
    return Table(
        name,
        "wormhole",
        doc,
        body,
        key=key,
        sort=("row_key",),
        lookups=lookups,
        copied=copied,
        date_doc=_DATE_DOC,
    )


def daily(name: str, doc: str, *figures: Column, key: tuple[str, ...], commit: Commit = "day") -> Table:
    """Return a table of figures per day."""
    return Table(name, "wormhole", doc, (DATE, *figures), key=("date", *key), sort=key, commit=commit)
