"""Blocks of an EVM chain by their time, and logs in ranges of blocks (ethereum/execution-apis)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from permalake.wormhole.enrich.foreign_values import quantity, unix_second
from permalake.wormhole.enrich.jsonrpc import Call, Reply, RpcNode
from permalake.wormhole.enrich.rpc_errors import EVM_LOGS

_BLOCKS_AT_ONCE = 2000
_FEWEST_BLOCKS = 4
"""Some nodes give the logs of five blocks at once, and no more."""
_WINDOWS_AT_ONCE = 32
_TOGETHER = 3600
"""Seconds between events that one search covers."""
_STEPS = 80


class _Dated(Protocol):
    @property
    def at(self) -> int: ...


T = TypeVar("T", bound=_Dated)


class SearchEndedError(Exception):
    """Raised to end a search: the node has nothing more, or a ``fault``."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.fault or reply.no or "")
        self.fault = reply.fault


class BlockSearch:
    """The blocks of a node."""

    def __init__(self, node: RpcNode) -> None:
        self._node = node
        self._blocks: dict[int, int] = {}
        self._no_blocks: Reply | None = None
        self._span = _BLOCKS_AT_ONCE
        self._at_once = 1

    def logs(
        self, first: int, last: int, log_filter: dict[str, Any], shape: Callable[[Any], list[Any]]
    ) -> Iterator[Any]:
        """Yield what ``shape`` makes of the logs that pass the filter in the blocks ``first`` to ``last``.

        Raises:
            SearchEndedError: The node has a fault, or gives no logs however few blocks are asked for: what it
                says of too many is as good as unknown.
        """
        at = first
        while at <= last:
            windows = [
                (start, min(start + self._span - 1, last))
                for start in range(at, last + 1, self._span)[: self._at_once]
            ]
            replies = self._node.ask([_window(log_filter, *window, shape) for window in windows])
            if no := next((reply for reply in replies if reply.fault or reply.no), None):
                if (no.fault and not no.stays) or self._span <= _FEWEST_BLOCKS:
                    raise SearchEndedError(no)
                self._span = max(self._span // 2, _FEWEST_BLOCKS)  # maybe more than the node gives at once
                continue
            self._at_once = _WINDOWS_AT_ONCE
            at = windows[-1][1] + 1
            for reply in replies:
                yield from reply.value

    def block_at(self, moment: int) -> int:
        """Return the first block at or after a moment, by guesses between blocks whose time is known.

        Raises:
            SearchEndedError: There is none yet, or the node does not tell.
        """
        if not self._blocks:
            if self._no_blocks:
                raise SearchEndedError(self._no_blocks)
            for tag in ("latest", hex(1)):
                self._look_up(tag)
        low = max((number for number, at in self._blocks.items() if at < moment), default=None)
        high = min((number for number, at in self._blocks.items() if at >= moment), default=None)
        if low is None or high is None:
            raise SearchEndedError(Reply(refused="no block of that time"))
        for step in range(_STEPS):
            if high - low <= 1:
                break
            guess = self._look_up(hex(self._guess(low, high, moment, step)))
            low, high = (guess, high) if self._blocks[guess] < moment else (low, guess)
        return high

    def _guess(self, low: int, high: int, moment: int, step: int) -> int:
        """In proportion, and every third time in the middle, as blocks are not even in time."""
        since, until = self._blocks[low], self._blocks[high]
        share = 0.5 if step % 3 == 2 else (moment - since) / max(until - since, 1)
        return min(max(low + round((high - low) * share), low + 1), high - 1)

    def _look_up(self, block: str) -> int:
        (reply,) = self._node.ask([block_call(block)])
        if reply.value is None:
            self._no_blocks = None if reply.fault else reply
            raise SearchEndedError(reply)
        number, at = reply.value
        self._blocks[number] = at
        candidate: int = number
        return candidate


def block_call(block: str) -> Call:
    """Return the call for number and time of a block, given by tag or number in hex; None: no such block."""
    return Call("eth_getBlockByNumber", (block, False), _block)


def finalized_block(node: RpcNode) -> Reply:
    """Return number and time of the finalized block; of the latest one where the node knows no other."""
    (reply,) = node.ask([block_call("finalized")])
    if reply.value is None and not reply.fault:
        (reply,) = node.ask([block_call("latest")])
    return reply


def close_together(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield items in order of time, close ones together."""
    group: list[T] = []
    for item in sorted(items, key=lambda dated: dated.at):
        if group and item.at - group[-1].at > _TOGETHER:
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def _window(log_filter: dict[str, Any], start: int, end: int, shape: Callable[[Any], list[Any]]) -> Call:
    blocks = {"fromBlock": hex(start), "toBlock": hex(end)}
    return Call("eth_getLogs", ({**log_filter, **blocks},), shape, EVM_LOGS)


def _block(result: Any) -> tuple[int, int] | None:
    if result is None:
        return None
    return quantity(result["number"]), unix_second(quantity(result["timestamp"]))
