"""JSON-RPC 2.0 over HTTP, in batches: what nodes of EVM chains and of Solana speak.

A call in a batch counts like a request of its own, as providers count: a batch holds at most as many calls as
the rate allows in a second. A node that takes no batches, or only smaller ones, is asked call by call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any, NoReturn

from permalake.net.http import RequestRejectedError, Service, UnavailableError

_LARGEST_BATCH = 50
_ROUNDS = 12
_BATCHES_TRIED = 2
_ATTEMPTS_TO_BATCH = 3
"""Until a node has taken a batch, it is not known whether it ever will."""

# A no that stays: reverted or impossible calls, methods and parameters that the node does not know, history
# that it does not keep (Solana), more logs than it gives at once. Anything else may be over the next time.
_FINAL_CODES = frozenset({3, -32015, -32601, -32602, -32007, -32009, -32011})
_FINAL_WORDS = re.compile(
    r"revert|invalid opcode|bad instruction|out of gas|stack under|execution error|block range|more than \d+ "
    r"(results|logs)|too many (results|logs)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Call:
    """A method with its parameters; ``shape`` takes the result apart (ValueError, KeyError or TypeError when
    it is none of the expected kind)."""

    method: str
    params: tuple[Any, ...]
    shape: Callable[[Any], Any]


@dataclass(frozen=True)
class Reply:
    """What came of a call: ``value`` as its shape made it, or the node's own no (``refused``), or the
    ``fault`` that left it unanswered; each on one line."""

    value: Any = None
    refused: str | None = None
    fault: str | None = None


class Node:
    """A JSON-RPC service; safe to use from many threads."""

    def __init__(self, service: Service, concurrency: int, setting: str) -> None:
        self._service = service
        self._setting = setting
        self._size = min(_LARGEST_BATCH, service.most_calls)
        self._refused_batches = 0
        self._has_taken_batches = False
        self._ids = count(1)
        self._pool = ThreadPoolExecutor(concurrency)

    def ask(self, calls: Sequence[Call]) -> list[Reply]:
        """A reply to every call, in order. What is left open is asked again, a few times."""
        replies: list[Reply] = [Reply(fault=f"{self._service.name}: left alone")] * len(calls)
        left = list(range(len(calls)))
        for _ in range(_ROUNDS):
            parts = [left[at : at + self._size] for at in range(0, len(left), self._size)]
            if self._size > 1 and not self._has_taken_batches:
                parts = parts[:1]  # the others wait for what becomes of it
            of_parts = self._pool.map(self._batch, [[calls[number] for number in part] for part in parts])
            for part, answers in zip(parts, of_parts, strict=True):
                for number, reply in zip(part, answers, strict=True):
                    replies[number] = reply
            left = [number for number in left if replies[number].fault is not None]
            if not left:
                break
        return replies

    def close(self) -> None:
        """Let go of its threads and connections."""
        self._pool.shutdown(cancel_futures=True)
        self._service.close()

    def __enter__(self) -> Node:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- Inside --------------------------------------------------------------------------------------

    def _batch(self, calls: Sequence[Call]) -> list[Reply]:
        try:
            return self._sent(calls, len(calls) > 1)
        except _NoBatchesError:
            self._refused_batches += 1
            if self._refused_batches >= _BATCHES_TRIED:
                self._size = 1
            return [reply for call in calls for reply in self._batch([call])]
        except UnavailableError as fault:
            faults = [Reply(fault=str(fault)) for _ in calls]
            if len(calls) > 1 and not self._has_taken_batches and (alone := self._alone(calls[0])):
                self._size = 1  # it is batches that the node is unable to answer
                faults[0] = alone
            return faults

    def _alone(self, call: Call) -> Reply | None:
        try:
            return self._sent([call], False)[0]
        except UnavailableError:
            return None

    def _sent(self, calls: Sequence[Call], batch: bool) -> list[Reply]:
        numbered = [(next(self._ids), call) for call in calls]
        body = [
            {"jsonrpc": "2.0", "id": number, "method": call.method, "params": list(call.params)}
            for number, call in numbered
        ]
        shape = partial(_replies, numbered, batch)
        try:
            most = _ATTEMPTS_TO_BATCH if batch and not self._has_taken_batches else None
            replies = self._service.post("", shape, body if batch else body[0], len(body), most)
        except RequestRejectedError as refused:
            return self._despite(refused, shape, batch)
        self._has_taken_batches |= batch
        return replies

    def _despite(
        self, refused: RequestRejectedError, shape: Callable[[Any], list[Reply]], batch: bool
    ) -> list[Reply]:
        """Some nodes answer a call that fails, or a batch that they do not take, with an HTTP error."""
        try:
            if refused.body is not None:
                return shape(refused.body)
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        if batch and refused.status in (400, 405, 413, 422):
            raise _NoBatchesError
        if refused.status in (401, 403, 404, 405):
            self._service.give_up(f"HTTP {refused.status}; check {self._setting}")
        raise UnavailableError(f"{self._service.name}: HTTP {refused.status}")


class _NoBatchesError(Exception):
    """The node took the batch for no request."""


def _replies(numbered: Sequence[tuple[int, Call]], batch: bool, document: Any) -> list[Reply]:
    """The replies in a document; ValueError when it answers nothing, so that the whole is asked again."""
    if batch and isinstance(document, dict):
        _whole(document)
    items = document if isinstance(document, list) else [document]
    found = {str(item["id"]): item for item in items if isinstance(item, dict) and "id" in item}
    if not batch and len(found) == 1:  # some nodes lose the id of a call that fails
        found = {str(numbered[0][0]): item for item in found.values()}
    replies = [_reply(call, found.get(str(number))) for number, call in numbered]
    if all(reply.fault is not None for reply in replies):
        raise ValueError(replies[0].fault)
    return replies


def _whole(document: dict[str, Any]) -> NoReturn:
    """One answer to a whole batch is an error: of this moment, or of batches."""
    error = document.get("error")
    if not isinstance(error, dict):
        raise ValueError("no JSON-RPC reply")
    words = str(error.get("message", ""))
    if "batch" in words.lower() or error.get("code") in (-32600, -32601, -32602, -32700):
        raise _NoBatchesError
    raise ValueError(f"JSON-RPC error {error.get('code')}")


def _reply(call: Call, item: dict[str, Any] | None) -> Reply:
    if item is None:
        return Reply(fault="no JSON-RPC reply")
    error = item.get("error")
    if error is not None:
        code, words = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, error)
        told = f"JSON-RPC error {code}"
        final = code in _FINAL_CODES or _FINAL_WORDS.search(str(words))
        return Reply(refused=told) if final else Reply(fault=told)
    try:
        return Reply(call.shape(item["result"]))
    except (ValueError, KeyError, TypeError, LookupError, AttributeError) as wrong:
        return Reply(fault=f"a result of the wrong form ({type(wrong).__name__})")
