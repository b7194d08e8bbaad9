"""What the event database's routes answer with, as OpenAPI describes it; see :mod:`permalake.web.answers`.

Chains are keys as decimal text, days as ISO dates, and ``*`` stands for all; windows that a request does not
ask for are empty.
"""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict, get_type_hints

from permalake.web.answers import Base64, Bytes32, Count, UtcTime
from permalake.web.row_types import members_type
from permalake.wormhole.events.families import FAMILIES

BySymbol = dict[str, float]
"""USD by symbol."""
ByTarget = dict[str, BySymbol]
"""USD by receiving chain and symbol."""
BySource = dict[str, ByTarget]
"""USD by sending chain, receiving chain and symbol."""
ByReceiver = dict[str, dict[str, float]]
"""USD by chain and receiver."""
Counts = dict[str, int]
"""Numbers by chain, by chain:address, or of all."""


class NotionalTransferred(TypedDict):
    """USD by sending chain, receiving chain and symbol: of the last day, of the period, and of its days."""

    Last24Hours: BySource
    WithinPeriod: BySource
    PeriodDurationDays: Count
    Daily: dict[str, BySource]


class NotionalTransferredTo(TypedDict):
    """USD by receiving chain and symbol: of the last day, of the period, and of its days."""

    Last24Hours: ByTarget
    WithinPeriod: ByTarget
    PeriodDurationDays: Count
    Daily: dict[str, ByTarget]


class NotionalTransferredFrom(TypedDict):
    """USD by sending chain of each day, and of all."""

    Daily: dict[str, BySymbol]
    Total: float


class AddressesTransferredTo(TypedDict):
    """Receivers by chain: how many, and what each got in USD."""

    Last24HoursAmounts: ByReceiver
    Last24HoursCounts: Counts
    WithinPeriodAmounts: ByReceiver
    WithinPeriodCounts: Counts
    PeriodDurationDays: Count
    DailyAmounts: dict[str, ByReceiver]
    DailyCounts: dict[str, Counts]


class LockedAsset(TypedDict):
    """A token that the bridges hold, null what is unknown of it; sums have symbol, name or address, and USD.

    A sum leaves out tokens without a value, and is null where none has one.
    """

    Symbol: str
    Notional: float | None
    Name: NotRequired[str]
    Address: NotRequired[str]
    CoinGeckoId: NotRequired[str]
    Amount: NotRequired[float | None]
    TokenPrice: NotRequired[float | None]
    TokenDecimals: NotRequired[int | None]


LockedAssets = dict[str, dict[str, LockedAsset]]
"""Assets by chain and address of the token."""


class NotionalTvl(TypedDict):
    """What the bridges hold, and by how much it differs from the published day before."""

    Last24HoursChange: LockedAssets
    AllTime: LockedAssets


class NotionalTvlCumulative(TypedDict):
    """What the bridges held at the end of each day, as far as it is published."""

    DailyLocked: dict[str, LockedAssets]


class MessageTotals(TypedDict):
    """Numbers of messages: of the last day, of the period, and of its days."""

    LastDayCount: Counts
    TotalCount: Counts
    TotalCountDurationDays: Count
    DailyTotals: dict[str, Counts]


class DailyTotals(TypedDict):
    """Numbers of messages of each day."""

    DailyTotals: dict[str, Counts]


class EdbTransferDetails(TypedDict):
    """What is known of a transfer; empty text where it is unknown, and value 0."""

    Amount: str
    NotionalUSD: str
    OriginSymbol: str
    OriginName: str
    OriginTokenAddress: str


class EdbMessage(TypedDict):
    """A message; its chain by name."""

    EmitterChain: str
    EmitterAddress: Bytes32
    Sequence: str
    InitiatingTxID: str
    Payload: Base64
    SignedVAABytes: Base64
    QuorumTime: UtcTime
    TransferDetails: NotRequired[EdbTransferDetails]


NESTED_FAMILIES = ("TokenTransferPayload", "AssetMetaPayload", "NFTTransferPayload", "ChainDetails")
"""Families whose cells a whole row has."""
EdbRow = members_type(
    "EdbRow",
    "A message with the cells of its families; those that are null are absent.",
    {**get_type_hints(EdbMessage, include_extras=True), "SignedVAA": Base64},
    {
        family.name: members_type(
            f"{family.name}Cells", family.table.doc, {}, dict.fromkeys(family.cells, str)
        )
        for family in FAMILIES
        if family.name in NESTED_FAMILIES
    },
)
