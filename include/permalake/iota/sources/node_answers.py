"""Documents and bytes of a node's REST API: their types, and the values that are read from them.

Foreign answers are not trusted: on a document of another shape a reader raises one of the errors of
:data:`UNREADABLE`, or a DecodeError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import NotRequired, TypedDict, TypeVar

import pyarrow as pa

from permalake.iota.codec.byte_reader import ByteReader
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.faults import DecodeError
from permalake.iota.codec.milestones import Milestone, decode_milestone
from permalake.iota.codec.outputs import Protocol
from permalake.iota.cone.source_records import INCLUSION_STATES, InclusionState
from permalake.iota.sources.archive_lines import UNREADABLE

T = TypeVar("T")
U = TypeVar("U")
Changes = tuple[list[bytes], list[bytes]]
"""Ids of the outputs that a milestone created, and of those that it consumed."""


class MilestonePosition(TypedDict):
    """A milestone in the status of a Stardust node."""

    index: int


class StatusV2(TypedDict):
    """``status`` of a Stardust node's ``info``."""

    latestMilestone: MilestonePosition
    confirmedMilestone: NotRequired[MilestonePosition]
    pruningIndex: NotRequired[int]


class InfoV2(TypedDict):
    """``info`` of a Stardust node (TIP-25)."""

    status: StatusV2


class StatusV1(TypedDict):
    """``data`` of a Chrysalis node's ``info``; old nodes call the confirmed milestone solid."""

    confirmedMilestoneIndex: NotRequired[int]
    solidMilestoneIndex: NotRequired[int]
    pruningIndex: NotRequired[int]


class InfoV1(TypedDict):
    """``info`` of a Chrysalis node (TIP-13)."""

    data: StatusV1


class NamedMilestone(TypedDict):
    """A milestone by index: the message that carries it, and its time."""

    index: int
    messageId: str
    timestamp: int


class MilestoneV1(TypedDict):
    """``milestones/{index}`` of a Chrysalis node."""

    data: NamedMilestone


class MetadataV2(TypedDict):
    """Metadata of a block or message; a member is missing where the node has no value."""

    referencedByMilestoneIndex: NotRequired[int]
    whiteFlagIndex: NotRequired[int]
    ledgerInclusionState: NotRequired[str]
    conflictReason: NotRequired[int]


class MetadataV1(TypedDict):
    """``messages/{id}/metadata`` of a Chrysalis node."""

    data: MetadataV2


class ChangesV2(TypedDict):
    """Ids of the outputs that a milestone created and consumed."""

    index: int
    createdOutputs: NotRequired[list[str] | None]
    consumedOutputs: NotRequired[list[str] | None]


class ChangesV1(TypedDict):
    """``milestones/{index}/utxo-changes`` of a Chrysalis node."""

    data: ChangesV2


class TipsV2(TypedDict):
    """``tips`` of a Stardust node."""

    tips: list[str] | None


class TipsOfData(TypedDict):
    """``data`` of a Chrysalis node's ``tips``."""

    tipMessageIds: list[str] | None


class TipsV1(TypedDict):
    """``tips`` of a Chrysalis node."""

    data: TipsOfData


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """Which milestones a node holds: ``pruned`` is the last one that it dropped (0: none)."""

    confirmed: int
    pruned: int


@dataclass(frozen=True, slots=True)
class Signed:
    """A milestone: its payload with the u32 type, and on Chrysalis the message that carries it."""

    raw: bytes
    milestone: Milestone
    message_id: bytes | None = None


@dataclass(frozen=True, slots=True)
class BlockState:
    """The state of a block at a node; ``milestone`` references it (None: none yet)."""

    milestone: int | None
    state: InclusionState | None
    conflict: int
    white_flag_index: int | None


def checked(shape: Callable[[T], U]) -> Callable[[T], U]:
    """Return ``shape`` with every error that a malformed response causes as ValueError.

    The service counts that as a failed response, which it asks for again.
    """

    def run(response: T) -> U:
        try:
            return shape(response)
        except (DecodeError, *UNREADABLE) as error:
            raise ValueError(f"{type(error).__name__}: {error}"[:80]) from None

    return run


def proven(raw: bytes, block_id: bytes) -> bytes:
    """Return the bytes of a block whose id follows from them; else ValueError."""
    if blake2b(raw, digest_size=32).digest() != block_id:
        raise ValueError("bytes of another id")
    return raw


def well_formed(raw: bytes, protocol: Protocol) -> bytes:
    """Return the bytes of an output that decode; else ValueError."""
    if decode_outputs(pa.array([raw], pa.binary()), protocol).error[0]:
        raise ValueError("no output")
    return raw


def decoded_milestone(raw: bytes, protocol: Protocol, index: int) -> tuple[bytes, Milestone]:
    """Return a milestone's bytes and what they decode to; ValueError if they are of another one."""
    try:
        milestone = decode_milestone(raw, protocol)
    except DecodeError as error:
        raise ValueError(f"milestone {index}: {error}") from None
    if milestone.index != index:
        raise ValueError("another milestone")
    return raw, milestone


def carried(message: bytes, index: int, message_id: bytes) -> Signed:
    """Return the milestone in a Chrysalis message; ValueError if it carries none of that index."""
    reader = ByteReader(message)
    reader.take(8)
    reader.take(32 * reader.uint(1))
    return Signed(*decoded_milestone(reader.take(reader.uint(4)), "chrysalis", index), message_id)


def parents_of(raw: bytes, protocol: Protocol) -> list[bytes]:
    """Return the parents of a block whose bytes are proven; none if they are malformed."""
    at = 1 if protocol == "stardust" else 8
    count = raw[at] if len(raw) > at else 0
    parents = [raw[at + 1 + 32 * i : at + 33 + 32 * i] for i in range(count)]
    return [parent for parent in parents if len(parent) == 32]


def info_v2(answer: InfoV2) -> NodeInfo:
    """Return which milestones a Stardust node holds."""
    status = answer["status"]
    confirmed = status.get("confirmedMilestone") or status["latestMilestone"]
    return NodeInfo(u32(confirmed["index"]), u32(status.get("pruningIndex") or 0))


def info_v1(answer: InfoV1) -> NodeInfo:
    """Return which milestones a Chrysalis node holds."""
    status = answer["data"]
    confirmed = status.get("confirmedMilestoneIndex", status.get("solidMilestoneIndex"))
    return NodeInfo(u32(confirmed), u32(status.get("pruningIndex") or 0))


def carrier_of(answer: MilestoneV1, index: int) -> tuple[bytes, int]:
    """Return the id of the message that carries a milestone, and the milestone's time (unix s)."""
    data = answer["data"]
    if data["index"] != index:
        raise ValueError("another milestone")
    return id_of(data["messageId"], 32), u32(data["timestamp"])


def state_of(answer: MetadataV2) -> BlockState:
    """Return the state of a block."""
    milestone, number = answer.get("referencedByMilestoneIndex"), answer.get("whiteFlagIndex")
    state = answer.get("ledgerInclusionState")
    return BlockState(
        u32(milestone) if milestone else None,
        INCLUSION_STATES[state] if state is not None else None,
        u32(answer.get("conflictReason") or 0) & 0xFF,
        u32(number) if number is not None else None,
    )


def changes_of(answer: ChangesV2, index: int) -> Changes:
    """Return the ids of the outputs that a milestone created and consumed."""
    if answer["index"] != index:
        raise ValueError("another milestone")
    return _ids(answer.get("createdOutputs") or (), 34), _ids(answer.get("consumedOutputs") or (), 34)


def tips_of(ids: Iterable[str] | None) -> list[bytes]:
    """Return the ids of tips."""
    return _ids(ids or (), 32)


def _ids(texts: Iterable[str], width: int) -> list[bytes]:
    return [id_of(text, width) for text in texts]


def id_of(text: str, width: int) -> bytes:
    """Return an id of ``width`` bytes from its hex digits."""
    value = bytes.fromhex(text.removeprefix("0x"))
    if len(value) != width:
        raise ValueError(f"an id of {len(value)} bytes")
    return value


def u32(value: object) -> int:
    """Return an index or time, which a node may have written as anything."""
    # int() of a decimal with a large exponent would not end.
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**32:
        raise ValueError(f"{str(value)[:40]} is no u32")
    return value
