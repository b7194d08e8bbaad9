"""Bytes to the JSON of a node's REST API: the inverse of :mod:`~permalake.iota.codec.from_json`.

Each function takes the raw bytes of one row of the lake and raises :class:`DecodeError` when they are
malformed. Addresses inside the JSON are hex, as in the nodes' JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, get_args

import pyarrow as pa

from permalake.iota.codec import json_chrysalis, json_stardust
from permalake.iota.codec.blocks import decode_blocks
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.faults import DecodeError, Fault
from permalake.iota.codec.milestones import decode_milestone
from permalake.iota.codec.outputs import Protocol
from permalake.iota.codec.to_records import block_record, output_record

Json = dict[str, Any]


def block_json(raw: bytes, protocol: Protocol) -> Json:
    """Return the JSON of a block or message (``messages.message``)."""
    return BLOCKS_JSON[protocol]([raw])[0]


def _blocks_json(raw: Sequence[bytes], protocol: Protocol) -> list[Json]:
    blocks = decode_blocks(pa.array(raw, pa.binary()), protocol)
    _raise_fault(blocks.error.max())
    records = (block_record(blocks, row, protocol) for row in range(len(blocks)))
    as_json = json_chrysalis.message if protocol == "chrysalis" else json_stardust.block
    return [as_json(record) for record in records]


BLOCKS_JSON: dict[Protocol, Callable[[Sequence[bytes]], list[Json]]] = {
    protocol: partial(_blocks_json, protocol=protocol) for protocol in get_args(Protocol)
}
"""The :func:`block_json` of several blocks by protocol; it raises if any of them is malformed."""


def milestone_payload_json(raw: bytes, protocol: Protocol) -> Json:
    """Return the JSON of a milestone payload with its u32 type (``milestones.payload``)."""
    milestone = decode_milestone(raw, protocol)
    as_json = json_chrysalis.milestone if protocol == "chrysalis" else json_stardust.milestone
    return as_json(milestone)


def output_json(raw: bytes, protocol: Protocol) -> Json:
    """Return the JSON of an output (``data`` of the output tables), treasury outputs included."""
    outputs = decode_outputs(pa.array([raw], pa.binary()), protocol)
    _raise_fault(outputs.error[0])
    record = output_record(outputs, 0)
    return json_chrysalis.output(record) if protocol == "chrysalis" else json_stardust.output(record)


def receipts_json(payloads: Iterable[bytes], protocol: Protocol) -> list[Json]:
    """Return ``{"receipt", "milestoneIndex"}`` of every milestone payload that has a receipt, in order."""
    as_json = json_chrysalis.receipt if protocol == "chrysalis" else json_stardust.receipt
    milestones = (decode_milestone(raw, protocol) for raw in payloads)
    return [
        {"receipt": as_json(milestone.receipt), "milestoneIndex": milestone.index}
        for milestone in milestones
        if milestone.receipt
    ]


def _raise_fault(fault: int) -> None:
    if fault:
        raise DecodeError(Fault(int(fault)))
