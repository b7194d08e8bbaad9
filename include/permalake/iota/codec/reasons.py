"""Conflict reasons of both protocols (TIP-13, TIP-25), with the codes of the node software."""

from __future__ import annotations

from enum import IntEnum


class Conflict(IntEnum):
    """Codes of ``conflict_reason``.

    Code 6 means dust allowance on Chrysalis and timelock on Stardust; codes 7 to 12 exist on Stardust only.
    """

    UNKNOWN = -1  # not a code: data needed to decide is missing
    NONE = 0
    SPENT_BEFORE = 1
    SPENT_IN_MILESTONE = 2
    NOT_FOUND = 3
    SUM = 4
    SIGNATURE = 5
    DUST_OR_TIMELOCK = 6
    NATIVE_TOKENS = 7
    STORAGE_RETURN = 8
    INPUT_UNLOCK = 9
    INPUTS_COMMITMENT = 10
    SENDER = 11
    CHAIN_TRANSITION = 12
    SEMANTICS = 255


MEANINGS = {
    Conflict.NONE: "nothing conflicts",
    Conflict.SPENT_BEFORE: "an input was spent before",
    Conflict.SPENT_IN_MILESTONE: "an input was spent in the same milestone",
    Conflict.NOT_FOUND: "an input does not exist",
    Conflict.SUM: "inputs and outputs differ in amount",
    Conflict.SIGNATURE: "a signature is not valid",
    Conflict.DUST_OR_TIMELOCK: "dust allowance, or timelock",
    Conflict.NATIVE_TOKENS: "native tokens are not balanced",
    Conflict.STORAGE_RETURN: "a storage deposit is not returned",
    Conflict.INPUT_UNLOCK: "an input is not unlocked",
    Conflict.INPUTS_COMMITMENT: "the inputs commitment differs",
    Conflict.SENDER: "a sender is not unlocked",
    Conflict.CHAIN_TRANSITION: "an alias, foundry or NFT changes as it may not",
    Conflict.SEMANTICS: "it is not valid otherwise",
}


def described(code: int) -> str:
    """Return a code with its meaning: ``4 (inputs and outputs differ in amount)``."""
    return f"{code} ({MEANINGS[Conflict(code)]})" if code in MEANINGS else str(code)
