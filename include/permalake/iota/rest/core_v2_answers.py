"""What a Stardust node's core API answers with, as OpenAPI describes it (TIP-25)."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from permalake.iota.rest.chrysalis_answers import ConflictReason, LedgerState
from permalake.iota.rest.stardust_answers import (
    Amount,
    Id32,
    MilestoneIndex,
    OutputId34,
    ProtocolParametersOption,
    StardustOutput,
    StardustReceiptAt,
    U64Text,
)
from permalake.web.answers import Count, Seconds


class LatestMilestone(TypedDict):
    """A milestone by index, time and id."""

    index: MilestoneIndex
    timestamp: Seconds
    milestoneId: Id32


class NodeStatus(TypedDict):
    """How far the network is published."""

    isHealthy: bool
    latestMilestone: LatestMilestone
    confirmedMilestone: LatestMilestone
    pruningIndex: Annotated[int, Field(ge=-1, description="The milestone before the first one held.")]


class RentStructure(TypedDict):
    """Costs of the storage of outputs (TIP-19)."""

    vByteCost: Count
    vByteFactorData: Count
    vByteFactorKey: Count


class NodeProtocol(TypedDict):
    """Parameters of the protocol."""

    version: Count
    networkName: str
    bech32Hrp: str
    minPowScore: Count
    belowMaxDepth: Count
    rentStructure: RentStructure
    tokenSupply: U64Text


class StardustBaseToken(TypedDict):
    """The network's coin."""

    name: str
    tickerSymbol: str
    unit: str
    subunit: NotRequired[str]
    decimals: Count
    useMetricPrefix: bool


class NodeMetrics(TypedDict):
    """Rates, which finished days do not have: zeros."""

    blocksPerSecond: float
    referencedBlocksPerSecond: float
    referencedRate: float


class StardustNodeInfo(TypedDict):
    """A Stardust node's information on itself (TIP-25)."""

    name: str
    version: str
    status: NodeStatus
    supportedProtocolVersions: list[int]
    protocol: NodeProtocol
    pendingProtocolParameters: list[ProtocolParametersOption]
    baseToken: StardustBaseToken
    metrics: NodeMetrics
    features: list[str]


class BlockMetadata(TypedDict):
    """How a block was referenced, and what the ledger made of it; null while no milestone references it."""

    blockId: Id32
    parents: list[Id32]
    isSolid: bool
    referencedByMilestoneIndex: MilestoneIndex | None
    milestoneIndex: NotRequired[MilestoneIndex]
    ledgerInclusionState: LedgerState | None
    conflictReason: NotRequired[ConflictReason]
    whiteFlagIndex: NotRequired[Count]


class OutputMetadata(TypedDict):
    """When an output was created and spent; the block is all zeros for an output of a receipt."""

    blockId: Id32
    transactionId: Id32
    outputIndex: Count
    isSpent: bool
    milestoneIndexSpent: NotRequired[MilestoneIndex]
    milestoneTimestampSpent: NotRequired[Seconds]
    transactionIdSpent: NotRequired[Id32]
    milestoneIndexBooked: MilestoneIndex
    milestoneTimestampBooked: Seconds
    ledgerIndex: MilestoneIndex


class OutputWithMetadata(TypedDict):
    """An output, and when it was created and spent."""

    metadata: OutputMetadata
    output: StardustOutput


class UtxoChanges(TypedDict):
    """The outputs that a milestone created and consumed, in white-flag order."""

    index: MilestoneIndex
    createdOutputs: list[OutputId34]
    consumedOutputs: list[OutputId34]


class StardustReceipts(TypedDict):
    """Receipts of migrated funds."""

    receipts: list[StardustReceiptAt]


class StardustTreasury(TypedDict):
    """The treasury; zeros where there never was one."""

    milestoneId: Id32
    amount: Amount
