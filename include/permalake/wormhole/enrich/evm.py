"""Chain details from the JSON-RPC of an EVM chain (ethereum/execution-apis; ERC-20 and ERC-721; Wormhole's
contracts: core, token bridge, NFT bridge)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from permalake.wormhole.codec import abi
from permalake.wormhole.enrich.evm_logs import LogSearch, Published, messages_in
from permalake.wormhole.enrich.jsonrpc import Call, Node, Reply
from permalake.wormhole.enrich.questions import Answer, Question
from permalake.wormhole.reference import ChainInfo
from permalake.wormhole.tables.chain_questions import SENDER, TOKEN, WRAPPED, WRAPPED_NFT

_ADDRESS = re.compile(r"0x[0-9a-f]{40}")
_TRANSACTION = re.compile(r"0x[0-9a-f]{64}")
_PADDING = "0" * 24
_HIGHEST_DECIMALS = 255

_Views = tuple[tuple[str, Callable[[bytes], Any]], ...]


@dataclass(frozen=True)
class _Receipt:
    sender: str
    published: frozenset[Published]


class Evm:
    """The RPC of one EVM chain."""

    def __init__(self, chain: ChainInfo, node: Node) -> None:
        self._chain = chain
        self._node = node
        self._search = LogSearch(chain.core, node)
        self._receipts: dict[str, Reply] = {}

    def answers(self, kind: str, questions: Sequence[Question]) -> list[Answer]:
        """An answer to every question, in order. Questions about one transaction stand together."""
        ask = {
            SENDER: self._senders,
            WRAPPED: self._wrapped,
            WRAPPED_NFT: self._wrapped_nfts,
            TOKEN: self._tokens,
        }[kind]
        return ask(questions)

    def close(self) -> None:
        """Let go of its connections."""
        self._node.close()

    # -- Senders -------------------------------------------------------------------------------------

    def _senders(self, questions: Sequence[Question]) -> list[Answer]:
        """By the reported transaction if it published the message, else by the one that the logs name."""
        reported = [question.tx_id for question in questions]
        self._receipts = {tx: reply for tx, reply in self._receipts.items() if tx in reported}
        self._receive(reported)
        answers = [self._sender(question, question.tx_id) for question in questions]
        lost = [number for number, answer in enumerate(answers) if answer.reason]
        found = self._search.transactions([questions[number] for number in lost])
        self._receive([search.transaction for search in found])
        for number, search in zip(lost, found, strict=True):
            if search.fault:
                answers[number] = Answer(fault=search.fault)
            elif search.transaction:
                answers[number] = self._sender(questions[number], search.transaction)
        return answers

    def _receive(self, transactions: Sequence[str | None]) -> None:
        """Ask for the receipts that are not at hand."""
        wanted = {tx for tx in transactions if tx and _TRANSACTION.fullmatch(tx)}
        new = sorted(wanted - set(self._receipts))
        shape = _receipt_of(self._chain.core)
        replies = self._node.ask([Call("eth_getTransactionReceipt", (tx,), shape) for tx in new])
        self._receipts |= dict(zip(new, replies, strict=True))

    def _sender(self, question: Question, transaction: str | None) -> Answer:
        reply = self._receipts.get(transaction or "")
        if reply is None:
            return Answer(reason="no transaction is known")
        if reply.fault:
            return Answer(fault=reply.fault)
        receipt: _Receipt | None = reply.value
        if receipt is None:
            return Answer(reason=reply.refused or "the node knows no such transaction")
        if question.message not in receipt.published:
            return Answer(reason="the reported transaction does not publish this message")
        return Answer(receipt.sender)

    # -- Tokens --------------------------------------------------------------------------------------

    def _wrapped(self, questions: Sequence[Question]) -> list[Answer]:
        if bridge := _contract(self._chain.token_bridge):
            return self._assets(bridge, questions, _TEXTS + _DECIMALS, "not attested on this chain")
        return [Answer(reason="no token bridge is known on this chain")] * len(questions)

    def _wrapped_nfts(self, questions: Sequence[Question]) -> list[Answer]:
        if bridge := _contract(self._chain.nft_bridge):
            return self._assets(bridge, questions, _TEXTS, "not wrapped on this chain")
        return [Answer(reason="no NFT bridge is known on this chain")] * len(questions)

    def _assets(self, bridge: str, questions: Sequence[Question], views: _Views, none: str) -> list[Answer]:
        replies = self._node.ask([_call(bridge, _wrapped_asset(one), abi.address) for one in questions])
        known = self._described(sorted({reply.value for reply in replies if reply.value}), views)
        return [_or_none(reply, known, none) for reply in replies]

    def _tokens(self, questions: Sequence[Question]) -> list[Answer]:
        native = {
            one: f"0x{one.subject[len(_PADDING) :]}" for one in questions if one.subject.startswith(_PADDING)
        }
        known = self._described(sorted(set(native.values())), _TEXTS + _DECIMALS)
        answers = []
        for question in questions:
            answer = known.get(native.get(question, ""), Answer(reason="no address of this chain"))
            silent = not answer.fault and not answer.reason and answer.decimals is None
            answers.append(Answer(reason="no token that tells its decimals") if silent else answer)
        return answers

    def _described(self, tokens: Sequence[str], views: _Views) -> dict[str, Answer]:
        """What tokens (native addresses) call themselves; what a token does not tell is None."""
        replies = self._node.ask(
            [_call(token, abi.call(f"{name}()"), form) for token in tokens for name, form in views]
        )
        found = {}
        for number, token in enumerate(tokens):
            own = replies[number * len(views) : (number + 1) * len(views)]
            fault = next((reply.fault for reply in own if reply.fault), None)
            told = {name: reply.value for (name, _), reply in zip(views, own, strict=True)}
            found[token] = Answer(fault=fault) if fault else Answer(token, **told)
        return found


def _contract(emitter: str | None) -> str | None:
    return f"0x{emitter[len(_PADDING) :]}" if emitter and emitter.startswith(_PADDING) else None


def _wrapped_asset(question: Question) -> str:
    chain, address = question.subject.split(":")
    return abi.call("wrappedAsset(uint16,bytes32)", int(chain), bytes.fromhex(address))


def _or_none(reply: Reply, known: dict[str, Answer], none: str) -> Answer:
    if reply.fault:
        return Answer(fault=reply.fault)
    return known[reply.value] if reply.value else Answer(reason=reply.refused or none)


def _call(contract: str, data: str, form: Callable[[bytes], Any]) -> Call:
    return Call("eth_call", ({"to": contract, "data": data}, "latest"), lambda result: form(_bytes(result)))


def _bytes(result: Any) -> bytes:
    if not isinstance(result, str) or not result.startswith("0x"):
        raise ValueError("no data")
    return bytes.fromhex(result[2:])


def _decimals(data: bytes) -> int | None:
    value = abi.number(data)
    return value if value is not None and value <= _HIGHEST_DECIMALS else None


_TEXTS: _Views = (("symbol", abi.text), ("name", abi.text))
_DECIMALS: _Views = (("decimals", _decimals),)


def _receipt_of(core: str | None) -> Callable[[Any], _Receipt | None]:
    def shape(result: Any) -> _Receipt | None:
        if result is None:
            return None
        sender = str(result["from"]).lower()
        if not _ADDRESS.fullmatch(sender):
            raise ValueError("no sender")
        return _Receipt(sender, frozenset(log.message for log in messages_in(result["logs"], core)))

    return shape
