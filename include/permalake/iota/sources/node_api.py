"""Answers of a node's REST API, in both dialects: v1 (Chrysalis, TIP-13) and core v2 (Stardust, TIP-25).

Bytes are asked for where the API has them, and JSON is packed where it has not. Answers that prove themselves
(a block by its id, a payload by its form) are checked at once, so that a broken one is asked for again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

import pyarrow as pa

from permalake.iota.codec.byte_reader import ByteReader
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.faults import DecodeError
from permalake.iota.codec.from_json import pack_json_block, pack_json_milestone, pack_json_output
from permalake.iota.codec.milestones import Milestone, decode_milestone
from permalake.iota.codec.outputs import Protocol
from permalake.iota.cone.source_records import InclusionState
from permalake.iota.sources.archive_lines import UNREADABLE
from permalake.net.http import Body, RequestRejectedError, RetryPolicy, Service, document

T = TypeVar("T")
U = TypeVar("U")
_RAW_V2 = "application/vnd.iota.serializer-v1"
_RAW_V1 = "application/octet-stream"
_GONE = frozenset({404, 410})
# A request that fails is tried again after a pause, which doubles each time; `net/http.py` has the rules.
ATTEMPTS = 8
BACK_OFF_SECONDS = 0.5
# A node that does not answer at all is more likely to be a wrong address than one that will in a minute.
FIRST_ATTEMPTS = 5
_STATES = {
    "conflicting": InclusionState.CONFLICTING,
    "included": InclusionState.INCLUDED,
    "noTransaction": InclusionState.NO_TRANSACTION,
}


def first_patience(timeout: float) -> RetryPolicy:
    """Return the policy with a node that is asked for the first time; ``timeout`` in seconds."""
    return RetryPolicy(
        read=timeout, connect=min(timeout, 10.0), attempts=FIRST_ATTEMPTS, back_off=BACK_OFF_SECONDS
    )


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """A node and how it may be asked, by one process. ``name`` is what errors call it."""

    name: str
    url: str
    protocol: Protocol
    rate_per_second: float
    concurrency: int
    timeout: float
    retry_policy: RetryPolicy | None = None

    def connect(self) -> NodeApi:
        """Return the node's API in the dialect of its protocol."""
        dialect = CoreV2 if self.protocol == "stardust" else RestV1
        usual = RetryPolicy(
            read=self.timeout,
            whole=2 * self.timeout,
            attempts=ATTEMPTS,
            back_off=BACK_OFF_SECONDS,
            failures=self.concurrency,
        )
        return dialect(
            Service(
                self.name,
                dialect.base(self.url),
                self.rate_per_second,
                retry_policy=self.retry_policy or usual,
                connections=self.concurrency,
            )
        )


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


class NodeApi(ABC):
    """A node. What it does not hold is None; :class:`UnavailableError` when it cannot be asked."""

    protocol: Protocol
    root: str

    def __init__(self, service: Service):
        self._service = service

    @classmethod
    def base(cls, url: str) -> str:
        """Return the address without the API's own path."""
        return url.rstrip("/").removesuffix(cls.root)

    def close(self) -> None:
        """Let go of the connections."""
        self._service.close()

    def info(self) -> NodeInfo:
        """Return what the node holds; :class:`RequestRejectedError` if there is no such API."""
        return self._service.get(f"{self.root}/info", _checked(self._info))

    @abstractmethod
    def milestone(self, index: int) -> Signed | None:
        """Return a confirmed milestone; None if the node does not have it."""

    @abstractmethod
    def timestamp(self, index: int) -> int | None:
        """Time of a milestone (unix s)."""

    @abstractmethod
    def block(self, block_id: bytes) -> bytes | None:
        """Return the bytes of a block, proven by its id."""

    @abstractmethod
    def tips(self) -> list[bytes]:
        """Return ids of some blocks that no block approves yet; none where the node does not list them."""

    @abstractmethod
    def changes(self, index: int) -> tuple[list[bytes], list[bytes]] | None:
        """Ids of the outputs that a milestone created and consumed."""

    @abstractmethod
    def output(self, output_id: bytes) -> bytes | None:
        """Return the bytes of an output, spent or not."""

    @abstractmethod
    def state(self, block_id: bytes) -> BlockState | None:
        """Return what the node knows of a block."""

    @staticmethod
    @abstractmethod
    def _info(answer: Any) -> NodeInfo: ...

    def _json(self, path: str, shape: Any) -> Any:
        try:
            return self._service.get(f"{self.root}{path}", _checked(shape))
        except RequestRejectedError as refusal:
            return _nothing(refusal)

    def _body(self, path: str, shape: Any, accept: str) -> Any:
        try:
            return self._service.get_body(f"{self.root}{path}", _checked(shape), accept)
        except RequestRejectedError as refusal:
            return _nothing(refusal)


class CoreV2(NodeApi):
    """Core REST API v2 (TIP-25). A node that answers a request for bytes with JSON is understood too."""

    protocol = "stardust"
    root = "/api/core/v2"

    @staticmethod
    def _info(answer: Any) -> NodeInfo:
        status = answer["status"]
        confirmed = status.get("confirmedMilestone") or status["latestMilestone"]
        return NodeInfo(_u32(confirmed["index"]), _u32(status.get("pruningIndex") or 0))

    def milestone(self, index: int) -> Signed | None:
        """Return a confirmed milestone; None if the node does not have it."""

        def shape(body: Body) -> Signed:
            return Signed(*_decoded(_bytes(body, pack_json_milestone), "stardust", index))

        signed: Signed | None = self._body(f"/milestones/by-index/{index}", shape, _RAW_V2)
        return signed

    def timestamp(self, index: int) -> int | None:
        """Return the time of a milestone (unix seconds)."""
        signed = self.milestone(index)
        return signed.milestone.timestamp if signed else None

    def block(self, block_id: bytes) -> bytes | None:
        """Return the bytes of a block, proven by its id."""

        def shape(body: Body) -> bytes:
            return _proven(_bytes(body, pack_json_block), block_id)

        block: bytes | None = self._body(f"/blocks/0x{block_id.hex()}", shape, _RAW_V2)
        return block

    def tips(self) -> list[bytes]:
        """Return ids of some blocks that no block approves yet."""
        return self._json("/tips", lambda answer: _tips(answer["tips"])) or []

    def state(self, block_id: bytes) -> BlockState | None:
        """Return what the node knows of a block."""
        state: BlockState | None = self._json(f"/blocks/0x{block_id.hex()}/metadata", _state)
        return state

    def changes(self, index: int) -> tuple[list[bytes], list[bytes]] | None:
        """Return the ids of the outputs that a milestone created and consumed."""
        path = f"/milestones/by-index/{index}/utxo-changes"
        changes: tuple[list[bytes], list[bytes]] | None = self._json(
            path, lambda answer: _changes(answer, index)
        )
        return changes

    def output(self, output_id: bytes) -> bytes | None:
        """Return the bytes of an output, spent or not."""

        def shape(body: Body) -> bytes:
            return _well_formed(_bytes(body, lambda answer: pack_json_output(answer["output"])), "stardust")

        output: bytes | None = self._body(f"/outputs/0x{output_id.hex()}", shape, _RAW_V2)
        return output


class RestV1(NodeApi):
    """REST API v1 (TIP-13): JSON in an envelope, bytes of messages only."""

    protocol = "chrysalis"
    root = "/api/v1"

    @staticmethod
    def _info(answer: Any) -> NodeInfo:
        status = answer["data"]
        confirmed = status.get("confirmedMilestoneIndex", status.get("solidMilestoneIndex"))
        return NodeInfo(_u32(confirmed), _u32(status.get("pruningIndex") or 0))

    def milestone(self, index: int) -> Signed | None:
        """Return a confirmed milestone; None if the node does not have it."""
        named = self._named(index)
        raw = self.block(named[0]) if named else None
        return carried(raw, index, named[0]) if named and raw else None

    def carrier(self, index: int) -> bytes | None:
        """Id of the message that carries a milestone."""
        named = self._named(index)
        return named[0] if named else None

    def timestamp(self, index: int) -> int | None:
        """Return the time of a milestone (unix seconds)."""
        named = self._named(index)
        return named[1] if named else None

    def _named(self, index: int) -> tuple[bytes, int] | None:
        def shape(answer: Any) -> tuple[bytes, int]:
            data = answer["data"]
            if data["index"] != index:
                raise ValueError("another milestone")
            return _id(data["messageId"], 32), _u32(data["timestamp"])

        named: tuple[bytes, int] | None = self._json(f"/milestones/{index}", shape)
        return named

    def block(self, block_id: bytes) -> bytes | None:
        """Return the bytes of a block, proven by its id."""
        path = f"/messages/{block_id.hex()}/raw"
        block: bytes | None = self._body(path, lambda body: _proven(body.content, block_id), _RAW_V1)
        return block

    def state(self, block_id: bytes) -> BlockState | None:
        """Return what the node knows of a block."""
        path = f"/messages/{block_id.hex()}/metadata"
        state: BlockState | None = self._json(path, lambda answer: _state(answer["data"]))
        return state

    def tips(self) -> list[bytes]:
        """Return ids of some messages that no message approves yet."""
        return self._json("/tips", lambda answer: _tips(answer["data"]["tipMessageIds"])) or []

    def changes(self, index: int) -> tuple[list[bytes], list[bytes]] | None:
        """Return the ids of the outputs that a milestone created and consumed."""

        def shape(answer: Any) -> tuple[list[bytes], list[bytes]]:
            return _changes(answer["data"], index)

        changes: tuple[list[bytes], list[bytes]] | None = self._json(
            f"/milestones/{index}/utxo-changes", shape
        )
        return changes

    def output(self, output_id: bytes) -> bytes | None:
        """Return the bytes of an output, spent or not."""

        def shape(answer: Any) -> bytes:
            return _well_formed(pack_json_output(answer["data"]["output"]), "chrysalis")

        output: bytes | None = self._json(f"/outputs/{output_id.hex()}", shape)
        return output


def _checked(shape: Callable[[T], U]) -> Callable[[T], U]:
    """Return ``shape`` with every error that a malformed response causes as ValueError.

    The service counts that as a failed response, which it asks for again.
    """

    def run(response: T) -> U:
        try:
            return shape(response)
        except (DecodeError, *UNREADABLE) as error:
            raise ValueError(f"{type(error).__name__}: {error}"[:80]) from None

    return run


def _nothing(refusal: RequestRejectedError) -> None:
    """None for what the node does not hold; anything else that it refuses is an error."""
    if refusal.status not in _GONE:
        raise refusal


def _bytes(body: Body, pack: Any) -> bytes:
    """Return the bytes of an answer, packed from JSON if that is what came.

    No structure begins with a brace.
    """
    is_json = body.media.endswith("json") or body.content[:1] == b"{"
    return pack(document(body)) if is_json else body.content


def _proven(raw: bytes, block_id: bytes) -> bytes:
    if blake2b(raw, digest_size=32).digest() != block_id:
        raise ValueError("bytes of another id")
    return raw


def _well_formed(raw: bytes, protocol: Protocol) -> bytes:
    if decode_outputs(pa.array([raw], pa.binary()), protocol).error[0]:
        raise ValueError("no output")
    return raw


def _decoded(raw: bytes, protocol: Protocol, index: int) -> tuple[bytes, Milestone]:
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
    return Signed(*_decoded(reader.take(reader.uint(4)), "chrysalis", index), message_id)


def parents_of(raw: bytes, protocol: Protocol) -> list[bytes]:
    """Return the parents of a block whose bytes are proven; none if they are malformed."""
    at = 1 if protocol == "stardust" else 8
    count = raw[at] if len(raw) > at else 0
    parents = [raw[at + 1 + 32 * i : at + 33 + 32 * i] for i in range(count)]
    return [parent for parent in parents if len(parent) == 32]


def _state(answer: Mapping[str, Any]) -> BlockState:
    milestone, number = answer.get("referencedByMilestoneIndex"), answer.get("whiteFlagIndex")
    state = answer.get("ledgerInclusionState")
    return BlockState(
        _u32(milestone) if milestone else None,
        _STATES[state] if state is not None else None,
        _u32(answer.get("conflictReason") or 0) & 0xFF,
        _u32(number) if number is not None else None,
    )


def _changes(answer: Mapping[str, Any], index: int) -> tuple[list[bytes], list[bytes]]:
    if answer["index"] != index:
        raise ValueError("another milestone")
    created, consumed = (answer.get(name) or () for name in ("createdOutputs", "consumedOutputs"))
    return [_id(output_id, 34) for output_id in created], [_id(output_id, 34) for output_id in consumed]


def _tips(ids: Any) -> list[bytes]:
    return [_id(tip, 32) for tip in ids or ()]


def _id(text: str, width: int) -> bytes:
    value = bytes.fromhex(text.removeprefix("0x"))
    if len(value) != width:
        raise ValueError(f"an id of {len(value)} bytes")
    return value


def _u32(value: Any) -> int:
    # int() of a decimal with a large exponent would not end.
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**32:
        raise ValueError(f"{str(value)[:40]} is no u32")
    return value
