"""Chain details from the JSON-RPC of an EVM chain.

Sources: ethereum/execution-apis; ERC-20 and ERC-721; Wormhole's contracts (core, token bridge, NFT bridge).
Contracts are read at the finalized block: what they say there is a fact of the chain. A node without that
block is asked for the latest one, and its answers are provisional.

A node of another chain would answer, too, and its answers would be final. So it is asked first of which chain
it is; one that does not take the question is believed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from permalake.wormhole.codec import abi
from permalake.wormhole.enrich import rpc_errors
from permalake.wormhole.enrich.evm_custody import CustodyAnswer, CustodySearch
from permalake.wormhole.enrich.evm_logs import LogSearch, Published, messages_in
from permalake.wormhole.enrich.evm_redemptions import RedemptionAnswer, RedemptionSearch, SentTransfer
from permalake.wormhole.enrich.foreign_values import evm_address, quantity
from permalake.wormhole.enrich.jsonrpc import Call, Reply, RpcNode
from permalake.wormhole.enrich.questions import ChainAnswer, NodeRpc, Question
from permalake.wormhole.reference import ChainInfo
from permalake.wormhole.tables.chain_questions import SENDER, TOKEN, WRAPPED, WRAPPED_NFT

_TRANSACTION = re.compile(r"0x[0-9a-f]{64}")

_FINALIZED, _LATEST = "finalized", "latest"

_Parts = tuple[tuple[str, Callable[[bytes], Any]], ...]


@dataclass(frozen=True)
class _View:
    """A view function of a contract: its call data, and how to decode what it returns."""

    contract: str
    data: str
    form: Callable[[bytes], Any]

    def at(self, block: str) -> Call:
        """Return the call at a block."""
        params = ({"to": self.contract, "data": self.data}, block)
        return Call("eth_call", params, lambda result: self.form(abi.returned(result)))


@dataclass(frozen=True)
class _Receipt:
    sender: str
    published: frozenset[Published]


class Evm(NodeRpc[RpcNode]):
    """The RPC of one EVM chain."""

    errors = rpc_errors.EVM

    def __init__(self, chain: ChainInfo, node: RpcNode) -> None:
        super().__init__(node)
        self._chain = chain
        self._search = LogSearch(chain.core, node)
        self._redemptions = RedemptionSearch(chain, node)
        self._custody = CustodySearch(chain, node)
        self._receipts: dict[str, Reply] = {}
        self._block = _FINALIZED
        self._is_of_chain = chain.evm_chain_id is None

    def answers(self, kind: str, questions: Sequence[Question]) -> list[ChainAnswer]:
        """Return an answer to every question, in order; those about one transaction stand together."""
        ask = {
            SENDER: self._senders,
            WRAPPED: self._wrapped,
            WRAPPED_NFT: self._wrapped_nfts,
            TOKEN: self._tokens,
        }[kind]
        if fault := self._unfit():
            return [ChainAnswer(fault=fault)] * len(questions)
        return ask(questions)

    def redemptions(self, asked: Sequence[SentTransfer]) -> list[RedemptionAnswer]:
        """Return what became of every transfer to this chain, in order."""
        if fault := self._unfit():
            return [RedemptionAnswer(fault=fault)] * len(asked)
        return self._redemptions.answers(asked)

    def custody(self, day: date, tokens: Sequence[str]) -> list[CustodyAnswer]:
        """Return what the token bridge held of every token at the day's end, in order."""
        if fault := self._unfit():
            return [CustodyAnswer(unknown=fault)] * len(tokens)
        return self._custody.answers(day, tokens)

    def _unfit(self) -> str | None:
        """Return why nothing is asked: the node is of another chain, or did not say of which; else None."""
        if self._is_of_chain:
            return None
        (reply,) = self._node.ask([Call("eth_chainId", (), quantity)])
        if reply.fault:
            return reply.fault
        if reply.value not in (None, self._chain.evm_chain_id):
            return self._node.give_up(f"a node of EVM chain {reply.value}, not {self._chain.evm_chain_id}")
        self._is_of_chain = True
        return None

    # -- Senders -------------------------------------------------------------------------------------

    def _senders(self, questions: Sequence[Question]) -> list[ChainAnswer]:
        """Find senders by the reported transaction if it published the message, else by the logs."""
        reported = [question.tx_id for question in questions]
        self._receipts = {tx: reply for tx, reply in self._receipts.items() if tx in reported}
        self._receive(reported)
        answers = [self._sender(question, question.tx_id) for question in questions]
        lost = [number for number, answer in enumerate(answers) if answer.reason]
        transactions = self._search.transactions([questions[number] for number in lost])
        self._receive([search.transaction for search in transactions])
        for number, search in zip(lost, transactions, strict=True):
            if search.fault:
                answers[number] = ChainAnswer(fault=search.fault)
            elif search.transaction:
                answers[number] = self._sender(questions[number], search.transaction)
        return answers

    def _receive(self, transactions: Sequence[str | None]) -> None:
        """Request the receipts that are not at hand."""
        hashes = {tx for tx in transactions if tx and _TRANSACTION.fullmatch(tx)}
        new = sorted(hashes - set(self._receipts))
        shape = _receipt_of(self._chain.core)
        replies = self._node.ask([Call("eth_getTransactionReceipt", (tx,), shape) for tx in new])
        self._receipts |= dict(zip(new, replies, strict=True))

    def _sender(self, question: Question, transaction: str | None) -> ChainAnswer:
        reply = self._receipts.get(transaction or "")
        if reply is None:
            return ChainAnswer(reason="no transaction is known")
        if reply.fault:
            return ChainAnswer(fault=reply.fault)
        receipt: _Receipt | None = reply.value
        if receipt is None:
            return ChainAnswer(reason=reply.no or "the node knows no such transaction")
        if question.message not in receipt.published:
            return ChainAnswer(reason="the reported transaction does not publish this message")
        return ChainAnswer(receipt.sender)

    # -- Tokens --------------------------------------------------------------------------------------

    def _wrapped(self, questions: Sequence[Question]) -> list[ChainAnswer]:
        if bridge := abi.contract(self._chain.token_bridge):
            return self._assets(bridge, questions, _TEXTS + _DECIMALS, "not attested on this chain")
        return [ChainAnswer(reason="no token bridge is known on this chain")] * len(questions)

    def _wrapped_nfts(self, questions: Sequence[Question]) -> list[ChainAnswer]:
        if bridge := abi.contract(self._chain.nft_bridge):
            return self._assets(bridge, questions, _TEXTS, "not wrapped on this chain")
        return [ChainAnswer(reason="no NFT bridge is known on this chain")] * len(questions)

    def _assets(
        self, bridge: str, questions: Sequence[Question], parts: _Parts, none: str
    ) -> list[ChainAnswer]:
        replies = self._read([_View(bridge, _wrapped_asset(question), abi.address) for question in questions])
        assets = {reply.value: provisional for reply, provisional in replies if reply.value}
        described = self._described(sorted(assets), parts)
        answers = []
        for reply, provisional in replies:
            if reply.value:
                answer = described[reply.value]
                answers.append(replace(answer, provisional=answer.provisional or provisional))
            elif reply.fault:
                answers.append(ChainAnswer(fault=reply.fault))
            else:
                answers.append(ChainAnswer(reason=reply.no or none))
        return answers

    def _tokens(self, questions: Sequence[Question]) -> list[ChainAnswer]:
        native = {question: token for question in questions if (token := abi.contract(question.subject))}
        described = self._described(sorted(set(native.values())), _TEXTS + _DECIMALS)
        answers = []
        for question in questions:
            answer = described.get(native.get(question, ""), ChainAnswer(reason="no address of this chain"))
            silent = not answer.fault and not answer.reason and answer.decimals is None
            answers.append(ChainAnswer(reason="no token that tells its decimals") if silent else answer)
        return answers

    def _described(self, tokens: Sequence[str], parts: _Parts) -> dict[str, ChainAnswer]:
        """Read the names of tokens (native addresses); what a token does not tell is None."""
        replies = self._read(
            [_View(token, abi.call(f"{name}()"), form) for token in tokens for name, form in parts]
        )
        described = {}
        for number, token in enumerate(tokens):
            of_token = replies[number * len(parts) : (number + 1) * len(parts)]
            faulty = [reply for reply, _ in of_token if reply.fault]
            values = {name: reply.value for (name, _), (reply, _) in zip(parts, of_token, strict=True)}
            provisional = any(unsure for _, unsure in of_token) or bool(faulty)
            # A text that always fails keeps nobody from the amounts, which take the decimals alone.
            is_enough = values.get("decimals") is not None and all(reply.stays for reply in faulty)
            described[token] = (
                ChainAnswer(fault=faulty[0].fault)
                if faulty and not is_enough
                else ChainAnswer(token, **values, provisional=provisional)
            )
        return described

    def _read(self, views: Sequence[_View]) -> list[tuple[Reply, bool]]:
        """Read contracts; tell of each reply whether it is provisional."""
        block = self._block
        replies = self._node.ask([view.at(block) for view in views])
        refused = [number for number, reply in enumerate(replies) if reply.refused]
        later: dict[int, Reply] = {}
        if refused and block == _FINALIZED:
            asked = self._node.ask([views[number].at(_LATEST) for number in refused])
            later = dict(zip(refused, asked, strict=True))
            if all(reply.refused is None and reply.fault is None for reply in later.values()):
                self._block = _LATEST  # the node does not know the finalized block
        return [
            (later.get(number, reply), block == _LATEST or reply.refused is not None)
            for number, reply in enumerate(replies)
        ]


def _wrapped_asset(question: Question) -> str:
    chain, address = question.subject.split(":")
    return abi.call("wrappedAsset(uint16,bytes32)", int(chain), bytes.fromhex(address))


def _decimals(data: bytes) -> int | None:
    value = abi.number(data)
    return value if value is not None and value <= abi.HIGHEST_DECIMALS else None


_TEXTS: _Parts = (("symbol", abi.text), ("name", abi.text))
_DECIMALS: _Parts = (("decimals", _decimals),)


def _receipt_of(core: str | None) -> Callable[[Any], _Receipt | None]:
    def shape(result: Any) -> _Receipt | None:
        if result is None:
            return None
        sender = evm_address(result["from"])
        return _Receipt(sender, frozenset(log.message for log in messages_in(result["logs"], core)))

    return shape
