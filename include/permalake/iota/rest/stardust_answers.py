"""Blocks, payloads and outputs in the JSON of Stardust nodes (TIP-25), as OpenAPI describes them.

:mod:`~permalake.iota.codec.json_stardust` writes them.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from permalake.web.answers import Count, Seconds

Id32 = Annotated[str, Field(pattern="^0x[0-9a-f]{64}$")]
"""32 bytes as hex with 0x."""
OutputId34 = Annotated[str, Field(pattern="^0x[0-9a-f]{68}$")]
"""Transaction id, and index as u16 LE."""
Hex0x = Annotated[str, Field(pattern="^0x([0-9a-f]{2})*$")]
U64Text = Annotated[str, Field(pattern="^[0-9]{1,20}$", description="A u64 as decimal text.")]
U256Hex = Annotated[str, Field(pattern="^0x[0-9a-f]{1,64}$", description="A u256 as hex, no leading zeros.")]
Amount = Annotated[str, Field(pattern="^[0-9]{1,20}$", description="Base tokens, as decimal text.")]
MilestoneIndex = Annotated[int, Field(ge=0, le=2**32 - 1, description="Index of a milestone.")]


class StardustEd25519Address(TypedDict):
    """An Ed25519 address."""

    type: Literal[0]
    pubKeyHash: Id32


class StardustAliasAddress(TypedDict):
    """The address of an alias."""

    type: Literal[8]
    aliasId: Id32


class StardustNftAddress(TypedDict):
    """The address of an NFT."""

    type: Literal[16]
    nftId: Id32


StardustAnyAddress = StardustEd25519Address | StardustAliasAddress | StardustNftAddress


class StardustAddressCondition(TypedDict):
    """Who may unlock an output: 0 its owner, 4 the state controller, 5 the governor, 6 a foundry's alias."""

    type: Literal[0, 4, 5, 6]
    address: StardustAnyAddress


class StorageReturnCondition(TypedDict):
    """Storage deposit to give back."""

    type: Literal[1]
    returnAddress: StardustAnyAddress
    amount: Amount


class TimelockCondition(TypedDict):
    """Time until which an output is locked."""

    type: Literal[2]
    unixTime: Seconds


class ExpirationCondition(TypedDict):
    """Time from which on an output belongs to its return address."""

    type: Literal[3]
    returnAddress: StardustAnyAddress
    unixTime: Seconds


StardustCondition = (
    StardustAddressCondition | StorageReturnCondition | TimelockCondition | ExpirationCondition
)


class StardustAddressFeature(TypedDict):
    """Sender (0) or issuer (1)."""

    type: Literal[0, 1]
    address: StardustAnyAddress


class MetadataFeature(TypedDict):
    """Metadata."""

    type: Literal[2]
    data: Hex0x


class TagFeature(TypedDict):
    """Tag."""

    type: Literal[3]
    tag: Hex0x


StardustFeature = StardustAddressFeature | MetadataFeature | TagFeature


class NativeTokenAmount(TypedDict):
    """An amount of a native token."""

    id: Annotated[str, Field(pattern="^0x[0-9a-f]{76}$")]
    amount: U256Hex


class StardustTreasuryOutput(TypedDict):
    """Funds of the old network that are not migrated yet."""

    type: Literal[2]
    amount: Amount


class _OwnedOutput(TypedDict):
    """What all outputs with an owner have (TIP-18)."""

    amount: Amount
    nativeTokens: NotRequired[list[NativeTokenAmount]]
    unlockConditions: list[StardustCondition]
    features: NotRequired[list[StardustFeature]]
    immutableFeatures: NotRequired[list[StardustFeature]]


class BasicOutput(_OwnedOutput):
    """A basic output (TIP-18)."""

    type: Literal[3]


class AliasOutput(_OwnedOutput):
    """A state of an alias (TIP-18)."""

    type: Literal[4]
    aliasId: Id32
    stateIndex: Count
    stateMetadata: NotRequired[Hex0x]
    foundryCounter: Count


class StardustTokenScheme(TypedDict):
    """Supply of a native token."""

    type: Literal[0]
    mintedTokens: U256Hex
    meltedTokens: U256Hex
    maximumSupply: U256Hex


class FoundryOutput(_OwnedOutput):
    """A state of a foundry (TIP-18)."""

    type: Literal[5]
    serialNumber: Count
    tokenScheme: StardustTokenScheme


class NftOutput(_OwnedOutput):
    """A state of an NFT (TIP-18)."""

    type: Literal[6]
    nftId: Id32


StardustOutput = StardustTreasuryOutput | BasicOutput | AliasOutput | FoundryOutput | NftOutput


class StardustSignature(TypedDict):
    """An Ed25519 signature with its key."""

    type: Literal[0]
    publicKey: Id32
    signature: Annotated[str, Field(pattern="^0x[0-9a-f]{128}$")]


class StardustSignatureUnlock(TypedDict):
    """A signature that unlocks inputs."""

    type: Literal[0]
    signature: StardustSignature


class StardustReferenceUnlock(TypedDict):
    """A reference to the unlock of another input: 1 a signature, 2 an alias, 3 an NFT."""

    type: Literal[1, 2, 3]
    reference: Count


class StardustInput(TypedDict):
    """An output that a transaction spends."""

    type: Literal[0]
    transactionId: Id32
    transactionOutputIndex: Count


class TaggedDataPayload(TypedDict):
    """Data with a tag (TIP-23)."""

    type: Literal[5]
    tag: NotRequired[Hex0x]
    data: NotRequired[Hex0x]


class StardustEssence(TypedDict):
    """What a transaction's signatures cover."""

    type: Literal[1]
    networkId: U64Text
    inputs: list[StardustInput]
    inputsCommitment: Id32
    outputs: list[StardustOutput]
    payload: NotRequired[TaggedDataPayload]


class StardustTransaction(TypedDict):
    """A transaction (TIP-20)."""

    type: Literal[6]
    essence: StardustEssence
    unlocks: list[StardustSignatureUnlock | StardustReferenceUnlock]


class StardustMigratedFunds(TypedDict):
    """Funds that were migrated to an address; the deposit in base tokens."""

    tailTransactionHash: Hex0x
    address: StardustAnyAddress
    deposit: Count


class StardustTreasuryInput(TypedDict):
    """The milestone whose treasury output is spent."""

    type: Literal[1]
    milestoneId: Id32


class StardustTreasuryTransaction(TypedDict):
    """What a receipt takes from the treasury."""

    type: Literal[4]
    input: StardustTreasuryInput
    output: StardustTreasuryOutput


class StardustReceipt(TypedDict):
    """A receipt of migrated funds, a milestone's option."""

    type: Literal[0]
    migratedAt: MilestoneIndex
    final: bool
    funds: list[StardustMigratedFunds]
    transaction: StardustTreasuryTransaction


class ProtocolParametersOption(TypedDict):
    """Protocol parameters to come, a milestone's option."""

    type: Literal[1]
    targetMilestoneIndex: MilestoneIndex
    protocolVersion: Count
    params: Hex0x


class StardustMilestone(TypedDict):
    """A milestone (TIP-29)."""

    type: Literal[7]
    index: MilestoneIndex
    timestamp: Seconds
    protocolVersion: Count
    previousMilestoneId: Id32
    parents: list[Id32]
    inclusionMerkleRoot: Id32
    appliedMerkleRoot: Id32
    metadata: NotRequired[Hex0x]
    options: NotRequired[list[StardustReceipt | ProtocolParametersOption]]
    signatures: list[StardustSignature]


class StardustBlock(TypedDict):
    """A block (TIP-24)."""

    protocolVersion: Literal[2]
    parents: list[Id32]
    payload: NotRequired[TaggedDataPayload | StardustTransaction | StardustMilestone]
    nonce: U64Text


class StardustReceiptAt(TypedDict):
    """A receipt with the milestone that holds it."""

    receipt: StardustReceipt
    milestoneIndex: MilestoneIndex
