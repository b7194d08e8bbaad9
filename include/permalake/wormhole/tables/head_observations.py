"""Observations as they arrive, before or after their VAA → what a live head gains and loses of them.

All that is known of a message is judged together, as its day does it, so that what comes twice, late or in
another order leads to the same rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from permalake.contracts.reason_codes import MessageReason
from permalake.wormhole.codec.guardians import GuardianSets
from permalake.wormhole.contracts.tables import OBSERVATIONS
from permalake.wormhole.contracts.waiting import WAITING_OBSERVATIONS
from permalake.wormhole.tables.observations import judged_observations
from permalake.wormhole.tables.verified_vaas import REFUSED

OBSERVED = WAITING_OBSERVATIONS.arrow
"""Columns of an observation that is not judged yet; its date is the day on which it was indexed."""
_MOST_WAITING = 50_000
_OF_ANOTHER_COPY: tuple[MessageReason, ...] = ("unknown_guardian", "bad_signature")
"""Why an observation is refused that another copy of the VAA may confirm."""


@dataclass(frozen=True)
class ObservationChanges:
    """The rows that a head gains, and the messages whose rows in ``observations`` it loses before that.

    ``waiting``: the observations that wait from now on, for a VAA or for another copy of it: the guardian may
    have signed another one than the head has.
    """

    added: pa.Table
    gone: frozenset[str]
    refused: pa.Table
    waiting: pa.Table


def dated(received: pa.Table, first: date, last: date) -> pa.Table:
    """Return observations with the day on which they were indexed, ``last`` at the latest.

    ``first`` is the day of those that do not have it.
    """
    day = pc.coalesce(received["observed_at"].cast(pa.date32()), pa.scalar(first))
    day = pc.min_element_wise(day, pa.scalar(last))
    return received.append_column("date", day).select(OBSERVED.names).cast(OBSERVED)


def observation_changes(
    received: pa.Table, held: pa.Table, messages: pa.Table, sets: GuardianSets
) -> ObservationChanges:
    """Judge observations beside those that the head has of their messages.

    Args:
        received: Those that came now or wait (:data:`OBSERVED`).
        held: The head's rows of ``observations`` of their messages, and of those that it loses.
        messages: The messages that the head then has (of ``signed_messages``), as far as they are asked for.
        sets: The guardian sets.
    """
    pool = pa.concat_tables([received, _as_received(held)])
    is_known = pc.is_in(pool["row_key"], value_set=messages["row_key"].combine_chunks())
    of_messages = pool.filter(is_known).drop_columns("date").join(messages, "row_key", join_type="inner")
    rows, refused = OBSERVATIONS.arrow.empty_table(), REFUSED.empty_table()
    if len(of_messages):
        rows, refused = judged_observations(of_messages.rename_columns({"row_key": "message"}), sets)
        rows = rows.cast(OBSERVATIONS.arrow)
    before, after = set(_listed(held)), _listed(rows)
    gone = {str(row[0]) for row in before.difference(after)}
    new = [row not in before or row[0] in gone for row in after]
    added = rows.filter(pa.array(new, pa.bool_()))
    unconfirmed = refused.filter(pc.is_in(refused["reason"], pa.array(_OF_ANOTHER_COPY)))["raw"]
    waits = pc.or_(pc.invert(is_known), pc.is_in(pool["raw"], value_set=unconfirmed.combine_chunks()))
    return ObservationChanges(added, frozenset(gone), refused, _waiting(pool.filter(waits)))


def _waiting(rows: pa.Table) -> pa.Table:
    """Return rows that wait, each once, of very many the latest."""
    places: dict[tuple[str, bytes], int] = {}
    for place, key in enumerate(zip(rows["row_key"].to_pylist(), rows["raw"].to_pylist(), strict=True)):
        places.setdefault(key, place)
    rows = rows.take(pa.array(places.values(), pa.int64()))
    if len(rows) > _MOST_WAITING:
        rows = rows.sort_by([("observed_at", "descending")]).slice(0, _MOST_WAITING)
    return rows


def _as_received(held: pa.Table) -> pa.Table:
    """Return rows of ``observations`` in the form in which they were received."""
    rows = []
    for row in held.to_pylist():
        fields = (row["row_key"], row["guardian_address"], row["signature"], str(row["observed_at"]))
        rows.append(
            {
                "row_key": row["row_key"],
                "guardian": row["guardian_address"],
                "signature": bytes.fromhex(row["signature"]),
                "observed_at": row["observed_at"],
                "source": OBSERVATIONS.name,
                "origin": "/".join(fields[:2]),
                "raw": json.dumps(fields).encode(),
                "date": row["date"],
            }
        )
    return pa.Table.from_pylist(rows, schema=OBSERVED)


def _listed(rows: pa.Table) -> list[tuple[object, ...]]:
    columns = (rows[name].to_pylist() for name in OBSERVATIONS.names)
    return list(zip(*columns, strict=True))
