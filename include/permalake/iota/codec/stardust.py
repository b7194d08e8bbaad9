"""Stardust outputs (TIP-18, protocol 2): basic, alias, foundry and NFT, all rows in lockstep."""

from __future__ import annotations

import numpy as np

from permalake.arrays.cursor import (
    I64,
    U8,
    Cursor,
    Mask,
    bytes_at,
    disordered,
    duplicated,
    expand,
    list_elements,
    text,
)
from permalake.iota.codec.faults import Fault
from permalake.iota.codec.features import MAX_FEATURES, read_features
from permalake.iota.codec.outputs import ALIAS, BASIC, FOUNDRY, MAX_AMOUNT, NFT, TREASURY, Outputs
from permalake.iota.codec.unlock_conditions import MAX_CONDITIONS, read_unlock_conditions

MAX_NATIVE_TOKENS = 64
MAX_METADATA = 8192
TOKEN_WIDTH = 38 + 32

# Bytes behind the native tokens and before the unlock conditions; an alias's state metadata comes on top.
_BODY = np.zeros(256, np.int64)
_BODY[[ALIAS, FOUNDRY, NFT]] = [32 + 4, 4 + 1 + 3 * 32, 32]
_CONDITION = np.array([33, 41, 4, 37, 33, 33, 33])


def read_outputs(cursor: Cursor, *, treasury: bool = False) -> Outputs:
    """Read one output from every row of ``cursor``; treasury outputs only if ``treasury`` is set."""
    start = cursor.position
    outputs = Outputs.blank(cursor.data, start, np.zeros(len(start), np.int64))
    kind = cursor.u8()
    outputs.kind[:] = kind
    is_treasury = kind == TREASURY
    cursor.fail((kind > NFT) | ((kind < BASIC) & ~(treasury & is_treasury)), Fault.OUTPUT_KIND)
    amount = cursor.u64()
    cursor.fail((amount > MAX_AMOUNT) | ((amount == 0) & ~is_treasury), Fault.OUTPUT_AMOUNT)
    outputs.amount = np.where(cursor.fine, amount, 0).astype(np.int64)
    rows = np.flatnonzero(cursor.fine & ~is_treasury)
    part = cursor.at(rows)
    _read_native_tokens(part, rows, outputs)
    for output_kind, read in ((ALIAS, _read_alias), (FOUNDRY, _read_foundry), (NFT, _read_nft)):
        of_kind = np.flatnonzero(kind[rows] == output_kind)
        if len(of_kind):
            body = part.at(of_kind)
            read(body, rows[of_kind], outputs)
            part.put(of_kind, body)
    read_unlock_conditions(part, rows, outputs)
    read_features(part, rows, outputs)
    cursor.put(rows, part)
    _check_owners(cursor, outputs)
    outputs.length = cursor.position - start
    outputs.error = cursor.error
    return outputs


def _read_native_tokens(part: Cursor, rows: I64, outputs: Outputs) -> None:
    count = part.u8()
    part.fail(count > MAX_NATIVE_TOKENS, Fault.NATIVE_TOKEN_COUNT)
    count = np.where(part.fine, count, 0)
    begin = part.take(count * TOKEN_WIDTH)
    count = np.where(part.fine, count, 0)
    row, index = expand(count)
    token = bytes_at(part.data, begin[row] + index * TOKEN_WIDTH, TOKEN_WIDTH)
    outputs.native_token_id = np.ascontiguousarray(token[:, :38])
    outputs.native_token_amount = np.ascontiguousarray(token[:, 38:])
    per_output = np.zeros(len(outputs), np.int64)
    per_output[rows] = count
    outputs.native_token_offset = np.concatenate([np.zeros(1, np.int64), np.cumsum(per_output)])
    part.fail(disordered(row, outputs.native_token_id, len(part)), Fault.NATIVE_TOKEN_ORDER)
    empty = np.zeros(len(part), bool)
    empty[row[~outputs.native_token_amount.any(axis=1)]] = True
    part.fail(empty, Fault.NATIVE_TOKEN_AMOUNT)


def _read_alias(body: Cursor, rows: I64, outputs: Outputs) -> None:
    alias_id = body.bytes(32)
    outputs.chain_id[rows, :32] = alias_id
    outputs.state_index[rows] = state_index = body.u32()
    length = body.u16()
    body.fail(length > MAX_METADATA, Fault.METADATA_LENGTH)
    outputs.state_metadata_start[rows] = body.take(length)
    outputs.state_metadata_length[rows] = length
    outputs.foundry_counter[rows] = foundry_counter = body.u32()
    new = ~alias_id.any(axis=1)
    body.fail(new & ((state_index != 0) | (foundry_counter != 0)), Fault.ALIAS_STATE)


def _read_foundry(body: Cursor, rows: I64, outputs: Outputs) -> None:
    # Serial number and token scheme are bytes 33 to 37 of the foundry id; the alias follows as a condition.
    outputs.chain_id[rows, 33:38] = bytes_at(body.data, body.position, 5)
    outputs.serial_number[rows] = body.u32()
    body.fail(body.u8() != 0, Fault.TOKEN_SCHEME)
    outputs.minted[rows] = minted = body.bytes(32)
    outputs.melted[rows] = melted = body.bytes(32)
    outputs.maximum[rows] = maximum = body.bytes(32)
    body.fail(_oversupplied(minted, melted, maximum), Fault.TOKEN_SUPPLY)


def _oversupplied(minted: U8, melted: U8, maximum: U8) -> Mask:
    """Return where TIP-18's rule is broken: melted <= minted, minted - melted <= maximum, maximum > 0."""
    more, less, most = (values.view("<u8") for values in (minted, melted, maximum))
    circulating = np.empty_like(more)
    borrow = np.zeros(len(more), bool)
    for word in range(4):
        part = more[:, word] - less[:, word]
        circulating[:, word] = part - borrow
        borrow = (more[:, word] < less[:, word]) | ((part == 0) & borrow)
    held = text(np.ascontiguousarray(circulating.view(np.uint8)[:, ::-1]))
    return borrow | (held > text(np.ascontiguousarray(maximum[:, ::-1]))) | ~most.any(axis=1)


def _read_nft(body: Cursor, rows: I64, outputs: Outputs) -> None:
    outputs.chain_id[rows, :32] = body.bytes(32)


def _check_owners(cursor: Cursor, outputs: Outputs) -> None:
    """Fail aliases and NFTs that own themselves; a new one has a zero id, which no address can have."""
    has_chain_id = outputs.chain_id[:, :32].any(axis=1)
    for kind, address_kind, owner in (
        (ALIAS, 8, outputs.state_controller),
        (ALIAS, 8, outputs.governor),
        (NFT, 16, outputs.address),
    ):
        rows = np.flatnonzero(has_chain_id & (outputs.kind == kind) & (owner.kind == address_kind))
        owns_itself = (owner.value[rows] == outputs.chain_id[rows, :32]).all(axis=1)
        wrong = np.zeros(len(cursor), bool)
        wrong[rows[owns_itself]] = True
        cursor.fail(wrong, Fault.SELF_OWNED)


def skip_output(cursor: Cursor) -> None:
    """Step over one output of a transaction, reading only what its length depends on."""
    kind = cursor.u8()
    cursor.fail((kind < BASIC) | (kind > NFT), Fault.OUTPUT_KIND)
    cursor.take(8)
    cursor.take(cursor.u8() * TOKEN_WIDTH)
    cursor.take(_BODY[kind])
    rows = np.flatnonzero(kind == ALIAS)
    if len(rows):
        part = cursor.at(rows)
        part.take(part.u16() + 4)
        cursor.put(rows, part)
    _skip_conditions(cursor)
    _skip_features(cursor)
    rows = np.flatnonzero(kind != BASIC)
    if len(rows):
        part = cursor.at(rows)
        _skip_features(part)
        cursor.put(rows, part)


def _skip_conditions(cursor: Cursor) -> None:
    for _, part in list_elements(cursor, MAX_CONDITIONS, Fault.CONDITION_COUNT):
        kind = part.u8()
        part.fail(kind > 6, Fault.CONDITION_KIND)
        part.take(_CONDITION[np.minimum(kind, 6)])


def _skip_features(cursor: Cursor) -> None:
    for rows, part in list_elements(cursor, MAX_FEATURES, Fault.FEATURE_COUNT):
        kind = part.u8()
        part.fail(kind > 3, Fault.FEATURE_KIND)
        width = np.full(len(rows), 33)
        for feature_kind, read in ((2, Cursor.u16), (3, Cursor.u8)):
            of_kind = np.flatnonzero(kind == feature_kind)
            if len(of_kind):
                sized = part.at(of_kind)
                width[of_kind] = read(sized)
                part.put(of_kind, sized)
        part.take(width)


def check_transaction_outputs(cursor: Cursor, transaction: I64, outputs: Outputs) -> None:
    """Check the outputs of each transaction: sum, distinct native tokens, each chain id once."""
    rows = len(cursor)
    # In 2**32 halves, so that 128 amounts of 2**63 cannot wrap around.
    high, low = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    np.add.at(high, transaction, outputs.amount >> 32)
    np.add.at(low, transaction, outputs.amount & 0xFFFFFFFF)
    cursor.fail(high + (low >> 32) >= 2**31, Fault.OUTPUT_SUM)
    _check_distinct_tokens(cursor, transaction, outputs)
    chained = np.flatnonzero((outputs.kind >= ALIAS) & outputs.chain_id[:, :32].any(axis=1))
    if len(chained):
        chain = np.concatenate([outputs.kind[chained, None], outputs.chain_id[chained]], axis=1)
        cursor.fail(duplicated(transaction[chained], chain, rows), Fault.CHAIN_DUPLICATE)


def _check_distinct_tokens(cursor: Cursor, transaction: I64, outputs: Outputs) -> None:
    """Fail transactions with more than 64 different native tokens among their outputs (TIP-20)."""
    count = np.diff(outputs.native_token_offset)
    held = np.zeros(len(cursor), np.int64)
    np.add.at(held, transaction, count)
    if not (held > MAX_NATIVE_TOKENS).any():
        return
    token_transaction = np.repeat(transaction, count)
    token_id = text(outputs.native_token_id)
    for row in np.flatnonzero(held > MAX_NATIVE_TOKENS):
        begin, end = np.searchsorted(token_transaction, [row, row + 1])
        if len(np.unique(token_id[begin:end])) > MAX_NATIVE_TOKENS:
            cursor.error[row] = cursor.error[row] or Fault.NATIVE_TOKEN_COUNT
