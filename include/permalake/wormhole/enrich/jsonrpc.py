"""JSON-RPC 2.0 over HTTP, in batches: the protocol of EVM and Solana nodes.

A call in a batch counts like a request of its own, as providers count: a batch holds at most as many calls as
the rate allows in a second. A node that takes no batches, or only smaller ones, gets one call per request.
A fault that belongs to one call counts against that call only. A method of which call after call fails is
left alone, though the node answers others.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any, NoReturn

from permalake.net.http import Probe, RequestRejectedError, Service, UnavailableError
from permalake.net.responses import MALFORMED
from permalake.wormhole.enrich.rpc_errors import RpcErrors

_LARGEST_BATCH = 50
_ROUNDS = 12
_BATCHES_TRIED = 2
_ATTEMPTS_TO_BATCH = 3
"""Until a node has taken a batch, it is unknown whether it ever will."""
_LOST_CALLS = 10
"""Calls of a method that fail one by one, without an answer to another in between, until it is left alone."""


@dataclass(frozen=True)
class Call:
    """A method with its parameters; ``shape`` converts the result (see ``permalake.net.responses``).

    ``errors``: what errors mean for this call, where that differs from the rest of the family.
    """

    method: str
    params: tuple[Any, ...]
    shape: Callable[[Any], Any]
    errors: RpcErrors | None = None


@dataclass(frozen=True)
class Reply:
    """The outcome of a call.

    ``value`` as its shape made it; or ``reverted``: the chain says no; or ``refused``: the node will not
    answer this call; or ``fault``: the call is left open. The last three are one line each.

    Of a fault, ``alone``: the call failed by itself, as often as a request is tried; ``passing``: the reason
    lies outside the call, a limit for example.
    """

    value: Any = None
    reverted: str | None = None
    refused: str | None = None
    fault: str | None = None
    alone: bool = False
    passing: bool = False

    @property
    def no(self) -> str | None:
        """Why there is no value, where that is final."""
        return self.reverted or self.refused

    @property
    def stays(self) -> bool:
        """Whether the call has a fault of its own that no other try is likely to outlast."""
        return self.alone and not self.passing


def probe(errors: RpcErrors) -> Probe:
    """Return the request that tells whether a node of this family is alive."""
    return Probe("", {"jsonrpc": "2.0", "id": 0, "method": errors.probe, "params": []}, _any_reply)


class RpcNode:
    """A JSON-RPC service; safe to use from many threads."""

    def __init__(self, service: Service, concurrency: int, setting: str, errors: RpcErrors) -> None:
        self._service = service
        self._setting = setting
        self._errors = errors
        self._size = min(_LARGEST_BATCH, service.most_calls)
        self._rejected_batches = 0
        self._has_taken_batches = False
        self._lost = Counter[str]()
        self._ids = count(1)
        self._pool = ThreadPoolExecutor(concurrency)

    @property
    def is_down(self) -> bool:
        """Whether the node is left alone at present."""
        return self._service.is_down

    def ask(self, calls: Sequence[Call]) -> list[Reply]:
        """Return a reply to every call, in order; calls with a fault are sent again, a few times."""
        replies: list[Reply] = [Reply(fault=f"{self._service.name}: left alone")] * len(calls)
        # Calls that always fail may stand side by side; among others they do not look like a lost method.
        left = random.Random(len(calls)).sample(range(len(calls)), len(calls))  # noqa: S311
        for _ in range(_ROUNDS):
            if lost := self._lost_method([calls[number] for number in left]):
                for number in left:
                    replies[number] = Reply(fault=lost)
                break
            parts = [left[at : at + self._size] for at in range(0, len(left), self._size)]
            if self._size > 1 and not self._has_taken_batches:
                parts = parts[:1]  # the others wait for what becomes of it
            of_parts = self._pool.map(self._batch, [[calls[number] for number in part] for part in parts])
            for part, answers in zip(parts, of_parts, strict=True):
                for number, reply in zip(part, answers, strict=True):
                    replies[number] = reply
            left = [n for n in left if replies[n].fault is not None and not replies[n].alone]
            if not left:
                break
        return replies

    def give_up(self, problem: str) -> str:
        """Send no more requests, now and later; return why, with the setting to check."""
        try:
            self._service.give_up(f"{problem}; check {self._setting}")
        except UnavailableError as reason:
            return str(reason)

    def close(self) -> None:
        """Stop all threads and close all connections."""
        self._pool.shutdown(cancel_futures=True)
        self._service.close()

    def __enter__(self) -> RpcNode:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- Inside --------------------------------------------------------------------------------------

    def _lost_method(self, calls: Sequence[Call]) -> str | None:
        """Return why calls are not sent: a method of theirs always fails."""
        for method in {call.method for call in calls}:
            if self._lost[method] >= _LOST_CALLS:
                return f"{self._service.name}: {method} fails call after call and is left alone"
        return None

    def _batch(self, calls: Sequence[Call]) -> list[Reply]:
        if lost := self._lost_method(calls):
            return [Reply(fault=lost)] * len(calls)
        try:
            replies = self._sent(calls, len(calls) > 1)
            for call, reply in zip(calls, replies, strict=True):
                if reply.fault is None:
                    self._lost[call.method] = 0
            return replies
        except _NoBatchesError:
            self._rejected_batches += 1
            if self._rejected_batches >= _BATCHES_TRIED:
                self._size = 1
            return [reply for call in calls for reply in self._batch([call])]
        except UnavailableError as fault:
            if self._service.is_down:
                return [Reply(fault=str(fault)) for _ in calls]
            faults = fault.__cause__ if isinstance(fault.__cause__, _FaultsError) else None
            if len(calls) == 1:
                self._lost[calls[0].method] += 1
                passing = faults.passing if faults else fault.is_busy
                return [Reply(fault=str(fault), alone=True, passing=passing)]
            return (
                self._halves(calls) if faults is None or faults.passing else self._each_alone(faults.replies)
            )

    def _each_alone(self, replies: Sequence[Reply]) -> list[Reply]:
        """Return the faults that the node told of each call of a batch, without a request for each."""
        alone, self._has_taken_batches = self._has_taken_batches, True
        return [
            replace(reply, fault=f"{self._service.name}: {reply.fault}", alone=alone) for reply in replies
        ]

    def _halves(self, calls: Sequence[Call]) -> list[Reply]:
        """Split a batch that fails: one of its calls, or its size, may be the reason."""
        if not self._has_taken_batches:
            alone = self._batch(calls[:1])
            if alone[0].fault is None:
                self._size = 1  # the node cannot answer batches
            rest = [Reply(fault=alone[0].fault or f"{self._service.name}: left alone")] * (len(calls) - 1)
            return [*alone, *rest]
        middle = len(calls) // 2
        return [*self._batch(calls[:middle]), *self._batch(calls[middle:])]

    def _sent(self, calls: Sequence[Call], batch: bool) -> list[Reply]:
        numbered = [(next(self._ids), call) for call in calls]
        body = [
            {"jsonrpc": "2.0", "id": number, "method": call.method, "params": list(call.params)}
            for number, call in numbered
        ]
        shape = partial(_replies, numbered, batch, self._errors)
        try:
            most = _ATTEMPTS_TO_BATCH if batch and not self._has_taken_batches else None
            replies = self._service.post("", shape, body if batch else body[0], len(body), most)
        except RequestRejectedError as rejected:
            return self._despite(rejected, shape, batch)
        self._has_taken_batches |= batch
        return replies

    def _despite(
        self, rejected: RequestRejectedError, shape: Callable[[Any], list[Reply]], batch: bool
    ) -> list[Reply]:
        """Read the replies of a node that answers a failing call or batch with an HTTP error."""
        try:
            if rejected.body is not None:
                return shape(rejected.body)
        except MALFORMED:
            pass
        if batch and rejected.status in (400, 405, 413, 422):
            raise _NoBatchesError
        if rejected.status in (401, 403, 404, 405):
            self._service.give_up(f"HTTP {rejected.status}; check {self._setting}")
        raise UnavailableError(f"{self._service.name}: HTTP {rejected.status}")


def _any_reply(document: dict[str, Any]) -> Any:
    return document["error"] if "error" in document else document["result"]


class _NoBatchesError(Exception):
    """Raised when the node does not take the batch."""


class _FaultsError(ValueError):
    """Raised when no call of a request has got an answer, so that the whole request is tried again."""

    def __init__(self, replies: list[Reply]) -> None:
        super().__init__(replies[0].fault)
        self.replies = replies

    @property
    def passing(self) -> bool:
        """Whether a reason may lie outside the calls."""
        return any(reply.passing for reply in self.replies)


def _replies(
    numbered: Sequence[tuple[int, Call]], batch: bool, errors: RpcErrors, document: Any
) -> list[Reply]:
    """Return the replies in a document.

    Raises:
        ValueError: The document answers nothing, so that the whole request is tried again.
    """
    if batch and isinstance(document, dict):
        _whole(document)
    items = document if isinstance(document, list) else [document]
    by_id = {str(item["id"]): item for item in items if isinstance(item, dict) and "id" in item}
    if not batch and len(by_id) == 1:  # some nodes lose the id of a call that fails
        by_id = {str(numbered[0][0]): item for item in by_id.values()}
    replies = [_reply(call, by_id.get(str(number)), errors) for number, call in numbered]
    if all(reply.fault is not None for reply in replies):
        raise _FaultsError(replies)
    return replies


def _whole(document: dict[str, Any]) -> NoReturn:
    """Raise for a batch that got one answer: an error of this moment, or of batches."""
    error = document.get("error")
    if not isinstance(error, dict):
        raise ValueError("no JSON-RPC reply")
    words = str(error.get("message", ""))
    if "batch" in words.lower() or error.get("code") in (-32600, -32601, -32602, -32700):
        raise _NoBatchesError
    raise ValueError(_code_text(error.get("code")))


def _reply(call: Call, item: dict[str, Any] | None, errors: RpcErrors) -> Reply:
    if item is None:
        return Reply(fault="no JSON-RPC reply", passing=True)
    error = item.get("error")
    if error is not None:
        code, words = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, error)
        number, family = code if isinstance(code, int) else None, call.errors or errors
        match family.verdict(number, words):
            case "reverted":
                return Reply(reverted=_code_text(code))
            case "refused":
                return Reply(refused=_code_text(code))
        return Reply(fault=_code_text(code), passing=family.is_passing(number, words))
    try:
        return Reply(call.shape(item["result"]))
    except MALFORMED as wrong:
        return Reply(fault=f"a result of the wrong form ({type(wrong).__name__})")


def _code_text(code: Any) -> str:
    """Return an error as it is kept and noted: a code may be any JSON."""
    return f"JSON-RPC error {code if isinstance(code, int) else 'without a number'}"[:80]
