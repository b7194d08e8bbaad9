"""What jobs have done ahead: in the submit of an earlier task of their run (decision 0016)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, delete, insert

from permalake.lake import record
from permalake.lake.state import attempt_jobs


@dataclass(frozen=True)
class Done:
    """A job that has ended.

    :param rows: rows staged so far, by table
    :param seconds: how long it took
    :param said: its lines of progress
    :param refused: why it refused its days; None when it did not
    """

    rows: dict[str, int]
    seconds: float
    said: list[str]
    refused: str | None = None


def put(connection: Connection, attempt_id: str, job: str, done: Done) -> None:
    """Remember it for the job's task; what is known of an earlier try goes."""
    here = (attempt_jobs.c.attempt_id == attempt_id, attempt_jobs.c.job == job)
    connection.execute(delete(attempt_jobs).where(*here))
    row = {"attempt_id": attempt_id, "job": job, "done": json.dumps(asdict(done))}
    connection.execute(insert(attempt_jobs).values(**row))


def take(connection: Connection, network: str, run_id: str, job: str) -> Done | None:
    """What is remembered, once: whoever asks again does the work again."""
    attempt = record.newest(connection, network, run_id)
    if attempt is None or attempt.state != "open":
        return None
    here = (attempt_jobs.c.attempt_id == attempt.attempt_id, attempt_jobs.c.job == job)
    found = connection.execute(delete(attempt_jobs).where(*here).returning(attempt_jobs.c.done)).scalar()
    return Done(**json.loads(found)) if found else None


def forget(connection: Connection, network: str, run_id: str) -> None:
    """Work that is done anew makes worthless what was done on top of it."""
    if attempt := record.newest(connection, network, run_id):
        connection.execute(delete(attempt_jobs).where(attempt_jobs.c.attempt_id == attempt.attempt_id))
