"""Chain details from the JSON-RPC of Solana and chains like it (solana.com/docs/rpc)."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from typing import Any

from permalake.wormhole.codec import solana_accounts as codec
from permalake.wormhole.codec.native_addresses import base58
from permalake.wormhole.enrich import rpc_errors
from permalake.wormhole.enrich.jsonrpc import Call, Reply, RpcNode
from permalake.wormhole.enrich.questions import (
    NEWEST_VERSION,
    TOO_NEW,
    WITHHELD,
    ChainAnswer,
    NodeRpc,
    Question,
)
from permalake.wormhole.reference import ChainInfo
from permalake.wormhole.tables.chain_questions import OWNER, SENDER, TOKEN, WRAPPED, WRAPPED_NFT

_HEX = re.compile(r"(0x)?([0-9a-fA-F]{64}|[0-9a-fA-F]{128})")
_ACCOUNT, _SIGNATURE = 32, 64
_SIGNATURES_AT_ONCE = 1000
_NO_ACCOUNT = "no such account"


class Solana(NodeRpc[RpcNode]):
    """The RPC of one chain with Solana's accounts and programs."""

    errors = rpc_errors.SOLANA

    def __init__(self, chain: ChainInfo, node: RpcNode) -> None:
        super().__init__(node)
        self._chain = chain
        self._signers: dict[bytes, ChainAnswer] = {}

    def answers(self, kind: str, questions: Sequence[Question]) -> list[ChainAnswer]:
        """Return an answer to every question, in order; those about one transaction stand together."""
        ask = {
            SENDER: self._senders,
            OWNER: self._owners,
            WRAPPED: self._wrapped,
            WRAPPED_NFT: self._wrapped_nfts,
            TOKEN: self._tokens,
        }[kind]
        return ask(questions)

    # -- Senders -------------------------------------------------------------------------------------

    def _senders(self, questions: Sequence[Question]) -> list[ChainAnswer]:
        """Find first signers; a signature or the account of the message names a transaction."""
        keys = [_key(question.tx_id) for question in questions]
        self._signers = {key: answer for key, answer in self._signers.items() if key in keys}
        new = sorted({key for key in keys if key} - set(self._signers))
        signatures = self._signatures(new)
        asked = sorted({signed_by for signed_by in signatures.values() if isinstance(signed_by, str)})
        options = {
            "encoding": "json",
            "commitment": "finalized",
            "maxSupportedTransactionVersion": NEWEST_VERSION,
        }
        replies = self._node.ask(
            [Call("getTransaction", (signature, options), _first_signer) for signature in asked]
        )
        senders = {signature: _sender(reply) for signature, reply in zip(asked, replies, strict=True)}
        for key, signature in signatures.items():
            self._signers[key] = senders[signature] if isinstance(signature, str) else signature
        none = ChainAnswer(reason="no transaction is known")
        return [self._signers[key] if key else none for key in keys]

    def _signatures(self, keys: Sequence[bytes]) -> dict[bytes, str | ChainAnswer]:
        """Return the signature of each transaction; an answer where there is none."""
        signatures: dict[bytes, str | ChainAnswer] = {
            key: base58(key) for key in keys if len(key) == _SIGNATURE
        }
        accounts = [key for key in keys if len(key) == _ACCOUNT]
        options = {"limit": _SIGNATURES_AT_ONCE, "commitment": "finalized"}
        replies = self._node.ask(
            [Call("getSignaturesForAddress", (base58(key), options), _oldest) for key in accounts]
        )
        for key, reply in zip(accounts, replies, strict=True):
            none = _answer(reply, ChainAnswer, "the node knows no transaction of this message")
            signatures[key] = reply.value or none
        return signatures

    # -- Accounts ------------------------------------------------------------------------------------

    def _owners(self, questions: Sequence[Question]) -> list[ChainAnswer]:
        accounts = [base58(bytes.fromhex(question.subject)) for question in questions]
        replies = self._node.ask([_account(account, _owner_of) for account in accounts])
        return [_answer(reply, _owner, _NO_ACCOUNT) for reply in replies]

    def _wrapped(self, questions: Sequence[Question]) -> list[ChainAnswer]:
        bridge = self._chain.token_bridge_program
        if not bridge:
            return [ChainAnswer(reason="no token bridge is known on this chain")] * len(questions)
        mints = []
        for question in questions:
            chain, address = question.subject.split(":")
            mints.append(codec.wrapped_mint(bridge, int(chain), bytes.fromhex(address)))
        return self._mints(mints, "not attested on this chain")

    def _wrapped_nfts(self, questions: Sequence[Question]) -> list[ChainAnswer]:
        bridge = self._chain.nft_bridge_program
        if not bridge:
            return [ChainAnswer(reason="no NFT bridge is known on this chain")] * len(questions)
        mints = []
        for question in questions:
            chain, address, token_id = question.subject.split(":")
            mints.append(codec.wrapped_nft(bridge, int(chain), bytes.fromhex(address), int(token_id)))
        return self._mints(mints, "not wrapped on this chain")

    def _tokens(self, questions: Sequence[Question]) -> list[ChainAnswer]:
        answers = self._mints(
            [base58(bytes.fromhex(question.subject)) for question in questions], _NO_ACCOUNT
        )
        silent = ChainAnswer(reason="no token that tells its decimals")
        return [silent if answer.address and answer.decimals is None else answer for answer in answers]

    def _mints(self, mints: Sequence[str], none: str) -> list[ChainAnswer]:
        """Read accounts of mints with their decimals, and their names at Metaplex."""
        accounts = self._node.ask([_account(mint, _decimals_of) for mint in mints])
        there = [mint for mint, reply in zip(mints, accounts, strict=True) if reply.value is not None]
        described = self._node.ask([_account(codec.metadata_account(mint), _texts_of) for mint in there])
        texts = dict(zip(there, described, strict=True))

        def mint_answer(mint: str, reply: Reply) -> ChainAnswer:
            if reply.value is None:
                return _answer(reply, ChainAnswer, none)
            text = texts[mint]
            decimals = reply.value if reply.value >= 0 else None
            # Names that always fail keep nobody from the amounts, which take the decimals alone.
            if text.fault and not (text.stays and decimals is not None):
                return ChainAnswer(fault=text.fault)
            symbol, name = text.value or (None, None)
            return ChainAnswer(mint, symbol, name, decimals, provisional=bool(text.no or text.fault))

        return [mint_answer(mint, reply) for mint, reply in zip(mints, accounts, strict=True)]


def _key(transaction: str | None) -> bytes | None:
    """Return the bytes of a signature or account in base58 or hex; None for anything else."""
    if not transaction:
        return None
    if _HEX.fullmatch(transaction):
        return bytes.fromhex(transaction.removeprefix("0x"))
    key = codec.from_base58(transaction) if len(transaction) <= 90 else None
    return key if key is not None and len(key) in (_ACCOUNT, _SIGNATURE) else None


def _answer(reply: Reply, answer_of: Callable[[Any], ChainAnswer], none: str) -> ChainAnswer:
    if reply.fault:
        return ChainAnswer(fault=reply.fault)
    return ChainAnswer(reason=reply.no or none) if reply.value is None else answer_of(reply.value)


def _sender(reply: Reply) -> ChainAnswer:
    if reply.refused == WITHHELD:
        return ChainAnswer(reason=TOO_NEW)
    return _answer(reply, ChainAnswer, "the node knows no such transaction")


def _account(address: str, shape: Callable[[dict[str, Any]], Any]) -> Call:
    def work(result: Any) -> Any:
        return None if result["value"] is None else shape(dict(result["value"]))

    return Call("getAccountInfo", (address, {"encoding": "jsonParsed", "commitment": "finalized"}), work)


def _first_signer(result: Any) -> str | None:
    """Return the account that pays: it is the first signer, and the first key."""
    if result is None or (result.get("meta") or {}).get("err") is not None:
        return None
    first = result["transaction"]["message"]["accountKeys"][0]
    return _address(first["pubkey"] if isinstance(first, dict) else first)


def _oldest(result: Any) -> str | None:
    """Return the oldest sound signature, which made the account, of a list with the newest first."""
    sound = [entry["signature"] for entry in result if entry.get("err") is None]
    return _base58(sound[-1], _SIGNATURE) if sound else None


def _address(text: Any) -> str:
    return _base58(text, _ACCOUNT)


def _base58(text: Any, size: int) -> str:
    if not isinstance(text, str) or len(codec.from_base58(text[:90]) or b"") != size:
        raise ValueError(f"no {size} bytes in base58")
    return text


def _parsed(account: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that the node parsed of an account; none where it gives bytes."""
    data = account["data"]
    info = (data.get("parsed") or {}).get("info") if isinstance(data, dict) else None
    return info if isinstance(info, dict) else {}


def _raw(account: dict[str, Any]) -> bytes:
    data = account["data"]
    return base64.b64decode(data[0]) if isinstance(data, list) and data[1:] == ["base64"] else b""


def _is_token_program(account: dict[str, Any]) -> bool:
    return account.get("owner") in codec.TOKEN_PROGRAMS


def _owner_of(account: dict[str, Any]) -> str:
    """Return the owner of a token account; empty for another account."""
    info = _parsed(account)
    if "mint" in info and "owner" in info:
        return _address(info["owner"])
    return (codec.token_account_owner(_raw(account)) or "") if _is_token_program(account) else ""


def _owner(owner: str) -> ChainAnswer:
    return ChainAnswer(owner) if owner else ChainAnswer(reason="no token account")


def _of_u8(decimals: int) -> int:
    """Return decimals as a mint can have them; -1 for others."""
    return decimals if 0 <= decimals <= 255 else -1


def _decimals_of(account: dict[str, Any]) -> int:
    """Return the decimals of a mint; -1 for another account."""
    info = _parsed(account)
    if "decimals" in info and "mint" not in info:
        return _of_u8(int(info["decimals"]))
    decimals = codec.mint_decimals(_raw(account)) if _is_token_program(account) else None
    return -1 if decimals is None else decimals


def _texts_of(account: dict[str, Any]) -> tuple[str, str] | None:
    is_metadata = account.get("owner") == codec.METADATA_PROGRAM
    return codec.metadata_texts(_raw(account)) if is_metadata else None
