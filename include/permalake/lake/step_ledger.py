"""The step ledger: what every try of every step of a run did, a row each, in the catalog database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from permalake.contracts.steps import StepResult, StepState
from permalake.lake.database import Database
from permalake.lake.state import now
from permalake.lake.state import step_runs as runs

SUPERSEDED = "superseded"
"""``claimed_by`` of results that no longer count: earlier work of their run is done anew."""


@dataclass(frozen=True, slots=True)
class StepKey:
    """One try of one step."""

    network: str
    run_id: str
    step: str
    number: int


@dataclass(frozen=True, slots=True)
class StepRow:
    """A row of the ledger.

    ``began`` and ``ended``: RFC 3339 UTC; ``submit``: the step in whose Spark submit it ran, None when it
    ran in its task; ``claimed_by``: the task that took the result.
    """

    key: StepKey
    start: date
    end: date
    dag_run: str
    began: str
    ended: str | None
    submit: str | None
    claimed_by: str | None
    attempt_id: str | None
    result: StepResult


class StepLedger:
    """The rows of all networks. Every method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def start(
        self,
        network: str,
        run_id: str,
        step: str,
        days: tuple[date, date],
        *,
        dag_run: str = "",
        submit: str | None = None,
    ) -> StepKey:
        """Record that a step begins; return its key. An earlier try that never ended counts as failed."""
        here = (runs.c.network == network, runs.c.run_id == run_id, runs.c.step == step)
        with self._database.write() as connection:
            connection.execute(
                update(runs)
                .where(*here, runs.c.state == "running")
                .values(state="failed", reason="the process ended before the step did", ended_at=now())
            )
            last = connection.execute(select(func.max(runs.c.try_number)).where(*here)).scalar() or 0
            connection.execute(
                insert(runs).values(
                    network=network,
                    run_id=run_id,
                    step=step,
                    try_number=last + 1,
                    start=days[0],
                    end=days[1],
                    dag_run=dag_run or run_id,
                    state="running",
                    submit=submit,
                    began_at=now(),
                )
            )
        return StepKey(network, run_id, step, last + 1)

    def finish(
        self, key: StepKey, result: StepResult, *, attempt_id: str | None = None, inputs: str = ""
    ) -> None:
        """Record how a try ended. ``inputs`` identifies the staged state that it worked on."""
        with self._database.write() as connection:
            connection.execute(
                update(runs)
                .where(*_at(key))
                .values(
                    state=result.state,
                    attempt_id=attempt_id,
                    inputs=inputs,
                    ended_at=now(),
                    milliseconds=round(result.seconds * 1000),
                    rows=json.dumps(dict(result.rows)),
                    quarantined=result.quarantined,
                    log=json.dumps(list(result.log)),
                    reason=result.reason,
                    retryable=int(result.retryable),
                    docs=result.docs,
                    served=None if result.served is None else json.dumps(dict(result.served)),
                    days=None if result.days is None else json.dumps([str(day) for day in result.days]),
                )
            )

    def interrupt(self, network: str, dag_run: str) -> None:
        """Record that the steps of a network's run that are not over will not be: somebody ended the run."""
        with self._database.write() as connection:
            connection.execute(
                update(runs)
                .where(runs.c.network == network, runs.c.dag_run == dag_run, runs.c.state == "running")
                .values(state="failed", reason="interrupted", ended_at=now())
            )

    def claim(
        self, network: str, run_id: str, step: str, *, by: str, attempt_id: str | None, inputs: str
    ) -> StepResult | None:
        """Claim the newest result of a step, once; return None if there is none.

        A result counts while it is final (done or invalid), unclaimed, of this attempt, and the staged state
        that it worked on is still the one that ``inputs`` identifies.
        """
        with self._database.write() as connection:
            row = _newest(connection, network, run_id, step)
            if row is None or row.state not in {"done", "invalid"} or row.claimed_by is not None:
                return None
            if row.attempt_id != attempt_id or row.inputs != inputs:
                return None
            key = StepKey(network, run_id, step, row.try_number)
            claimed = connection.execute(
                update(runs)
                .where(*_at(key), runs.c.claimed_by.is_(None))
                .values(claimed_by=by, claimed_at=now())
            )
            return _result(row) if claimed.rowcount == 1 else None

    def supersede(self, network: str, run_id: str, steps: Sequence[str]) -> None:
        """Results of these steps that nobody has claimed do not count any more: what they rest on changes."""
        with self._database.write() as connection:
            connection.execute(
                update(runs)
                .where(
                    runs.c.network == network,
                    runs.c.run_id == run_id,
                    runs.c.step.in_(steps),
                    runs.c.claimed_by.is_(None),
                )
                .values(claimed_by=SUPERSEDED, claimed_at=now())
            )

    def latest(self, network: str, run_id: str, step: str) -> StepRow | None:
        """Return the newest try of a step."""
        with self._database.read() as connection:
            row = _newest(connection, network, run_id, step)
        return None if row is None else _row(row)

    def of_run(self, run: str, network: str | None = None) -> list[StepRow]:
        """Return every try of a run in the order in which they began.

        ``run`` is the run id of the build or of the DAG run.
        """
        query = select(runs).where((runs.c.run_id == run) | (runs.c.dag_run == run))
        query = query.order_by(runs.c.began_at, runs.c.try_number)
        with self._database.read() as connection:
            rows = connection.execute(query.where(runs.c.network == network) if network else query).all()
        return [_row(row) for row in rows]

    def recent(
        self, network: str | None = None, most: int = 50, days: tuple[date, date] | None = None
    ) -> list[StepRow]:
        """Return the newest tries first; ``days``: of runs that one of these days belongs to."""
        query = select(runs).order_by(runs.c.began_at.desc()).limit(most)
        if days is not None:
            query = query.where(runs.c.start <= days[1], runs.c.end >= days[0])
        with self._database.read() as connection:
            rows = connection.execute(query.where(runs.c.network == network) if network else query).all()
        return [_row(row) for row in rows]


def _at(key: StepKey):  # type: ignore[no-untyped-def]
    return (
        runs.c.network == key.network,
        runs.c.run_id == key.run_id,
        runs.c.step == key.step,
        runs.c.try_number == key.number,
    )


def _newest(connection: Connection, network: str, run_id: str, step: str) -> Row[Any] | None:
    return connection.execute(
        select(runs)
        .where(runs.c.network == network, runs.c.run_id == run_id, runs.c.step == step)
        .order_by(runs.c.try_number.desc())
        .limit(1)
    ).first()


def _result(row: Row[Any]) -> StepResult:
    state: StepState = row.state
    return StepResult(
        state=state,
        rows=json.loads(row.rows or "{}"),
        quarantined=row.quarantined or 0,
        seconds=(row.milliseconds or 0) / 1000,
        log=tuple(json.loads(row.log or "[]")),
        reason=row.reason,
        retryable=bool(row.retryable),
        docs=row.docs,
        served=None if row.served is None else json.loads(row.served),
        days=None if row.days is None else tuple(date.fromisoformat(day) for day in json.loads(row.days)),
    )


def _row(row: Row[Any]) -> StepRow:
    return StepRow(
        key=StepKey(row.network, row.run_id, row.step, row.try_number),
        start=row.start,
        end=row.end,
        dag_run=row.dag_run,
        began=row.began_at,
        ended=row.ended_at,
        submit=row.submit,
        claimed_by=row.claimed_by,
        attempt_id=row.attempt_id,
        result=_result(row),
    )
