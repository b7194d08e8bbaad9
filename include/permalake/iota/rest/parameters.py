"""Parameters that routes of both protocols take."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import Field

from permalake.config.networks import NetworkSettings
from permalake.iota.codec.bech32 import decode_address
from permalake.web.paging import LIMIT, ListPage, PageQuery, Text, Unsigned
from permalake.web.parameter_types import hex_schema
from permalake.web.problems import bad_request
from permalake.web.state import RequestLake

MAX_INDEX = 2**32 - 1
BECH32_SCHEMA: dict[str, Any] = {"pattern": "^[a-z]{1,10}1[02-9ac-hj-np-z]{6,80}$"}
"""What OpenAPI says of an address; its checksum no pattern can check."""

BlockId = Annotated[
    str,
    Path(
        alias="blockId",
        description="Id of a block: 32 bytes as hex.",
        examples=["0xa62cbf7fe64933c8aa1525971bb652b61c70e59ad319542f91346568e6478eff"],
        json_schema_extra=hex_schema(32),
    ),
]
MessageId = Annotated[
    str,
    Path(
        alias="messageId",
        description="Id of a message: 32 bytes as hex.",
        examples=["e989ee85e9b9d8cd3b24603e46ee2bcad3d605aec55d6e4c08d592ce7d793e44"],
        json_schema_extra=hex_schema(32),
    ),
]
TransactionId = Annotated[
    str,
    Path(
        alias="transactionId",
        description="Id of a transaction: 32 bytes as hex.",
        examples=["05136f7e6ceeff97d833baca0fd7a0bcfb7d33b1e60914460f51cabdd3b0187f"],
        json_schema_extra=hex_schema(32),
    ),
]
OutputId = Annotated[
    str,
    Path(
        alias="outputId",
        description="Id of an output: transaction id and index (u16 little-endian), 34 bytes as hex.",
        examples=["05136f7e6ceeff97d833baca0fd7a0bcfb7d33b1e60914460f51cabdd3b0187f0000"],
        json_schema_extra=hex_schema(34),
    ),
]
StardustAddress = Annotated[
    str,
    Path(
        description="Address in bech32.",
        examples=["smr1qrfnryd6fegg8wapeuj32l5kwyfr653ejvjsa6a3hjrjv3jdcjmhvg3a3cg"],
        json_schema_extra=BECH32_SCHEMA,
    ),
]
MilestoneId = Annotated[
    str,
    Path(
        alias="milestoneId",
        description="Id of a milestone: 32 bytes as hex.",
        examples=[f"0x{'0' * 64}"],
        json_schema_extra=hex_schema(32),
    ),
]
Index = Annotated[int, Path(ge=0, le=MAX_INDEX, description="Index of a milestone.", examples=[17339])]


def milestone_index(text: str) -> int:
    """Return the index of a milestone that a path names in plain digits; 400 for any other text."""
    if not text.isascii() or not text.isdigit() or len(text) > len(str(MAX_INDEX)):
        raise bad_request("index: not the index of a milestone")
    return int(text)


class NodePage(PageQuery):
    """Pages of lists on Chrysalis; chronicle.rs calls the parameters ``page_size`` and ``state``."""

    other_size: int | None = Field(None, ge=1, alias="page_size", description=f"As pageSize. {LIMIT}")
    other_cursor: str | None = Field(None, max_length=2048, alias="state", description="As cursor.")

    def asked(self, lake: RequestLake, filters: dict[str, object]) -> ListPage:
        """Return the page that is asked for, of a list ordered by milestone and an id."""
        query = PageQuery(
            pageSize=self.page_size or self.other_size,
            cursor=self.cursor or self.other_cursor,
            sort=self.sort,
        )
        return lake.page(query, filters, positions=(Unsigned, Text))

    @property
    def newest(self) -> bool:
        """Whether the newest comes first."""
        return self.sort == "newest"


def bech32_address(text: str, network: NetworkSettings) -> tuple[int, bytes]:
    """Return type and 32 bytes of an address of a network; 400 for another network's prefix."""
    try:
        hrp, kind, value = decode_address(text)
    except ValueError:
        raise bad_request("address: not a bech32 address") from None
    if hrp != network.bech32_hrp:
        raise bad_request(f"address: of another network, this one's begin with {network.bech32_hrp}1")
    return kind, value
