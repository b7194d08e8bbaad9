"""Answers of a node's REST API, in both dialects: v1 (Chrysalis, TIP-13) and core v2 (Stardust, TIP-25).

Bytes are asked for where the API has them, and JSON is packed where it has not. Answers that prove themselves
(a block by its id, a payload by its form) are checked at once, so that a broken one is asked for again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from permalake.iota.codec.from_json import pack_json_block, pack_json_milestone, pack_json_output
from permalake.iota.codec.outputs import Protocol
from permalake.iota.sources.node_answers import (
    BlockState,
    Changes,
    ChangesV1,
    ChangesV2,
    MetadataV1,
    MilestoneV1,
    NodeInfo,
    Signed,
    TipsV1,
    TipsV2,
    carried,
    carrier_of,
    changes_of,
    checked,
    decoded_milestone,
    info_v1,
    info_v2,
    proven,
    state_of,
    tips_of,
    well_formed,
)
from permalake.net.http import Body, RequestRejectedError, RetryPolicy, Service, document

T = TypeVar("T")
Answer = TypeVar("Answer")
_RAW_V2 = "application/vnd.iota.serializer-v1"
_RAW_V1 = "application/octet-stream"
_GONE = frozenset({404, 410})
# A request that fails is tried again after a pause, which doubles each time; `net/http.py` has the rules.
ATTEMPTS = 8
BACK_OFF_SECONDS = 0.5
# A node that does not answer at all is more likely to be a wrong address than one that will in a minute.
FIRST_ATTEMPTS = 5


def first_patience(timeout: float) -> RetryPolicy:
    """Return the policy with a node that is asked for the first time; ``timeout`` in seconds."""
    return RetryPolicy(
        read=timeout, connect=min(timeout, 10.0), attempts=FIRST_ATTEMPTS, back_off=BACK_OFF_SECONDS
    )


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """A node and how it may be asked, by one process. ``name`` is what errors call it.

    ``shares``: how many processes share the rate.
    """

    name: str
    url: str
    protocol: Protocol
    rate_per_second: float
    concurrency: int
    timeout: float
    retry_policy: RetryPolicy | None = None
    shares: int = 1

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
                shares=self.shares,
            )
        )


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

    @abstractmethod
    def info(self) -> NodeInfo:
        """Return which milestones the node holds; :class:`RequestRejectedError` if there is no such API."""

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
    def changes(self, index: int) -> Changes | None:
        """Ids of the outputs that a milestone created and consumed."""

    @abstractmethod
    def output(self, output_id: bytes) -> bytes | None:
        """Return the bytes of an output, spent or not."""

    @abstractmethod
    def state(self, block_id: bytes) -> BlockState | None:
        """Return what the node knows of a block."""

    def _json(self, path: str, shape: Callable[[Answer], T]) -> T | None:
        try:
            return self._service.get(f"{self.root}{path}", checked(shape))
        except RequestRejectedError as refusal:
            _check_gone(refusal)
            return None

    def _body(self, path: str, shape: Callable[[Body], T], accept: str) -> T | None:
        try:
            return self._service.get_body(f"{self.root}{path}", checked(shape), accept)
        except RequestRejectedError as refusal:
            _check_gone(refusal)
            return None


class CoreV2(NodeApi):
    """Core REST API v2 (TIP-25). A node that answers a request for bytes with JSON is understood too."""

    protocol = "stardust"
    root = "/api/core/v2"

    def info(self) -> NodeInfo:
        """Return which milestones the node holds."""
        return self._service.get(f"{self.root}/info", checked(info_v2))

    def milestone(self, index: int) -> Signed | None:
        """Return a confirmed milestone; None if the node does not have it."""

        def shape(body: Body) -> Signed:
            return Signed(*decoded_milestone(_bytes(body, pack_json_milestone), "stardust", index))

        return self._body(f"/milestones/by-index/{index}", shape, _RAW_V2)

    def timestamp(self, index: int) -> int | None:
        """Return the time of a milestone (unix seconds)."""
        signed = self.milestone(index)
        return signed.milestone.timestamp if signed else None

    def block(self, block_id: bytes) -> bytes | None:
        """Return the bytes of a block, proven by its id."""

        def shape(body: Body) -> bytes:
            return proven(_bytes(body, pack_json_block), block_id)

        return self._body(f"/blocks/0x{block_id.hex()}", shape, _RAW_V2)

    def tips(self) -> list[bytes]:
        """Return ids of some blocks that no block approves yet."""

        def shape(answer: TipsV2) -> list[bytes]:
            return tips_of(answer["tips"])

        return self._json("/tips", shape) or []

    def state(self, block_id: bytes) -> BlockState | None:
        """Return what the node knows of a block."""
        return self._json(f"/blocks/0x{block_id.hex()}/metadata", state_of)

    def changes(self, index: int) -> Changes | None:
        """Return the ids of the outputs that a milestone created and consumed."""

        def shape(answer: ChangesV2) -> Changes:
            return changes_of(answer, index)

        return self._json(f"/milestones/by-index/{index}/utxo-changes", shape)

    def output(self, output_id: bytes) -> bytes | None:
        """Return the bytes of an output, spent or not."""

        def shape(body: Body) -> bytes:
            return well_formed(_bytes(body, lambda answer: pack_json_output(answer["output"])), "stardust")

        return self._body(f"/outputs/0x{output_id.hex()}", shape, _RAW_V2)


class RestV1(NodeApi):
    """REST API v1 (TIP-13): JSON in an envelope, bytes of messages only."""

    protocol = "chrysalis"
    root = "/api/v1"

    def info(self) -> NodeInfo:
        """Return which milestones the node holds."""
        return self._service.get(f"{self.root}/info", checked(info_v1))

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
        def shape(answer: MilestoneV1) -> tuple[bytes, int]:
            return carrier_of(answer, index)

        return self._json(f"/milestones/{index}", shape)

    def block(self, block_id: bytes) -> bytes | None:
        """Return the bytes of a block, proven by its id."""
        path = f"/messages/{block_id.hex()}/raw"
        return self._body(path, lambda body: proven(body.content, block_id), _RAW_V1)

    def state(self, block_id: bytes) -> BlockState | None:
        """Return what the node knows of a block."""

        def shape(answer: MetadataV1) -> BlockState:
            return state_of(answer["data"])

        return self._json(f"/messages/{block_id.hex()}/metadata", shape)

    def tips(self) -> list[bytes]:
        """Return ids of some messages that no message approves yet."""

        def shape(answer: TipsV1) -> list[bytes]:
            return tips_of(answer["data"]["tipMessageIds"])

        return self._json("/tips", shape) or []

    def changes(self, index: int) -> Changes | None:
        """Return the ids of the outputs that a milestone created and consumed."""

        def shape(answer: ChangesV1) -> Changes:
            return changes_of(answer["data"], index)

        return self._json(f"/milestones/{index}/utxo-changes", shape)

    def output(self, output_id: bytes) -> bytes | None:
        """Return the bytes of an output, spent or not."""

        def shape(answer: Mapping[str, Any]) -> bytes:
            return well_formed(pack_json_output(answer["data"]["output"]), "chrysalis")

        return self._json(f"/outputs/{output_id.hex()}", shape)


def _check_gone(refusal: RequestRejectedError) -> None:
    """Raise a refusal again unless it says that the node does not hold what was asked for."""
    if refusal.status not in _GONE:
        raise refusal


def _bytes(body: Body, pack: Callable[[Mapping[str, Any]], bytes]) -> bytes:
    """Return the bytes of an answer, packed from JSON if that is what came.

    No structure begins with a brace.
    """
    is_json = body.media.endswith("json") or body.content[:1] == b"{"
    return pack(document(body)) if is_json else body.content
