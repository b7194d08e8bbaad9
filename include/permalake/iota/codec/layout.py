"""Differences of the two protocols on the wire (TIP-6, TIP-7, TIP-8; TIP-20, TIP-23, TIP-24, TIP-29)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol as Interface

from permalake.arrays.cursor import I64, Cursor
from permalake.iota.codec import chrysalis, stardust
from permalake.iota.codec.outputs import Outputs, Protocol

MAX_BLOCK = 32768
MAX_PARENTS = 8
MAX_TAG = 64


class ReadOutputs(Interface):
    """A reader of one output per row."""

    def __call__(self, cursor: Cursor, *, treasury: bool = False) -> Outputs:
        """Return one output per row of ``cursor``."""


@dataclass(frozen=True)
class Layout:
    """Wire constants and output readers of a protocol."""

    stardust: bool
    transaction: int
    milestone: int
    tagged_data: int
    tag_length_bytes: int
    min_tag: int
    essence: int
    max_inputs: int
    unlock_kinds: int
    skip_output: Callable[[Cursor], None]
    read_outputs: ReadOutputs
    check_outputs: Callable[[Cursor, I64, Outputs], None]


LAYOUTS: dict[Protocol, Layout] = {
    "chrysalis": Layout(
        stardust=False,
        transaction=0,
        milestone=1,
        tagged_data=2,
        tag_length_bytes=2,
        min_tag=1,
        essence=0,
        max_inputs=127,
        unlock_kinds=2,
        skip_output=chrysalis.skip_output,
        read_outputs=chrysalis.read_outputs,
        check_outputs=chrysalis.check_transaction_outputs,
    ),
    "stardust": Layout(
        stardust=True,
        transaction=6,
        milestone=7,
        tagged_data=5,
        tag_length_bytes=1,
        min_tag=0,
        essence=1,
        max_inputs=128,
        unlock_kinds=4,
        skip_output=stardust.skip_output,
        read_outputs=stardust.read_outputs,
        check_outputs=stardust.check_transaction_outputs,
    ),
}
