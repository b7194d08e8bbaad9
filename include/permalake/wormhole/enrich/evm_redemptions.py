"""Redemptions of transfers on an EVM chain, from the bridges' state and logs.

Sources: wormhole-foundation/wormhole, ``ethereum/contracts``: ``isTransferCompleted(bytes32)`` of both
bridges tells of the double Keccak-256 of a VAA's body whether it was redeemed. Only the token bridge emits
``TransferRedeemed(uint16,bytes32,uint64)`` with it, and did not in its first years.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from permalake.wormhole.codec import abi
from permalake.wormhole.codec.uint256 import decimal_text
from permalake.wormhole.enrich.evm_blocks import (
    BlockSearch,
    SearchEndedError,
    block_call,
    close_together,
    finalized_block,
)
from permalake.wormhole.enrich.foreign_values import evm_address, evm_transaction, quantity
from permalake.wormhole.enrich.jsonrpc import Call, Reply, RpcNode
from permalake.wormhole.reference import ChainInfo

TRANSFER_REDEEMED = "0x" + abi.topic("TransferRedeemed(uint16,bytes32,uint64)").hex()
Redeemed = tuple[int, str, int]
"""Emitter's chain, emitter (32 bytes, hex) and sequence."""

_REACH = 7 * 86_400
"""Seconds after a transfer in which the log of its redemption is looked for."""
_FIRST_BLOCKS = 2000
_DECIMALS = 18
_LARGEST_WORD = 2**256 - 1


@dataclass(frozen=True)
class SentTransfer:
    """A transfer to a chain: its row key, bridge, the digest of its VAA (hex) and its time (unix seconds)."""

    row_key: str
    bridge: Literal["token", "nft"]
    digest: str
    at: int

    @property
    def message(self) -> Redeemed:
        """The message as the log of its redemption has it."""
        chain, emitter, sequence = self.row_key.split(":")
        return int(chain), emitter, int(sequence)


@dataclass(frozen=True)
class RedemptionAnswer:
    """What a chain tells of a transfer.

    ``reason``: why the chain cannot tell, or why it tells of no transaction. ``fault``: the question is left
    open. ``at`` in unix seconds, ``fee`` in the chain's coin.
    """

    is_completed: bool | None = None
    transaction: str | None = None
    at: int | None = None
    redeemer: str | None = None
    fee: str | None = None
    reason: str | None = None
    fault: str | None = None


@dataclass(frozen=True)
class _RedeemingReceipt:
    redeemer: str
    fee: str | None
    block: int
    redeemed: frozenset[Redeemed]


class RedemptionSearch:
    """The redemptions that the node of an EVM chain knows."""

    def __init__(self, chain: ChainInfo, node: RpcNode) -> None:
        self._bridges = {"token": abi.contract(chain.token_bridge), "nft": abi.contract(chain.nft_bridge)}
        self._node = node
        self._blocks = BlockSearch(node)

    def answers(self, asked: Sequence[SentTransfer]) -> list[RedemptionAnswer]:
        """Return an answer to every transfer, in order, as of the finalized block."""
        head = finalized_block(self._node)
        if head.value is None:
            lacks = RedemptionAnswer(reason=head.no or "no block", fault=head.fault)
            return [lacks] * len(asked)
        answers = self._completed(asked, head.value[0])
        redeemed = {
            transfer.message: transfer
            for transfer, answer in zip(asked, answers, strict=True)
            if answer.is_completed and transfer.bridge == "token"
        }
        transactions = self._transactions(list(redeemed.values()), head.value[0])
        return [
            transactions.get(transfer.message, answer) if answer.is_completed else answer
            for transfer, answer in zip(asked, answers, strict=True)
        ]

    def _completed(self, asked: Sequence[SentTransfer], block: int) -> list[RedemptionAnswer]:
        bridged = [transfer for transfer in asked if self._bridges[transfer.bridge]]
        calls = [
            _is_completed(self._bridges[transfer.bridge], transfer.digest, block) for transfer in bridged
        ]
        replies = {
            transfer.row_key: reply for transfer, reply in zip(bridged, self._node.ask(calls), strict=True)
        }
        answers = []
        for transfer in asked:
            reply = replies.get(
                transfer.row_key, Reply(refused=f"no {transfer.bridge} bridge is known on this chain")
            )
            is_completed = None if reply.value is None else bool(reply.value)
            no = reply.no or (None if reply.fault or is_completed is not None else "the bridge does not tell")
            answers.append(RedemptionAnswer(is_completed, reason=no, fault=reply.fault))
        return answers

    # -- Transactions --------------------------------------------------------------------------------

    def _transactions(self, redeemed: Sequence[SentTransfer], head: int) -> dict[Redeemed, RedemptionAnswer]:
        """Return the redemptions of completed transfers, and why the transaction of others is not known."""
        logs: dict[Redeemed, str] = {}
        answers: dict[Redeemed, RedemptionAnswer] = {}
        for group in close_together(redeemed):
            try:
                self._search(group, head, logs)
            except SearchEndedError as ended:
                why = None if ended.fault else str(ended) or "no blocks"
                lacks = RedemptionAnswer(is_completed=True, reason=why, fault=ended.fault)
                answers |= {transfer.message: lacks for transfer in group}
        return answers | self._described(logs)

    def _search(self, group: Sequence[SentTransfer], head: int, transactions: dict[Redeemed, str]) -> None:
        """Find the logs of a group, in ever larger ranges of blocks until all are found."""
        missing = {transfer.message for transfer in group}
        topics = [
            TRANSFER_REDEEMED,
            sorted({_word(chain) for chain, _, _ in missing}),
            sorted({f"0x{emitter}" for _, emitter, _ in missing}),
            sorted({_word(sequence) for _, _, sequence in missing}),
        ]
        log_filter = {"address": self._bridges["token"], "topics": topics}
        at, size = self._blocks.block_at(group[0].at), _FIRST_BLOCKS
        last = min(head, self._end(group[-1].at + _REACH, head))
        while missing and at <= last:
            end = min(at + size - 1, last)
            for message, transaction in self._blocks.logs(at, end, log_filter, self._shape):
                if message in missing:
                    missing.remove(message)
                    transactions[message] = transaction
            at, size = end + 1, 2 * size

    def _end(self, moment: int, head: int) -> int:
        try:
            return self._blocks.block_at(moment)
        except SearchEndedError as ended:
            if ended.fault:
                raise
            return head  # that time has not come yet

    def _shape(self, logs: Any) -> list[tuple[Redeemed, str]]:
        return [
            (message, evm_transaction(transaction))
            for message, transaction in _redeemed_in(logs, self._bridges["token"])
        ]

    def _described(self, logs: dict[Redeemed, str]) -> dict[Redeemed, RedemptionAnswer]:
        transactions = sorted(set(logs.values()))
        calls = [
            Call("eth_getTransactionReceipt", (transaction,), self._receipt) for transaction in transactions
        ]
        receipts = dict(zip(transactions, self._node.ask(calls), strict=True))
        blocks = sorted({reply.value.block for reply in receipts.values() if reply.value})
        replies = self._node.ask([block_call(hex(block)) for block in blocks])
        times = dict(zip(blocks, replies, strict=True))
        return {
            message: _answer(message, transaction, receipts[transaction], times)
            for message, transaction in logs.items()
        }

    def _receipt(self, result: Any) -> _RedeemingReceipt | None:
        if result is None:
            return None
        redeemed = frozenset(message for message, _ in _redeemed_in(result["logs"], self._bridges["token"]))
        return _RedeemingReceipt(
            evm_address(result["from"]), _fee(result), quantity(result["blockNumber"]), redeemed
        )


def _answer(message: Redeemed, transaction: str, receipt: Reply, times: dict[int, Reply]) -> RedemptionAnswer:
    """Return the redemption in a transaction whose receipt holds its log."""
    if receipt.value is None or message not in receipt.value.redeemed:
        no = None if receipt.fault else receipt.no or "the receipt of the transaction does not redeem it"
        return RedemptionAnswer(is_completed=True, reason=no, fault=receipt.fault)
    redeeming: _RedeemingReceipt = receipt.value
    time = times[redeeming.block]
    if time.fault:
        return RedemptionAnswer(is_completed=True, fault=time.fault)
    at = time.value[1] if time.value else None
    return RedemptionAnswer(True, transaction, at, redeeming.redeemer, redeeming.fee)


def _redeemed_in(logs: Any, bridge: str | None) -> Iterator[tuple[Redeemed, str]]:
    """Yield the messages that the bridge redeemed in a list of logs; ValueError when it is none."""
    if not isinstance(logs, list):
        raise ValueError("no logs")
    for log in logs:
        topics = [str(topic).lower() for topic in log["topics"]]
        is_bridge = str(log["address"]).lower() == bridge and not log.get("removed")
        if is_bridge and len(topics) == 4 and topics[0] == TRANSFER_REDEEMED:
            chain, sequence = int(topics[1], 16), int(topics[3], 16)
            yield (chain, topics[2].removeprefix("0x"), sequence), str(log.get("transactionHash", "")).lower()


def _is_completed(bridge: str | None, digest: str, block: int) -> Call:
    data = abi.call("isTransferCompleted(bytes32)", bytes.fromhex(digest))
    return Call("eth_call", ({"to": bridge, "data": data}, hex(block)), abi.returned_number)


def _fee(receipt: dict[str, Any]) -> str | None:
    """Return the fee of a transaction; ``l1Fee`` is what rollups of the OP stack take for Ethereum's part."""
    if receipt.get("effectiveGasPrice") is None:
        return None
    used, price = (quantity(receipt[name], _LARGEST_WORD) for name in ("gasUsed", "effectiveGasPrice"))
    return decimal_text(used * price + quantity(receipt.get("l1Fee") or "0x0", _LARGEST_WORD), _DECIMALS)


def _word(number: int) -> str:
    return f"0x{number:064x}"
