"""Advisory locks of PostgreSQL: whoever takes one waits until no other transaction has it.

SQLite needs none: its writers wait for each other anyway.
"""

from __future__ import annotations

from enum import IntEnum, unique

from sqlalchemy import Connection, func, select


@unique
class AdvisoryLock(IntEnum):
    """What is done by one process at a time, with the number by which the database knows it."""

    MIGRATION = 7_365_211
    IDENTITY = 7_365_212
    PUBLICATION = 7_365_213
    SIGNATURE = 7_365_214

    def take(self, connection: Connection) -> None:
        """Hold the lock until the transaction ends."""
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(self.value)))
