"""What the token bridge of an EVM chain held at the end of a day.

Sources: wormhole-foundation/wormhole, ``ethereum/contracts/bridge``: the bridge keeps the chain's own tokens
in its own account (``_transferTokens``; ETH as WETH), and counts what it locked less what it released in
``outstandingBridged(address)``, in units of at most 8 decimals (``bridgeOut``, ``bridgedIn``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from permalake.wormhole.codec import abi
from permalake.wormhole.codec.uint256 import MAX_DECIMALS, decimal_text
from permalake.wormhole.enrich.evm_blocks import BlockSearch, SearchEndedError, finalized_block
from permalake.wormhole.enrich.jsonrpc import Call, Reply, RpcNode
from permalake.wormhole.enrich.rpc_errors import EVM_OF_THE_PAST
from permalake.wormhole.reference import ChainInfo

_ASKED = ("balance", "outstanding", "decimals")


@dataclass(frozen=True)
class CustodyAnswer:
    """What a token told of the bridge's balance at a block.

    ``amount`` and ``outstanding`` are decimal text. ``none``: why the token tells no balance there, which is
    final. ``unknown``: why the node did not answer; ``is_forgotten``: it keeps no state of that block.
    """

    block: int | None = None
    decimals: int | None = None
    balance: int | None = None
    amount: str | None = None
    outstanding: str | None = None
    none: str | None = None
    unknown: str | None = None
    is_forgotten: bool = False


class CustodySearch:
    """The balances of a token bridge that the node of its chain knows."""

    def __init__(self, chain: ChainInfo, node: RpcNode) -> None:
        self._bridge = abi.contract(chain.token_bridge)
        self._node = node
        self._search = BlockSearch(node)
        self._finalized: int | None = None
        self._last_blocks: dict[date, int] = {}
        self._decimals: dict[str, int] = {}

    def answers(self, day: date, tokens: Sequence[str]) -> list[CustodyAnswer]:
        """Return an answer to every token (32 bytes, hex), in order, as of the last block of a day."""
        if self._bridge is None:
            return [CustodyAnswer(unknown="no token bridge is known on this chain")] * len(tokens)
        try:
            block = self._last_block(day)
        except SearchEndedError as ended:
            return [CustodyAnswer(unknown=str(ended) or "no such block")] * len(tokens)
        # One token first: a node that has forgotten this block is not asked for the others.
        first = self._at(block, tokens[:1])
        if any(answer.is_forgotten for answer in first):
            return first * len(tokens)
        return [*first, *self._at(block, tokens[1:])]

    def _last_block(self, day: date) -> int:
        """Return the last block of a day.

        Raises:
            SearchEndedError: It is not final yet, or the node does not tell.
        """
        if day not in self._last_blocks:
            midnight = datetime.combine(day + timedelta(days=1), time(), UTC)
            block = self._search.block_at(int(midnight.timestamp())) - 1
            head = finalized_block(self._node)
            if head.value is None or head.value[0] < block:
                late = Reply(refused="the last block of the day is not final yet")
                raise SearchEndedError(head if head.no or head.fault else late)
            self._last_blocks[day] = block
        return self._last_blocks[day]

    def _at(self, block: int, tokens: Sequence[str]) -> list[CustodyAnswer]:
        contracts = {token: contract for token in tokens if (contract := abi.contract(token))}
        new = sorted(contract for contract in contracts.values() if contract not in self._decimals)
        calls = {("decimals", contract): _view(contract, abi.call("decimals()"), block) for contract in new}
        for contract in contracts.values():
            held = abi.call("balanceOf(address)", int(str(self._bridge), 16))
            counted = abi.call("outstandingBridged(address)", int(contract, 16))
            calls["balance", contract] = _view(contract, held, block)
            calls["outstanding", contract] = _view(str(self._bridge), counted, block)
        replies = dict(zip(calls, self._node.ask(list(calls.values())), strict=True))
        for contract in new:
            decimals = replies["decimals", contract].value
            if decimals is not None and decimals <= abi.HIGHEST_DECIMALS:
                self._decimals[contract] = decimals
        return [self._answer(contracts.get(token), block, replies) for token in tokens]

    def _answer(
        self, contract: str | None, block: int, replies: Mapping[tuple[str, str], Reply]
    ) -> CustodyAnswer:
        if contract is None:
            return CustodyAnswer(block, none="no address of this chain")
        of_contract = [replies[what, contract] for what in _ASKED if (what, contract) in replies]
        if why := next((reply.refused for reply in of_contract if reply.refused), None):
            forgotten = f"the node cannot read that block, an archive node can ({why})"
            return CustodyAnswer(block, unknown=forgotten, is_forgotten=True)
        if fault := next((reply.fault for reply in of_contract if reply.fault), None):
            return CustodyAnswer(block, unknown=fault)
        balance, decimals = replies["balance", contract], self._decimals.get(contract)
        if balance.value is None:
            return CustodyAnswer(block, decimals, none=balance.no or "the contract tells no balance")
        if decimals is None:
            return CustodyAnswer(block, balance=balance.value)
        kept = min(decimals, MAX_DECIMALS)
        outstanding = replies["outstanding", contract].value
        return CustodyAnswer(
            block,
            decimals,
            balance.value,
            amount=decimal_text(balance.value // 10 ** (decimals - kept), kept),
            outstanding=None if outstanding is None else decimal_text(outstanding, kept),
        )


def _view(contract: str, data: str, block: int) -> Call:
    params = ({"to": contract, "data": data}, hex(block))
    return Call("eth_call", params, abi.returned_number, EVM_OF_THE_PAST)
