"""Messages in the logs of an EVM chain's core bridge, for transactions that nobody reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from permalake.wormhole.codec import abi
from permalake.wormhole.enrich.evm_blocks import BlockSearch, SearchEndedError, close_together
from permalake.wormhole.enrich.jsonrpc import RpcNode
from permalake.wormhole.enrich.questions import Question

LOG_MESSAGE_PUBLISHED = "0x" + abi.topic("LogMessagePublished(address,uint64,uint32,bytes,uint8)").hex()
Published = tuple[str, int]
"""Emitter (32 bytes, hex) and sequence."""

_BLOCKS_BEYOND = 16
"""Blocks may share a second."""


@dataclass(frozen=True)
class Log:
    """A message and the transaction that published it."""

    message: Published
    transaction: str


@dataclass(frozen=True)
class PublishingTransaction:
    """The transaction that published a message; None when none was found, or for a ``fault`` of the node."""

    transaction: str | None = None
    fault: str | None = None


class LogSearch:
    """Finds messages by their time, which is that of their block."""

    def __init__(self, core: str | None, node: RpcNode) -> None:
        self._core = core
        self._blocks = BlockSearch(node)

    def transactions(self, questions: Sequence[Question]) -> list[PublishingTransaction]:
        """Return the transactions that published the messages of these questions, in order."""
        transactions: dict[Published, PublishingTransaction] = {}
        for group in close_together(questions) if self._core else ():
            try:
                transactions |= self._between(group)
            except SearchEndedError as ended:
                transactions |= {
                    question.message: PublishingTransaction(fault=ended.fault) for question in group
                }
        return [transactions.get(question.message, PublishingTransaction()) for question in questions]

    def _between(self, questions: Sequence[Question]) -> dict[Published, PublishingTransaction]:
        first = self._blocks.block_at(questions[0].at)
        last = self._blocks.block_at(questions[-1].at) + _BLOCKS_BEYOND
        emitters = sorted({f"0x{question.message[0]}" for question in questions})
        log_filter = {"address": self._core, "topics": [LOG_MESSAGE_PUBLISHED, emitters]}
        logs = self._blocks.logs(
            first, last, log_filter, lambda result: list(messages_in(result, self._core))
        )
        return {log.message: PublishingTransaction(log.transaction) for log in logs}


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
