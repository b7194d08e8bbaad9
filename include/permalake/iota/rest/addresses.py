"""Addresses in Chrysalis' dialect (TIP-13, inx-api-core-v1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, NotRequired

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from permalake.iota.codec.bech32 import encode_address
from permalake.iota.rest import ledger
from permalake.iota.rest.address_history import AddressHistory, history_of
from permalake.iota.rest.chrysalis_answers import AddressType, BareOutputId, BaseTokens
from permalake.iota.rest.holdings import since
from permalake.iota.rest.parameters import BECH32_SCHEMA, NodePage, bech32_address
from permalake.iota.rest.stardust_answers import MilestoneIndex
from permalake.web.answers import Bytes32, Count, Cursor, Enveloped, PageSize, answer
from permalake.web.paging import ListPage, Nothing
from permalake.web.parameter_types import hex_id, hex_schema
from permalake.web.problems import documented
from permalake.web.state import PublishedLake, RequestLake

router = APIRouter(tags=["addresses"], responses=documented())

DUST = 1_000_000
_MOST_AT_ONCE = 20_000
"""An output below it is dust (TIP-15)."""
DUST_DIVISOR, MAX_DUST = 100_000, 100

Bech32 = Annotated[
    str,
    Path(
        alias="bech32",
        description="Address as bech32.",
        examples=["iota1qpqzgvcehafmlxh87zrf9w8ck8q2kw5070ztf68ylhzk89en9a4fy5jqrg8"],
        json_schema_extra=BECH32_SCHEMA,
    ),
]
Ed25519 = Annotated[
    str,
    Path(
        alias="hex",
        description="Ed25519 address: 32 bytes as hex.",
        examples=["4024331" + "9" * 57],
        json_schema_extra=hex_schema(32),
    ),
]
Target = tuple[str, str]
"""An address in bech32 and as hex of its 32 bytes."""


class OutputsQuery(NodePage):
    """Query of an address's outputs."""

    type: int | None = Field(None, ge=0, le=1, description="0: signature-locked single, 1: dust allowance.")
    include_spent: bool = Field(False, alias="include-spent", description="Spent outputs too.")


class AddressBalance(TypedDict):
    """What an address holds, in base tokens: at least that much, since a milestone.

    ``spentFromBefore`` it held before that milestone.
    """

    addressType: AddressType
    address: Bytes32
    balance: BaseTokens
    dustAllowed: bool
    spentFromBefore: BaseTokens
    sinceMilestone: MilestoneIndex
    ledgerIndex: MilestoneIndex


class AddressOutputs(TypedDict):
    """A page of the outputs of an address."""

    addressType: AddressType
    address: Bytes32
    maxResults: PageSize
    count: Count
    outputIds: list[BareOutputId]
    ledgerIndex: MilestoneIndex
    cursor: NotRequired[Cursor]


_HISTORY = answer(Enveloped[AddressHistory], "text/csv")


@router.get("/addresses/ed25519/{hex}", responses=answer(Enveloped[AddressBalance]))
def ed25519(lake: PublishedLake, value: Ed25519, query: Nothing) -> Response:  # noqa: ARG001
    """Return the balance of an Ed25519 address."""
    return _balance(lake, _of_hex(lake, value))


@router.get("/addresses/ed25519/{hex}/outputs", responses=answer(Enveloped[AddressOutputs]))
def ed25519_outputs(lake: PublishedLake, value: Ed25519, query: Annotated[OutputsQuery, Query()]) -> Response:
    """List the outputs of an Ed25519 address."""
    return _outputs(lake, _of_hex(lake, value), query)


@router.get("/addresses/ed25519/{hex}/tx-history", responses=_HISTORY)
def ed25519_history(
    request: Request, lake: PublishedLake, value: Ed25519, query: Annotated[NodePage, Query()]
) -> Response:
    """List the transactions of an Ed25519 address, conflicting ones too."""
    return history_of(request, lake, _of_hex(lake, value), query)


@router.get("/addresses/{bech32}", responses=answer(Enveloped[AddressBalance]))
def address(lake: PublishedLake, text: Bech32, query: Nothing) -> Response:  # noqa: ARG001
    """Return the balance of an address; one that was never used has 0."""
    return _balance(lake, _of_bech32(lake, text))


@router.get("/addresses/{bech32}/outputs", responses=answer(Enveloped[AddressOutputs]))
def outputs(lake: PublishedLake, text: Bech32, query: Annotated[OutputsQuery, Query()]) -> Response:
    """List the outputs of an address, only unspent ones by default."""
    return _outputs(lake, _of_bech32(lake, text), query)


@router.get("/addresses/{bech32}/tx-history", responses=_HISTORY)
def history(
    request: Request, lake: PublishedLake, text: Bech32, query: Annotated[NodePage, Query()]
) -> Response:
    """List the transactions that moved or tried to move funds of an address, and its migrations."""
    return history_of(request, lake, _of_bech32(lake, text), query)


def _of_hex(lake: RequestLake, value: str) -> Target:
    bare = hex_id(value, "address")
    return encode_address(lake.settings.network(lake.network).bech32_hrp, 0, bytes.fromhex(bare)), bare


def _of_bech32(lake: RequestLake, text: str) -> Target:
    _, value = bech32_address(text, lake.settings.network(lake.network))
    return text.lower(), value.hex()


def _balance(lake: RequestLake, target: Target) -> Response:
    last = ledger.ledger_index(lake)
    row = lake.rows(
        "SELECT coalesce(sum(amount), 0) AS balance, "
        "coalesce(sum(amount) FILTER (output_type = 1), 0) AS allowance, "
        "count(*) FILTER (output_type = 0 AND amount < $dust) AS dust, "
        "(SELECT coalesce(sum(amount), 0) FROM consumed_outputs AS consumed WHERE address = $address AND "
        "milestone_index <= $last AND kind = 'legacy' AND NOT EXISTS (SELECT 1 FROM legacy_outputs AS made "
        "WHERE made.output_id = consumed.output_id)) AS before FROM legacy_outputs AS created "
        "WHERE address = $address AND milestone_index <= $last AND NOT EXISTS (SELECT 1 FROM "
        "consumed_outputs AS consumed WHERE consumed.address = $address AND "
        "consumed.output_id = created.output_id AND consumed.milestone_index <= $last)",
        {"address": target[0], "last": last, "dust": DUST},
        legacy_outputs=lake.find("legacy_outputs", "address", target[0]),
        consumed_outputs=lake.find("consumed_outputs", "address", target[0]),
    )[0]
    allowed = min(int(row["allowance"]) // DUST_DIVISOR, MAX_DUST)
    data = {
        "addressType": 0,
        "address": target[1],
        "balance": int(row["balance"]),
        "dustAllowed": allowed > row["dust"],
        "spentFromBefore": int(row["before"]),
        "sinceMilestone": since(lake),
        "ledgerIndex": last,
    }
    return lake.current({"data": data})


def _outputs(lake: RequestLake, target: Target, query: OutputsQuery) -> Response:
    page = query.asked(lake, {"address": target[1], "type": query.type, "spent": query.include_spent})
    of_type = {} if query.type is None else {"output_type": query.type}
    last, columns = ledger.ledger_index(lake), ("output_type",)
    question = ledger.LedgerList(
        "legacy_outputs", "address", target[0], "output_id", query.newest, columns, of_type, last
    )
    rows = unspent_or_all(
        lake, page, lambda part: ledger.listed(lake, question, part), include_spent=query.include_spent
    )
    shown, cursor = page.cut(rows, question.place)
    data = {
        "addressType": 0,
        "address": target[1],
        "maxResults": page.size,
        "count": len(shown),
        "outputIds": [row["output_id"] for row in shown],
        "ledgerIndex": last,
        **({"cursor": cursor} if cursor else {}),
    }
    return lake.current({"data": data})


def unspent_or_all(lake: RequestLake, page: ListPage, read: Any, *, include_spent: bool) -> list[ledger.Row]:
    """Return a page of outputs and one more, spent ones left out on demand.

    ``read`` gives the rows behind a page's position, one more than its size if there are more.
    """
    kept: list[ledger.Row] = []
    part = page
    while True:
        rows = read(part)
        whole = len(rows) <= part.size
        used = {} if include_spent else ledger.spent(lake, [row["output_id"] for row in rows])
        kept += [row for row in (rows if whole else rows[:-1]) if row["output_id"] not in used]
        if whole or len(kept) > page.size:
            return kept[: page.size + 1]
        # Where most are spent, a page that stays small would ask for each of them.
        part = replace(
            part.behind((rows[-2]["milestone_index"], rows[-2]["output_id"])),
            size=min(2 * part.size, _MOST_AT_ONCE),
        )
