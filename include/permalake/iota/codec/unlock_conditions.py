"""Unlock conditions of Stardust outputs (TIP-18), all rows in lockstep."""

from __future__ import annotations

import numpy as np

from permalake.arrays.cursor import I64, U8, Cursor, list_elements
from permalake.iota.codec.faults import Fault
from permalake.iota.codec.outputs import (
    ALIAS,
    ALIAS_ADDRESS,
    BASIC,
    ED25519,
    FOUNDRY,
    NFT,
    NFT_ADDRESS,
    Outputs,
)

ADDRESS, STORAGE_RETURN, TIMELOCK, EXPIRATION, STATE_CONTROLLER, GOVERNOR, IMMUTABLE_ALIAS = range(7)
MAX_CONDITIONS = 4

# By output type: bit set of the conditions allowed and of those required.
_ALLOWED, _REQUIRED = np.zeros(256, np.int64), np.zeros(256, np.int64)
for _kind, _allowed, _required in (
    (BASIC, 0b1111, 0b1),
    (ALIAS, 1 << STATE_CONTROLLER | 1 << GOVERNOR, 1 << STATE_CONTROLLER | 1 << GOVERNOR),
    (FOUNDRY, 1 << IMMUTABLE_ALIAS, 1 << IMMUTABLE_ALIAS),
    (NFT, 0b1111, 0b1),
):
    _ALLOWED[_kind], _REQUIRED[_kind] = _allowed, _required


def read_address(cursor: Cursor) -> tuple[I64, U8]:
    """Return address type and 32 bytes of every row."""
    kind = cursor.u8()
    is_address_kind = (kind == ED25519) | (kind == ALIAS_ADDRESS) | (kind == NFT_ADDRESS)
    cursor.fail(~is_address_kind, Fault.ADDRESS_KIND)
    return kind, cursor.bytes(32)


def read_unlock_conditions(part: Cursor, rows: I64, outputs: Outputs) -> None:
    """Read the conditions of ``part``'s rows, which are ``rows`` of ``outputs``."""
    kinds = outputs.kind[rows]
    seen = np.zeros(len(part), np.int64)
    for active, step in list_elements(part, MAX_CONDITIONS, Fault.CONDITION_COUNT):
        condition = step.u8()
        bit = np.left_shift(1, np.minimum(condition, 62))
        step.fail((bit & _ALLOWED[kinds[active]]) == 0, Fault.CONDITION_KIND)
        step.fail(bit <= seen[active], Fault.CONDITION_ORDER)
        seen[active] |= bit
        _read_condition(step, condition, rows[active], outputs)
    required = _REQUIRED[kinds]
    part.fail((seen & required) != required, Fault.CONDITION_MISSING)


def _read_condition(step: Cursor, condition: I64, rows: I64, outputs: Outputs) -> None:
    owners = {
        ADDRESS: outputs.address,
        STORAGE_RETURN: outputs.storage_return,
        EXPIRATION: outputs.expiration_return,
        STATE_CONTROLLER: outputs.state_controller,
        GOVERNOR: outputs.governor,
        IMMUTABLE_ALIAS: outputs.address,
    }
    for condition_kind in range(IMMUTABLE_ALIAS + 1):
        of_kind = np.flatnonzero((condition == condition_kind) & step.fine)
        if not len(of_kind):
            continue
        body = step.at(of_kind)
        if condition_kind in owners:
            kind, value = read_address(body)
            owners[condition_kind].put(rows[of_kind], kind, value)
            if condition_kind == IMMUTABLE_ALIAS:
                body.fail(kind != ALIAS_ADDRESS, Fault.ADDRESS_KIND)
                outputs.chain_id[rows[of_kind], 0] = kind
                outputs.chain_id[rows[of_kind], 1:33] = value
        if condition_kind == STORAGE_RETURN:
            amount = body.u64()
            body.fail(
                (amount == 0) | (amount > outputs.amount[rows[of_kind]].astype(np.uint64)),
                Fault.STORAGE_RETURN,
            )
            outputs.storage_return_amount[rows[of_kind]] = np.where(body.fine, amount, 0)
        elif condition_kind in (TIMELOCK, EXPIRATION):
            time = body.u32()
            body.fail(time == 0, Fault.CONDITION_TIME)
            (outputs.timelock_time if condition_kind == TIMELOCK else outputs.expiration_time)[
                rows[of_kind]
            ] = time
        step.put(of_kind, body)
