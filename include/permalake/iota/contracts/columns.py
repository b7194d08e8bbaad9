"""Columns that several tables of an IOTA network share."""

from __future__ import annotations

from permalake.contracts.schema import BECH32, HEX32, UINT, Column

MAX_U32 = 2**32 - 1


TOKEN_ID = Column(
    "token_id", "string", "Id of the token: that of its foundry (TIP-18).", pattern=r"^[0-9a-f]{76}$"
)


def milestone(doc: str = "Milestone that references the row's message.") -> Column:
    """Return ``milestone_index``."""
    return Column("milestone_index", "int", doc, minimum=0)


def range_id() -> Column:
    """Return ``ms_range_id``."""
    return Column("ms_range_id", "int", "milestone_index div the network's chunk_size.", minimum=0)


def milestone_time() -> Column:
    """Return ``ms_timestamp``."""
    return Column("ms_timestamp", "timestamptz", "Time of the milestone.")


def message(required: bool = True, doc: str = "Id of the message (Stardust: block).") -> Column:
    """Return ``message_id``."""
    return Column("message_id", "string", doc, required=required, pattern=HEX32)


def inclusion(
    doc: str = "0 conflicting, 1 included, 2 no transaction.", values: tuple[int, ...] = (0, 1, 2)
) -> Column:
    """Return ``inclusion_state``."""
    return Column("inclusion_state", "int", doc, values=values)


def address(name: str, doc: str, required: bool = False) -> Column:
    """Return a column of bech32 addresses."""
    return Column(name, "string", f"{doc} (bech32).", required=required, pattern=BECH32)


def amount(name: str, doc: str) -> Column:
    """Return a column of base tokens."""
    return long(name, f"{doc} (base tokens).")


def count(name: str, doc: str) -> Column:
    """Return a column that counts."""
    return Column(name, "int", doc, minimum=0)


def long(name: str, doc: str) -> Column:
    """Return a column of numbers from zero that 32 bits may not hold."""
    return Column(name, "long", doc, minimum=0)


def u32(name: str, doc: str) -> Column:
    """Return a column of unsigned 32-bit integers."""
    return Column(name, "long", doc, minimum=0, maximum=MAX_U32)


def u256(name: str, doc: str, required: bool = True) -> Column:
    """Return a column of unsigned 256-bit integers as decimal text."""
    return Column(name, "string", f"{doc} (u256 as decimal text).", required=required, pattern=UINT)
