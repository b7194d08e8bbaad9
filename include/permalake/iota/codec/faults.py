"""Why a block, output or milestone is malformed: a code and a line of text for each rule."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from permalake.arrays import faults

_SHAPE_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)
_MAX_DETAIL = 200


class Fault(IntEnum):
    """Codes of the ``error`` columns; 0 is well-formed. A row has the code of the first broken rule."""

    NONE = faults.NONE
    TRUNCATED = faults.TRUNCATED
    TRAILING = faults.TRAILING
    BLOCK_LENGTH = 3
    VERSION = 4
    PARENT_COUNT = 5
    PARENT_ORDER = 6
    PAYLOAD_KIND = 7
    PAYLOAD_LENGTH = 8
    TAG_LENGTH = 9
    ESSENCE_KIND = 10
    INPUT_COUNT = 11
    INPUT_KIND = 12
    INPUT_INDEX = 13
    INPUT_ORDER = 14
    INPUT_DUPLICATE = 15
    OUTPUT_COUNT = 16
    OUTPUT_KIND = 17
    OUTPUT_AMOUNT = 18
    OUTPUT_ORDER = 19
    OUTPUT_DUPLICATE = 20
    OUTPUT_SUM = 21
    ESSENCE_PAYLOAD = 22
    UNLOCK_COUNT = 23
    UNLOCK_KIND = 24
    UNLOCK_REFERENCE = 25
    UNLOCK_DUPLICATE = 26
    SIGNATURE_KIND = 27
    ADDRESS_KIND = 28
    NATIVE_TOKEN_COUNT = 29
    NATIVE_TOKEN_ORDER = 30
    NATIVE_TOKEN_AMOUNT = 31
    CONDITION_COUNT = 32
    CONDITION_KIND = 33
    CONDITION_ORDER = 34
    CONDITION_MISSING = 35
    CONDITION_TIME = 36
    STORAGE_RETURN = 37
    FEATURE_COUNT = 38
    FEATURE_KIND = 39
    FEATURE_ORDER = 40
    METADATA_LENGTH = 41
    ALIAS_STATE = 42
    SELF_OWNED = 43
    TOKEN_SCHEME = 44
    TOKEN_SUPPLY = 45
    CHAIN_DUPLICATE = 46
    MILESTONE_PARENTS = 47
    MILESTONE_KIND = 48
    KEY_COUNT = 49
    KEY_ORDER = 50
    SIGNATURE_COUNT = 51
    POW_SCORE = 52
    OPTION_KIND = 53
    OPTION_ORDER = 54
    PARAMETERS = 55
    RECEIPT_KIND = 56
    RECEIPT_FUNDS = 57
    RECEIPT_ORDER = 58
    RECEIPT_DUPLICATE = 59
    RECEIPT_DEPOSIT = 60
    RECEIPT_TREASURY = 61
    TREASURY_KIND = 62
    FLAG = 63


ERRORS: dict[int, str] = {
    Fault.NONE: "",
    Fault.TRUNCATED: "truncated: a field reaches beyond the end",
    Fault.TRAILING: "trailing bytes after the last field",
    Fault.BLOCK_LENGTH: "longer than 32768 bytes",
    Fault.VERSION: "protocol version is not 2",
    Fault.PARENT_COUNT: "parents count is not 1 to 8",
    Fault.PARENT_ORDER: "parents are not sorted and unique",
    Fault.PAYLOAD_KIND: "payload type is unknown or not allowed in a block",
    Fault.PAYLOAD_LENGTH: "payload length differs from the payload's own fields",
    Fault.TAG_LENGTH: "tag (index) length is out of bounds",
    Fault.ESSENCE_KIND: "transaction essence type is unknown",
    Fault.INPUT_COUNT: "inputs count is out of bounds",
    Fault.INPUT_KIND: "input type is not UTXO",
    Fault.INPUT_INDEX: "input refers to an output index that is out of bounds",
    Fault.INPUT_ORDER: "inputs are not sorted",
    Fault.INPUT_DUPLICATE: "an input occurs twice",
    Fault.OUTPUT_COUNT: "outputs count is out of bounds",
    Fault.OUTPUT_KIND: "output type is unknown or not allowed here",
    Fault.OUTPUT_AMOUNT: "output amount is out of bounds",
    Fault.OUTPUT_ORDER: "outputs are not sorted",
    Fault.OUTPUT_DUPLICATE: "two outputs of one type share an address",
    Fault.OUTPUT_SUM: "sum of the outputs exceeds the supply",
    Fault.ESSENCE_PAYLOAD: "payload type is not allowed in a transaction essence",
    Fault.UNLOCK_COUNT: "unlocks count differs from the inputs count",
    Fault.UNLOCK_KIND: "unlock type is unknown",
    Fault.UNLOCK_REFERENCE: "unlock refers to none that it may refer to",
    Fault.UNLOCK_DUPLICATE: "a signature unlock occurs twice",
    Fault.SIGNATURE_KIND: "signature type is not Ed25519",
    Fault.ADDRESS_KIND: "address type is unknown or not allowed here",
    Fault.NATIVE_TOKEN_COUNT: "more than 64 native tokens",
    Fault.NATIVE_TOKEN_ORDER: "native tokens are not sorted and unique",
    Fault.NATIVE_TOKEN_AMOUNT: "native token amount is zero",
    Fault.CONDITION_COUNT: "unlock conditions count is out of bounds",
    Fault.CONDITION_KIND: "unlock condition type is unknown or not allowed here",
    Fault.CONDITION_ORDER: "unlock conditions are not sorted and unique",
    Fault.CONDITION_MISSING: "a required unlock condition is missing",
    Fault.CONDITION_TIME: "timelock or expiration time is zero",
    Fault.STORAGE_RETURN: "storage deposit return amount is zero or exceeds the output's amount",
    Fault.FEATURE_COUNT: "features count is out of bounds",
    Fault.FEATURE_KIND: "feature type is unknown or not allowed here",
    Fault.FEATURE_ORDER: "features are not sorted and unique",
    Fault.METADATA_LENGTH: "metadata length is out of bounds",
    Fault.ALIAS_STATE: "new alias has a state index or foundry counter",
    Fault.SELF_OWNED: "alias or NFT is owned by its own address",
    Fault.TOKEN_SCHEME: "token scheme type is unknown",
    Fault.TOKEN_SUPPLY: "minted, melted and maximum supply contradict each other",
    Fault.CHAIN_DUPLICATE: "an alias, foundry or NFT occurs twice among the outputs",
    Fault.MILESTONE_PARENTS: "milestone's parents differ from its block's",
    Fault.MILESTONE_KIND: "payload is not a milestone",
    Fault.KEY_COUNT: "milestone has no public key",
    Fault.KEY_ORDER: "milestone's public keys are not sorted and unique",
    Fault.SIGNATURE_COUNT: "milestone's signatures count is out of bounds",
    Fault.POW_SCORE: "milestone's next PoW score and its index contradict each other",
    Fault.OPTION_KIND: "milestone option type is unknown",
    Fault.OPTION_ORDER: "milestone options are not sorted and unique",
    Fault.PARAMETERS: "protocol parameters option has a target index or length out of bounds",
    Fault.RECEIPT_KIND: "milestone's inner payload is not a receipt",
    Fault.RECEIPT_FUNDS: "receipt's funds count is not 1 to 127",
    Fault.RECEIPT_ORDER: "receipt's funds are not sorted",
    Fault.RECEIPT_DUPLICATE: "receipt names a tail transaction hash twice",
    Fault.RECEIPT_DEPOSIT: "receipt's deposit is out of bounds",
    Fault.RECEIPT_TREASURY: "receipt has no treasury transaction",
    Fault.TREASURY_KIND: "treasury transaction's input or output type is wrong",
    Fault.FLAG: "a flag is neither 0 nor 1",
}


class DecodeError(ValueError):
    """Raised for a malformed structure.

    Attributes:
        fault: The code of the first rule that the structure breaks; the message is its line of text.
    """

    def __init__(self, fault: Fault) -> None:
        super().__init__(ERRORS[fault])
        self.fault = fault


class MalformedJsonError(ValueError):
    """Raised for JSON that lacks the shape of its object; the message is one line."""


@contextmanager
def json_shape(name: str) -> Iterator[None]:
    """Raise :class:`MalformedJsonError` for any error that JSON of another shape causes."""
    try:
        yield
    except _SHAPE_ERRORS as error:
        detail = f"{type(error).__name__}: {error}".replace("\n", " ")[:_MAX_DETAIL]
        raise MalformedJsonError(f"{name} in JSON is malformed ({detail})") from error
