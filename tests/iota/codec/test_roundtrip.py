"""Whatever is well-formed comes out of the columns as it went in, byte for byte."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from permalake.iota.codec.blocks import MILESTONE, NO_PAYLOAD, TAGGED_DATA, TRANSACTION, decode_blocks
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.encode import (
    ReferenceUnlock,
    SignatureUnlock,
    Transaction,
    pack_block,
    pack_essence,
    pack_milestone,
    pack_milestone_essence,
    pack_tagged_data,
    pack_transaction,
    pack_unlock,
)
from permalake.iota.codec.encode_outputs import Address, NativeToken, Output, pack_output
from permalake.iota.codec.milestones import decode_milestone
from permalake.iota.codec.outputs import BASIC, FOUNDRY, SINGLE, TREASURY
from permalake.iota.codec.to_records import (
    output_record,
    output_records,
    tagged_data_record,
    transaction_record,
    transaction_records,
)
from support.iota_objects import milestone_draft, repack
from support.iota_strategies import (
    PROTOCOLS,
    ids,
    milestones,
    outputs,
    parents,
    tagged_data,
    transactions,
    u64,
)

LEAN = settings(
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
protocols = pytest.mark.parametrize("protocol", PROTOCOLS)


def blake(data):
    return blake2b(data, digest_size=32).digest()


@protocols
@given(data=st.data())
@LEAN
def test_outputs(protocol, data) -> None:
    treasury = st.builds(Output, st.just(TREASURY), st.integers(0, 2_779_530_283_277_761))
    originals = data.draw(st.lists(outputs(protocol) | treasury, min_size=1, max_size=6))
    raw = [pack_output(output) for output in originals]
    columns = decode_outputs(pa.array(raw, pa.binary()), protocol)
    assert not columns.error.any()
    assert [output_record(columns, at) for at in range(len(raw))] == originals
    order = np.array(data.draw(st.permutations(range(len(raw)))))
    shuffled = columns.take(order)
    assert [output_record(shuffled, at) for at in range(len(raw))] == [originals[at] for at in order]
    assert output_records(columns, order) == [originals[at] for at in order]
    for at, output in enumerate(originals):
        if output.kind == FOUNDRY:
            serial = output.serial_number.to_bytes(4, "little")
            assert bytes(columns.chain_id[at]) == b"\x08" + output.address.value + serial + b"\0"


@st.composite
def blocks(draw, protocol):
    """A block: (kind, payload record, parents, nonce, network id, raw bytes)."""
    kind = draw(st.sampled_from([NO_PAYLOAD, TRANSACTION, MILESTONE, TAGGED_DATA]))
    record, own_parents, payload = None, draw(parents), b""
    if kind == TRANSACTION:
        record = draw(transactions(protocol))
        payload = pack_transaction(record, protocol)
    elif kind == MILESTONE:
        record = draw(milestones(protocol))
        own_parents = record[0].parents
        payload = pack_milestone(pack_milestone_essence(record[0], protocol), record[1], protocol)
    elif kind == TAGGED_DATA:
        record = draw(tagged_data(protocol))
        payload = pack_tagged_data(record, protocol)
    nonce = draw(u64)
    network_id = draw(u64) if protocol == "chrysalis" else 0
    raw = pack_block(own_parents, payload, protocol, nonce=nonce, network_id=network_id)
    return kind, record, own_parents, nonce, network_id, raw


@protocols
@given(data=st.data())
@LEAN
def test_batches_of_blocks(protocol, data) -> None:
    originals = data.draw(st.lists(blocks(protocol), min_size=1, max_size=5))
    raw = [original[-1] for original in originals]
    columns = decode_blocks(pa.array(raw, pa.large_binary()), protocol)
    assert [columns.reason(at) for at in range(len(raw))] == [""] * len(raw)
    transaction = 0
    for at, (kind, record, own_parents, nonce, network_id, _) in enumerate(originals):
        begin, end = columns.parent_offset[at : at + 2]
        assert [bytes(parent) for parent in columns.parent[begin:end]] == list(own_parents)
        assert (columns.payload_kind[at], columns.nonce[at], columns.network_id[at]) == (
            kind,
            nonce,
            network_id,
        )
        assert bytes(columns.block_id[at]) == blake(raw[at])
        if kind == TAGGED_DATA:
            assert tagged_data_record(columns, at) == record
        elif kind == MILESTONE:
            assert_milestone(columns.milestones[at], *record, protocol)
        elif kind == TRANSACTION:
            assert columns.transactions.block[transaction] == at
            assert_transaction(columns, transaction, record, protocol)
            transaction += 1
    assert len(columns.transactions) == transaction
    every = [record for kind, record, *_ in originals if kind == TRANSACTION]
    for some in (slice(None), slice(None, None, 2), slice(1, None)):
        rows = np.arange(transaction)[some]
        assert transaction_records(columns, rows, protocol) == every[some]
    assert [repack(columns, at, protocol) for at in range(len(raw))] == raw


def assert_milestone(milestone, draft, signatures, protocol) -> None:
    assert milestone_draft(milestone) == draft
    assert milestone.signatures == signatures
    essence = pack_milestone_essence(draft, protocol)
    payload = pack_milestone(essence, signatures, protocol)
    assert milestone.essence == essence
    assert milestone.milestone_id == blake(essence if protocol == "stardust" else payload)
    assert decode_milestone(payload, protocol) == milestone


def assert_transaction(columns, at, record, protocol) -> None:
    own, data = columns.transactions, columns.data
    assert transaction_record(columns, at, protocol) == record
    assert bytes(own.transaction_id[at]) == blake(pack_transaction(record, protocol))
    begin = own.essence_start[at]
    assert data[begin : begin + own.essence_length[at]].tobytes() == pack_essence(record, protocol)
    for parts, expected in (
        (own.inputs, [b"\0" + source + index.to_bytes(2, "little") for source, index in record.inputs]),
        (own.outputs, [pack_output(output) for output in record.outputs]),
        (own.unlocks, [pack_unlock(unlock) for unlock in record.unlocks]),
    ):
        rows = np.flatnonzero(parts.transaction == at)
        assert parts.idx[rows].tolist() == list(range(len(expected)))
        cuts = [data[parts.start[row] : parts.start[row] + parts.length[row]].tobytes() for row in rows]
        assert cuts == expected


@protocols
def test_the_largest_lists_that_the_protocol_allows(protocol) -> None:
    most = 127 if protocol == "chrysalis" else 128
    kind = SINGLE if protocol == "chrysalis" else BASIC
    chosen = [Output(kind=kind, amount=1, address=Address(0, blake(bytes([at])))) for at in range(most)]
    if protocol == "stardust":
        tokens = tuple(NativeToken(at.to_bytes(38, "big"), 2**256 - 1) for at in range(64))
        chosen = [replace(chosen[0], native_tokens=tokens, metadata=bytes(8192)), *chosen[1:]]
    chosen.sort(key=pack_output)
    inputs = sorted((blake(bytes([at])), at) for at in range(most))
    unlocks = [SignatureUnlock(bytes(32), bytes(64)), *(ReferenceUnlock(1, 0) for _ in inputs[1:])]
    record = Transaction(tuple(inputs), tuple(chosen), tuple(unlocks))
    raw = pack_block([bytes([at]) * 32 for at in range(8)], pack_transaction(record, protocol), protocol)
    small = pack_block([bytes(32)], b"", protocol)
    columns = decode_blocks(pa.array([small, raw, small, raw], pa.binary()), protocol)
    assert not columns.error.any()
    assert np.bincount(columns.transactions.outputs.transaction).tolist() == [most, most]
    assert transaction_record(columns, 1, protocol) == record
    assert repack(columns, 3, protocol) == raw


@protocols
def test_nothing_and_sliced_and_chunked_input(protocol) -> None:
    raw = [pack_block([bytes([at]) * 32], b"", protocol, nonce=at) for at in range(6)]
    whole = pa.array([b"junk", None, *raw], pa.binary())
    assert decode_blocks(whole[2:], protocol).nonce.tolist() == list(range(6))
    chunked = pa.chunked_array([whole[2:4], whole[4:4], whole[4:]])
    assert decode_blocks(chunked, protocol).nonce.tolist() == list(range(6))
    assert decode_blocks(whole, protocol).error.astype(bool).tolist() == [True, True] + [False] * 6
    empty = decode_blocks(pa.array([], pa.binary()), protocol)
    assert (len(empty), len(empty.transactions), empty.parent_offset.tolist()) == (0, 0, [0])
    assert len(decode_outputs(pa.array([], pa.binary()), protocol)) == 0


@given(st.lists(ids, min_size=1, max_size=6))
@settings(max_examples=20)
def test_unsorted_inputs_are_fine_on_stardust_only(sources) -> None:
    inputs = tuple((source, 0) for source in dict.fromkeys(sources))
    unlocks = (SignatureUnlock(bytes(32), bytes(64)), *(ReferenceUnlock(1, 0) for _ in inputs[1:]))
    for protocol, kind, sorted_inputs in (("stardust", BASIC, False), ("chrysalis", SINGLE, True)):
        own = (Output(kind=kind, amount=1, address=Address(0, bytes(32))),)
        raw = pack_block([bytes(32)], pack_transaction(Transaction(inputs, own, unlocks), protocol), protocol)
        error = decode_blocks(pa.array([raw], pa.binary()), protocol).error[0]
        assert bool(error) == (sorted_inputs and list(inputs) != sorted(inputs))
