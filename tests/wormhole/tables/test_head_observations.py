"""Observations in a live head, whose message may change with each copy of its VAA that comes."""

from __future__ import annotations

import datetime as dt
import json

import pyarrow as pa
import pytest

from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.contracts.tables import OBSERVATIONS
from permalake.wormhole.tables.head_observations import OBSERVED, ObservationChanges, observation_changes
from permalake.wormhole.tables.observations import signed_messages
from permalake_simulate.wormhole.encode_vaa import guardian_address, sign_body
from support.guardians import BRIDGE, SECRETS, SET, vaa

DAY = dt.date(2024, 3, 10)
KEY = f"2:{BRIDGE.hex()}:{7:016}"
SETS = {SET: [guardian_address(secret) for secret in SECRETS.values()]}
COPY, OTHER = vaa(7, DAY, signers=3), vaa(7, DAY + dt.timedelta(days=1), signers=3)
NONE = OBSERVATIONS.arrow.empty_table()


def messages(*copies: bytes) -> pa.Table:
    """The head's message with one copy of its VAA, or without."""
    publication = pa.Table.from_batches([decode_vaas(pa.array(copies, pa.binary())).publication()])
    dated = publication.append_column("date", pa.array([DAY for _ in copies], pa.date32()))
    quorum = pa.table({"row_key": dated["row_key"], "signed_vaa": pa.array(copies, pa.binary())})
    return signed_messages(dated, quorum)


def observed(copy: bytes, guardians: int = 3) -> pa.Table:
    """What the first guardians sent of a copy."""
    body = copy[6 + 66 * copy[5] :]
    moment = dt.datetime.combine(DAY, dt.time(12), dt.UTC)
    rows = [
        {
            "row_key": KEY,
            "guardian": SETS[SET][guardian].hex(),
            "signature": signature,
            "observed_at": moment + dt.timedelta(seconds=guardian),
            "source": "observations",
            "origin": "file",
            "raw": json.dumps([copy[5], guardian, signature.hex()]).encode(),
            "date": DAY,
        }
        for guardian, signature in sign_body(body, dict(list(SECRETS.items())[:guardians]))
    ]
    return pa.Table.from_pylist(rows, schema=OBSERVED)


def after(held: pa.Table, change: ObservationChanges) -> pa.Table:
    """The head's observations once a change is made."""
    kept = [row for row in held.to_pylist() if row["row_key"] not in change.gone]
    rows = pa.concat_tables([pa.Table.from_pylist(kept, schema=OBSERVATIONS.arrow), change.added])
    return rows.sort_by("guardian_address")


@pytest.mark.parametrize("copies", [(COPY, OTHER, COPY), (OTHER, COPY), (OTHER, COPY, OTHER, COPY)])
def test_whatever_copies_come_between_the_last_one_decides(copies: tuple[bytes, ...]) -> None:
    straight = observation_changes(observed(COPY), NONE, messages(COPY), SETS)
    assert len(straight.added) == 3
    assert not len(straight.waiting)
    change = observation_changes(observed(COPY), NONE, messages(), SETS)
    held = after(NONE, change)
    assert (len(held), len(change.waiting)) == (0, 3)
    for copy in copies:
        change = observation_changes(change.waiting, held, messages(copy), SETS)
        held = after(held, change)
        assert (len(held), len(change.waiting)) == ((3, 0) if copy == COPY else (0, 3))
    assert held.equals(after(NONE, straight))


def test_what_no_copy_can_confirm_does_not_wait() -> None:
    rows = observed(COPY).to_pylist()
    broken = [{**row, "signature": b"short"} for row in rows]
    change = observation_changes(pa.Table.from_pylist(broken, schema=OBSERVED), NONE, messages(COPY), SETS)
    assert {row["reason"] for row in change.refused.to_pylist()} == {"malformed"}
    assert not len(change.waiting)
