"""Messages in the logs of an EVM chain's core bridge, for transactions that nobody reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from permalake.wormhole.codec import abi
from permalake.wormhole.enrich.jsonrpc import Call, Reply, RpcNode
from permalake.wormhole.enrich.questions import Question

LOG_MESSAGE_PUBLISHED = "0x" + abi.topic("LogMessagePublished(address,uint64,uint32,bytes,uint8)").hex()
Published = tuple[str, int]
"""Emitter (32 bytes, hex) and sequence."""

_BLOCKS_AT_ONCE = 2000
_FEWEST_BLOCKS = 10
_WINDOWS_AT_ONCE = 32
_BLOCKS_BEYOND = 16
"""Blocks may share a second."""
_TOGETHER = 3600
"""Seconds between messages that one search covers."""
_STEPS = 80


@dataclass(frozen=True)
class Log:
    """A message and the transaction that published it."""

    message: Published
    transaction: str


@dataclass(frozen=True)
class Found:
    """The transaction that published a message; None when none was found, or for a ``fault`` of the node."""

    transaction: str | None = None
    fault: str | None = None


class _LostError(Exception):
    """Raised to end a search: the node has nothing more, or a fault."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.fault or reply.no or "")
        self.fault = reply.fault


class LogSearch:
    """Finds messages by their time, which is that of their block."""

    def __init__(self, core: str | None, node: RpcNode) -> None:
        self._core = core
        self._node = node
        self._blocks: dict[int, int] = {}
        self._no_blocks: Reply | None = None
        self._span = _BLOCKS_AT_ONCE
        self._at_once = 1

    def transactions(self, questions: Sequence[Question]) -> list[Found]:
        """Return the transactions that published the messages of these questions, in order."""
        found: dict[Published, Found] = {}
        for group in _groups(questions) if self._core else ():
            try:
                found |= self._between(group)
            except _LostError as lost:
                found |= {question.message: Found(fault=lost.fault) for question in group}
        return [found.get(question.message, Found()) for question in questions]

    def _between(self, questions: Sequence[Question]) -> dict[Published, Found]:
        first = self._block_at(questions[0].at)
        last = self._block_at(questions[-1].at) + _BLOCKS_BEYOND
        emitters = sorted({f"0x{question.message[0]}" for question in questions})
        return {log.message: Found(log.transaction) for log in self._logs(first, last, emitters)}

    def _logs(self, first: int, last: int, emitters: list[str]) -> Iterator[Log]:
        at = first
        while at <= last:
            windows = [
                (start, min(start + self._span - 1, last))
                for start in range(at, last + 1, self._span)[: self._at_once]
            ]
            replies = self._node.ask([self._window(*window, emitters) for window in windows])
            if no := next((reply for reply in replies if reply.fault or reply.no), None):
                if no.fault or self._span <= _FEWEST_BLOCKS:
                    raise _LostError(no)
                self._span //= 2  # more than the node gives at once
                continue
            self._at_once = _WINDOWS_AT_ONCE
            at = windows[-1][1] + 1
            for reply in replies:
                yield from reply.value

    def _window(self, start: int, end: int, emitters: list[str]) -> Call:
        wanted = {
            "address": self._core,
            "topics": [LOG_MESSAGE_PUBLISHED, emitters],
            "fromBlock": hex(start),
            "toBlock": hex(end),
        }
        return Call("eth_getLogs", (wanted,), lambda result: list(messages_in(result, self._core)))

    def _block_at(self, moment: int) -> int:
        """Return the first block at or after a moment, by guesses between blocks whose time is known."""
        if not self._blocks:
            if self._no_blocks:
                raise _LostError(self._no_blocks)
            for tag in ("latest", hex(1)):
                self._time_of(tag)
        low = max((number for number, at in self._blocks.items() if at < moment), default=None)
        high = min((number for number, at in self._blocks.items() if at >= moment), default=None)
        if low is None or high is None:
            raise _LostError(Reply(refused="no block of that time"))
        for step in range(_STEPS):
            if high - low <= 1:
                break
            guess = self._time_of(hex(self._guess(low, high, moment, step)))
            low, high = (guess, high) if self._blocks[guess] < moment else (low, guess)
        return high

    def _guess(self, low: int, high: int, moment: int, step: int) -> int:
        """In proportion, and every third time in the middle, as blocks are not even in time."""
        since, until = self._blocks[low], self._blocks[high]
        share = 0.5 if step % 3 == 2 else (moment - since) / max(until - since, 1)
        return min(max(low + round((high - low) * share), low + 1), high - 1)

    def _time_of(self, block: str) -> int:
        (reply,) = self._node.ask([Call("eth_getBlockByNumber", (block, False), _block)])
        if reply.value is None:
            self._no_blocks = None if reply.fault else reply
            raise _LostError(reply)
        number, at = reply.value
        self._blocks[number] = at
        found: int = number
        return found


def messages_in(logs: Any, core: str | None) -> Iterator[Log]:
    """Messages that the core bridge published in a list of logs; ValueError when it is none."""
    if not isinstance(logs, list):
        raise ValueError("no logs")
    for log in logs:
        topics = [str(topic).lower() for topic in log["topics"]]
        is_core = core is None or str(log["address"]).lower() == core.lower()
        if is_core and len(topics) == 2 and topics[0] == LOG_MESSAGE_PUBLISHED:
            sequence = int(str(log["data"])[2:66], 16)
            yield Log((topics[1].removeprefix("0x"), sequence), str(log.get("transactionHash", "")).lower())


def _groups(questions: Iterable[Question]) -> Iterator[list[Question]]:
    """Questions in order of time, close ones together."""
    group: list[Question] = []
    for question in sorted(questions, key=lambda one: one.at):
        if group and question.at - group[-1].at > _TOGETHER:
            yield group
            group = []
        group.append(question)
    if group:
        yield group


def _block(result: Any) -> tuple[int, int] | None:
    return None if result is None else (int(result["number"], 16), int(result["timestamp"], 16))
