"""Published messages → ``governance_actions``."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from permalake.wormhole.codec.governance import GOVERNANCE_CHAIN, GOVERNANCE_EMITTER, decode_governance

_FIELDS = (
    *(("module", pa.string()), ("action", pa.int32()), ("action_name", pa.string())),
    ("target_chain", pa.int32()),
)


def governance_actions(publications: pa.Table) -> pa.Table:
    """Return the rows of ``governance_actions``, one per governance message.

    ``publications`` are rows of ``message_publication``. There are a few hundred messages in all of history.
    """
    of_chain = pc.equal(publications["emitter_chain"], GOVERNANCE_CHAIN)
    governing = pc.and_(of_chain, pc.equal(publications["emitter_address"], GOVERNANCE_EMITTER.hex()))
    messages = publications.select(["row_key", "payload", "date"]).filter(governing)
    decoded = [decode_governance(payload or b"") for payload in messages["payload"].to_pylist()]
    kept = pa.array([place for place, action in enumerate(decoded) if action is not None], pa.int64())
    actions = [action for action in decoded if action is not None]
    fields = [json.dumps(action.fields) if action.action_name else None for action in actions]
    columns = {name: pa.array([getattr(action, name) for action in actions], kind) for name, kind in _FIELDS}
    return pa.table(
        {
            "row_key": messages["row_key"].take(kept),
            **columns,
            "fields": pa.array(fields, pa.string()),
            "date": messages["date"].take(kept),
        }
    )
