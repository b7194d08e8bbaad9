"""JSON-RPC errors by chain family: which are facts of the chain, which are final, which are worth a retry.

One code means different things: -32005 is "limit exceeded" on EVM chains (EIP-1474) and "node unhealthy" on
Solana; -32007 to -32011 are missing history on Solana (``rpc-client-api/src/custom_error.rs``) and rate
limits of EVM providers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

Verdict = Literal["reverted", "refused", "fault"]
"""``reverted``: the chain itself says no. ``refused``: the node will not answer this call, now or later.
``fault``: the next try may succeed."""

_NEVER = re.compile(r"(?!)")
_UNKNOWN_CALLS = frozenset({-32601, -32602})
"""Methods and parameters that a node does not know (JSON-RPC 2.0)."""


@dataclass(frozen=True)
class RpcErrors:
    """The errors of a chain family; every error that is not listed is worth a retry."""

    reverted_codes: frozenset[int] = frozenset()
    reverted_words: re.Pattern[str] = _NEVER
    refused_codes: frozenset[int] = _UNKNOWN_CALLS
    refused_words: re.Pattern[str] = _NEVER
    limit_words: re.Pattern[str] = _NEVER
    """Words that mark a transient limit, whatever the code."""
    passing_codes: frozenset[int] = frozenset({429, -32005})
    """Codes of a moment: a limit (HTTP's and EIP-1474's), or a Solana node that is behind."""
    probe: str = ""
    """A method without parameters that every healthy node answers."""

    def verdict(self, code: Any, message: Any) -> Verdict:
        """Classify an error by its code and message."""
        words = str(message)
        if self.limit_words.search(words):
            return "fault"
        if code in self.reverted_codes or self.reverted_words.search(words):
            return "reverted"
        if code in self.refused_codes or self.refused_words.search(words):
            return "refused"
        return "fault"

    def is_passing(self, code: Any, message: Any) -> bool:
        """Whether a fault tells of the moment and not of the call."""
        return code in self.passing_codes or self.limit_words.search(str(message)) is not None


# 3 is geth's code of a revert with data, -32015 Parity's and Nethermind's VM execution error. "execution
# aborted" is no revert: the node ran out of time, which another one may have.
EVM = RpcErrors(
    reverted_codes=frozenset({3, -32015}),
    reverted_words=re.compile(
        r"revert|invalid (opcode|jump)|bad instruction|out of gas|gas uint64 overflow|stack (under|limit)|"
        r"write protection|execution error",
        re.IGNORECASE,
    ),
    refused_words=re.compile(r"finalized|(unknown|invalid) block", re.IGNORECASE),
    limit_words=re.compile(
        r"rate.?limit|too many requests|requests? (per|/) ?second|request limit|capacity|quota", re.IGNORECASE
    ),
    probe="eth_chainId",
)

_TOO_MUCH = (
    r"\branges?\b|more than \d+|too many (results|logs|blocks)|max(imum)? (results|blocks)|size exceed"
)
EVM_LOGS = replace(EVM, refused_words=re.compile(f"{EVM.refused_words.pattern}|{_TOO_MUCH}", re.IGNORECASE))
"""Calls for logs: a node bounds their blocks or results, each in words of its own."""

_NO_STATE = (
    r"missing trie node|header not found|block[^.]* not found|prun|archive|historical|"
    r"state[^.]* (un|not )available|no state available|exceeds maximum proof window"
)
EVM_OF_THE_PAST = replace(
    EVM, refused_words=re.compile(f"{EVM.refused_words.pattern}|{_NO_STATE}", re.IGNORECASE)
)
"""Calls at a block of the past: other nodes than archive nodes have forgotten its state, and a retry does not
help. The words are those of geth, Erigon, Nethermind, Besu, reth and the nodes derived from them."""

# Slots that were skipped or are no longer kept, transaction history that the node lacks, and versions of
# transactions that it does not return.
SOLANA = RpcErrors(refused_codes=_UNKNOWN_CALLS | {-32007, -32009, -32011, -32015}, probe="getHealth")

# CometBFT; what a contract says stands in the result.
COSMOS = RpcErrors(probe="health")
