"""What Wormholescan's routes answer with, as OpenAPI describes it; see :mod:`permalake.web.answers`."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, NotRequired, TypeVar

from pydantic import Field
from typing_extensions import TypedDict

from permalake.web.answers import Base64, Bytes32, Count, HexText, UtcTime

T = TypeVar("T")
ChainId = Annotated[int, Field(ge=0, le=65535, description="Wormhole's id of a chain.")]
MessageName = Annotated[
    str,
    Field(pattern="^[0-9]{1,5}/[0-9a-f]{64}/[0-9]{1,20}$", description="Chain, emitter and sequence."),
]
Word0x = Annotated[str, Field(pattern="^0x[0-9a-f]{64}$", description="Address of 32 bytes as hex.")]
UsdText = Annotated[str, Field(pattern=r"^-?[0-9]+(\.[0-9]+)?$", description="US dollars, as decimal text.")]
NumberText = Annotated[str, Field(pattern=r"^-?[0-9]+(\.[0-9]+)?$", description="A number as decimal text.")]
TransactionName = Annotated[str, Field(description="Transaction on its chain; empty where it is unknown.")]
NativeAddress = Annotated[str, Field(description="Address in its chain's form; empty where it is unknown.")]


class NextPage(TypedDict):
    """Always empty: pages are asked for by number."""

    next: str


class WithPagination(TypedDict, Generic[T]):
    """An answer below ``data``."""

    data: T
    pagination: NextPage


class TransferPayload(TypedDict):
    """A transfer of the token bridge; 3 has a payload for the receiving contract."""

    payloadType: Literal[1, 3]
    amount: NumberText
    tokenAddress: Word0x
    tokenChain: ChainId
    toAddress: Word0x
    toChain: ChainId
    fee: str
    fromAddress: NotRequired[Word0x]
    payload: NotRequired[HexText]


class AttestationPayload(TypedDict):
    """An attestation of a token."""

    payloadType: Literal[2]
    tokenAddress: Word0x
    tokenChain: ChainId
    decimals: Count
    symbol: str
    name: str


class NftPayload(TypedDict):
    """A transfer of the NFT bridge."""

    payloadType: Literal[1]
    tokenAddress: Word0x
    tokenChain: ChainId
    symbol: str
    name: str
    tokenId: NumberText
    uri: str
    toAddress: Word0x
    toChain: ChainId


BridgePayload = TransferPayload | AttestationPayload | NftPayload


class VaaDocument(TypedDict):
    """A VAA; ``digest`` is the single Keccak-256 of its body, all times are that of its body."""

    sequence: Count
    id: MessageName
    version: Count
    emitterChain: ChainId
    emitterAddr: Bytes32
    emitterNativeAddr: NotRequired[str]
    guardianSetIndex: Count
    vaa: Base64
    timestamp: UtcTime
    updatedAt: UtcTime
    indexedAt: UtcTime
    digest: Bytes32
    isDuplicated: bool
    txHash: NotRequired[str]
    payload: NotRequired[BridgePayload]


class ChainCount(TypedDict):
    """The VAAs of a chain."""

    chainId: ChainId
    count: Count


class SignedVaa(TypedDict):
    """The bytes of a VAA."""

    vaaBytes: Base64


class EnqueuedState(TypedDict):
    """Whether the governor holds a VAA: not one that is published."""

    isEnqueued: bool


class EmitterAddress(TypedDict):
    """The emitter of a message."""

    hex: Bytes32
    native: NativeAddress


class OperationVaa(TypedDict):
    """The VAA of an operation."""

    raw: Base64
    guardianSetIndex: Count
    isDuplicated: bool


class OperationProperties(TypedDict):
    """Who sent what to whom; empty text and chain 0 where it is unknown."""

    appIds: list[str]
    fromChain: ChainId
    fromAddress: str
    toChain: ChainId
    toAddress: str
    tokenChain: ChainId
    tokenAddress: str
    amount: str
    feeAddress: str
    feeChain: ChainId
    fee: str
    normalizedDecimals: NotRequired[int]


class OperationContent(TypedDict):
    """The payload of a bridge, and who sent what to whom."""

    payload: NotRequired[BridgePayload]
    standarizedProperties: OperationProperties


class TransactionHash(TypedDict):
    """A transaction."""

    txHash: TransactionName


SourceChain = TypedDict(
    "SourceChain",
    {
        "chainId": ChainId,
        "timestamp": UtcTime,
        "transaction": TransactionHash,
        "from": NativeAddress,
        "status": str,
    },
)
SourceChain.__doc__ = """The transaction that emitted a message."""
TargetChain = TypedDict(
    "TargetChain",
    {
        "chainId": ChainId,
        "transaction": TransactionHash,
        "status": str,
        "from": NotRequired[NativeAddress],
        "fee": NotRequired[str],
        "timestamp": NotRequired[UtcTime],
    },
)
TargetChain.__doc__ = """The transaction that redeemed a transfer."""


class OperationValue(TypedDict):
    """Symbol, amount and value of what was sent, as far as they are known."""

    symbol: NotRequired[str]
    tokenAmount: NotRequired[NumberText]
    usdAmount: NotRequired[UsdText]


class Operation(TypedDict):
    """A message with its transactions; without ``targetChain`` it is in flight, or nobody reported it."""

    id: MessageName
    emitterChain: ChainId
    emitterAddress: EmitterAddress
    sequence: NumberText
    vaa: OperationVaa
    content: OperationContent
    sourceChain: SourceChain
    targetChain: NotRequired[TargetChain]
    data: NotRequired[OperationValue]


class Operations(TypedDict):
    """A page of operations."""

    operations: list[Operation]


OriginTransaction = TypedDict(
    "OriginTransaction", {"txHash": TransactionName, "from": NativeAddress, "status": str}
)
OriginTransaction.__doc__ = """The transaction that emitted a message."""
DestinationTransaction = TypedDict(
    "DestinationTransaction",
    {
        "chainId": ChainId,
        "status": str,
        "txHash": TransactionName,
        "from": NotRequired[NativeAddress],
        "fee": NotRequired[str],
        "timestamp": NotRequired[UtcTime],
    },
)
DestinationTransaction.__doc__ = """The transaction that redeemed a transfer."""


class GlobalTransaction(TypedDict):
    """The transactions of a message on both chains."""

    id: MessageName
    originTx: OriginTransaction
    destinationTx: NotRequired[DestinationTransaction]


class WormholeTransaction(TypedDict):
    """A message as a transaction, with its value as far as it is known."""

    id: MessageName
    timestamp: UtcTime
    txHash: TransactionName
    emitterChain: ChainId
    emitterAddress: Bytes32
    emitterNativeAddress: NativeAddress
    symbol: NotRequired[str]
    tokenAmount: NotRequired[NumberText]
    usdAmount: NotRequired[UsdText]
    standardizedProperties: OperationProperties
    globalTx: GlobalTransaction
    payload: NotRequired[BridgePayload]


class WormholeTransactions(TypedDict):
    """A page of transactions."""

    transactions: list[WormholeTransaction]


class Observation(TypedDict):
    """A guardian's signature of a message; its time is the VAA's where nobody recorded it."""

    sequence: Count
    id: str
    emitterChain: ChainId
    emitterAddr: Bytes32
    hash: Base64
    txHash: TransactionName
    guardianAddr: Annotated[str, Field(pattern="^0x[0-9a-f]{40}$")]
    signature: Base64
    updatedAt: UtcTime
    indexedAt: UtcTime


class MessagesOfTime(TypedDict):
    """Messages of an hour or day."""

    time: UtcTime
    count: Count


Scorecards = TypedDict(
    "Scorecards",
    {
        "24h_messages": NumberText,
        "total_messages": NumberText,
        "total_tx_count": NumberText,
        "tvl": UsdText,
        "total_volume": UsdText,
        "24h_volume": UsdText,
        "7d_volume": UsdText,
        "30d_volume": UsdText,
        "valued": Annotated[int, Field(ge=0, description="Transfers that total_volume covers.")],
        "of": Annotated[int, Field(ge=0, description="All transfers.")],
        "is_synthetic": NotRequired[
            Annotated[bool, Field(description="Whether the figures are made up: no real day is published.")]
        ],
    },
)
Scorecards.__doc__ = """The main figures; times end with the last published real day."""


class ChainShare(TypedDict):
    """A chain's part of what was sent: USD, or a number of transfers."""

    chain: ChainId
    volume: NumberText
    percentage: float


class SendingChain(ChainShare):
    """What a chain sent, and where to."""

    destinations: list[ChainShare]


class ChainActivity(TypedDict):
    """What each chain sent, largest first."""

    txs: list[SendingChain]


class TopAsset(TypedDict):
    """A token that a chain sent, with its value."""

    emitterChain: ChainId
    symbol: str
    tokenChain: ChainId
    tokenAddress: str
    volume: UsdText


class TopAssets(TypedDict):
    """The tokens with the highest value sent."""

    assets: list[TopAsset]


class ChainPair(TypedDict):
    """Transfers between two chains."""

    emitterChain: ChainId
    destinationChain: ChainId
    numberOfTransfers: Count


class ChainPairs(TypedDict):
    """The pairs of chains with the most transfers."""

    chainPairs: list[ChainPair]


class TokenFacts(TypedDict):
    """A token; empty text where it is unknown."""

    symbol: str
    coingeckoId: str
    decimals: int | None


class GuardianSet(TypedDict):
    """The addresses of guardians."""

    index: Count
    addresses: list[Annotated[str, Field(pattern="^0x[0-9a-f]{40}$")]]


class CurrentGuardianSet(TypedDict):
    """The newest guardian set that is known."""

    guardianSet: GuardianSet
