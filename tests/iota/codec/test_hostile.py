"""Hostile bytes neither stop a batch nor change what is decoded of their neighbours."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from permalake.iota.codec.blocks import decode_blocks
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.encode_outputs import pack_output
from permalake.iota.codec.faults import ERRORS, Fault
from permalake.iota.codec.to_records import block_record, output_record
from support import places
from support.iota_objects import repack

DATA = places.DATA / "iota"
FILES = {
    "chrysalis": ("chrysalis_messages", "synthetic/chrysalis/messages"),
    "stardust": ("stardust_blocks", "synthetic/stardust/blocks"),
}
LEAN = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
protocols = pytest.mark.parametrize("protocol", FILES)


@cache
def samples(protocol):
    """Well-formed blocks of every payload kind."""
    lines = [line for name in FILES[protocol] for line in (DATA / f"{name}.jsonl").read_text().splitlines()]
    return sorted({bytes.fromhex(json.loads(line)["raw"]) for line in lines}, key=len)


@cache
def sample_outputs(protocol):
    lines = (DATA / "synthetic" / protocol / "created_outputs.jsonl").read_text().splitlines()
    return sorted({bytes.fromhex(json.loads(line)["rawOutput"]) for line in lines})


@st.composite
def broken(draw, originals):
    """A sample that was cut, flipped, filled with a length's worth of ones, or replaced by noise."""
    raw = bytearray(draw(st.sampled_from(originals)))
    way = draw(st.sampled_from(["cut", "flip", "ones", "insert", "noise", "head"]))
    at = draw(st.integers(0, len(raw) - 1))
    if way == "cut":
        return bytes(raw[:at])
    if way == "flip":
        raw[at] ^= draw(st.integers(1, 255))
    elif way == "ones":
        width = draw(st.sampled_from([1, 2, 4, 8]))
        raw[at : at + width] = b"\xff" * width
    elif way == "insert":
        raw[at:at] = draw(st.binary(min_size=1, max_size=8))
    elif way == "noise":
        return draw(st.binary(max_size=300))
    else:
        return bytes(raw[: at % 60]) + draw(st.binary(max_size=120))
    return bytes(raw)


@protocols
@given(data=st.data())
@LEAN
def test_broken_blocks_leave_their_neighbours_alone(protocol, data) -> None:
    good = data.draw(st.lists(st.sampled_from(samples(protocol)), min_size=1, max_size=4))
    bad = data.draw(st.lists(broken(samples(protocol)), min_size=1, max_size=6))
    order = data.draw(st.permutations(range(len(good) + len(bad))))
    raw = [(good + bad)[at] for at in order]
    blocks = decode_blocks(pa.array(raw, pa.binary()), protocol)
    for row, at in enumerate(order):
        if at < len(good):
            alone = decode_blocks(pa.array([good[at]], pa.binary()), protocol)
            assert blocks.error[row] == 0
            assert block_record(blocks, row, protocol) == block_record(alone, 0, protocol)
        if blocks.error[row]:
            assert_empty(blocks, row)
        else:
            assert repack(blocks, row, protocol) == raw[row], "accepted, so every byte is accounted for"


def assert_empty(blocks, row) -> None:
    assert blocks.reason(row)
    assert blocks.parent_offset[row] == blocks.parent_offset[row + 1]
    columns = (
        blocks.payload_kind,
        blocks.payload_length,
        blocks.tag_length,
        blocks.tag_data_length,
        blocks.nonce,
    )
    assert not any(column[row] for column in columns)
    assert row not in blocks.milestones
    assert row not in blocks.transactions.block


@protocols
@given(data=st.data())
@LEAN
def test_broken_outputs_leave_their_neighbours_alone(protocol, data) -> None:
    originals = sample_outputs(protocol)
    good, bad = (
        data.draw(st.sampled_from(originals)),
        data.draw(st.lists(broken(originals), min_size=1, max_size=6)),
    )
    outputs = decode_outputs(pa.array([good, *bad, good], pa.binary()), protocol)
    alone = decode_outputs(pa.array([good], pa.binary()), protocol)
    for row in (0, len(bad) + 1):
        assert outputs.error[row] == 0
        assert output_record(outputs, row) == output_record(alone, 0)
    for row, raw in enumerate(bad, 1):
        if not outputs.error[row]:
            assert pack_output(output_record(outputs, row)) == raw


@protocols
def test_every_cut_of_every_sample_is_refused(protocol) -> None:
    for raw in samples(protocol)[::9]:
        cuts = [raw[:end] for end in range(len(raw))]
        blocks = decode_blocks(pa.array([*cuts, raw], pa.binary()), protocol)
        assert blocks.error[:-1].all()
        assert blocks.error[-1] == 0
        assert len(blocks.transactions) + len(blocks.milestones) <= 1


@protocols
def test_a_large_batch_of_noise(protocol) -> None:
    noise = np.random.default_rng(7).integers(0, 256, 400_000, np.uint8).tobytes()
    whole = max(samples(protocol), key=len)
    raw = [noise[at : at + 200] for at in range(0, len(noise), 200)]
    # The same noise behind a valid beginning reaches deeper into the decoder.
    raw += [whole[: 40 + at % 400] + part for at, part in enumerate(raw)]
    blocks = decode_blocks(pa.array(raw, pa.binary()), protocol)
    assert blocks.error.all()
    assert set(blocks.error.tolist()) <= {int(fault) for fault in Fault}


def test_every_fault_has_its_one_line_of_text() -> None:
    assert set(ERRORS) == set(Fault)
    assert len(set(ERRORS.values())) == len(Fault)
    assert all("\n" not in text and len(text) < 90 for text in ERRORS.values())
