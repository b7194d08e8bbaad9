"""Messages, payloads and outputs in the JSON of Chrysalis nodes (TIP-13), as OpenAPI describes them.

:mod:`~permalake.iota.codec.json_chrysalis` writes them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from permalake.iota.rest.stardust_answers import MilestoneIndex, U64Text
from permalake.web.answers import Bytes32, Count, HexText, Seconds

BareOutputId = Annotated[str, Field(pattern="^[0-9a-f]{68}$")]
"""Transaction id, and index as u16 LE."""
Signature64 = Annotated[str, Field(pattern="^[0-9a-f]{128}$")]
BaseTokens = Annotated[int, Field(ge=0, description="Base tokens.", json_schema_extra={"format": "int64"})]
AddressType = Annotated[
    Literal[0, 8, 16], Field(description="Kind of an address: 0 Ed25519, 8 alias, 16 NFT.")
]
LedgerState = Annotated[
    Literal["conflicting", "included", "noTransaction"],
    Field(description="What the ledger made of a message: included, conflicting, or without a transaction."),
]
ConflictReason = Annotated[int, Field(ge=0, le=255, description="Code of the reason of a conflict.")]


class ChrysalisAddress(TypedDict):
    """An Ed25519 address."""

    type: Literal[0]
    address: Bytes32


class ChrysalisOutput(TypedDict):
    """An output: 0 of one signature, 1 a dust allowance."""

    type: Literal[0, 1]
    address: ChrysalisAddress
    amount: BaseTokens


class ChrysalisTreasuryOutput(TypedDict):
    """Funds of the old network that are not migrated yet."""

    type: Literal[2]
    amount: BaseTokens


class ChrysalisSignature(TypedDict):
    """An Ed25519 signature with its key."""

    type: Literal[0]
    publicKey: Bytes32
    signature: Signature64


class ChrysalisSignatureUnlock(TypedDict):
    """A signature that unlocks inputs."""

    type: Literal[0]
    signature: ChrysalisSignature


class ChrysalisReferenceUnlock(TypedDict):
    """A reference to the unlock of another input."""

    type: Literal[1]
    reference: Count


class ChrysalisInput(TypedDict):
    """An output that a transaction spends."""

    type: Literal[0]
    transactionId: Bytes32
    transactionOutputIndex: Count


class IndexationPayload(TypedDict):
    """Data with an index."""

    type: Literal[2]
    index: HexText
    data: HexText


class ChrysalisEssence(TypedDict):
    """What a transaction's signatures cover."""

    type: Literal[0]
    inputs: list[ChrysalisInput]
    outputs: list[ChrysalisOutput]
    payload: IndexationPayload | None


class ChrysalisTransaction(TypedDict):
    """A transaction (TIP-7)."""

    type: Literal[0]
    essence: ChrysalisEssence
    unlockBlocks: list[ChrysalisSignatureUnlock | ChrysalisReferenceUnlock]


class ChrysalisMigratedFunds(TypedDict):
    """Funds that were migrated to an address."""

    tailTransactionHash: HexText
    address: ChrysalisAddress
    deposit: BaseTokens


class ChrysalisTreasuryInput(TypedDict):
    """The milestone whose treasury output is spent."""

    type: Literal[1]
    milestoneId: Bytes32


class ChrysalisTreasuryTransaction(TypedDict):
    """What a receipt takes from the treasury."""

    type: Literal[4]
    input: ChrysalisTreasuryInput
    output: ChrysalisTreasuryOutput


class ChrysalisReceipt(TypedDict):
    """A receipt of migrated funds (TIP-17)."""

    type: Literal[3]
    migratedAt: MilestoneIndex
    final: bool
    funds: list[ChrysalisMigratedFunds]
    transaction: ChrysalisTreasuryTransaction


class ChrysalisMilestone(TypedDict):
    """A milestone (TIP-8)."""

    type: Literal[1]
    index: MilestoneIndex
    timestamp: Seconds
    parentMessageIds: list[Bytes32]
    inclusionMerkleProof: Bytes32
    nextPoWScore: Count
    nextPoWScoreMilestoneIndex: MilestoneIndex
    publicKeys: list[Bytes32]
    receipt: ChrysalisReceipt | None
    signatures: list[Signature64]


class ChrysalisMessage(TypedDict):
    """A message (TIP-6)."""

    networkId: U64Text
    parentMessageIds: list[Bytes32]
    payload: IndexationPayload | ChrysalisMilestone | ChrysalisTransaction | None
    nonce: U64Text


class ChrysalisReceiptAt(TypedDict):
    """A receipt with the milestone that holds it."""

    receipt: ChrysalisReceipt
    milestoneIndex: MilestoneIndex
