"""Lists of an IOTA network with filters: ledger changes, messages and NFTs, and the page of a collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import BeforeValidator, Field
from starlette.responses import Response

from permalake.contracts.rows import Row
from permalake.iota.codec.outputs import ALIAS_ADDRESS, NFT_ADDRESS
from permalake.iota.codec.reasons import described
from permalake.iota.rest import ledger
from permalake.iota.rest.content_words import KINDS, PAYLOADS, payload_type_sql
from permalake.iota.rest.holdings import since
from permalake.iota.rest.known_networks import coin
from permalake.iota.rest.parameters import bech32_address
from permalake.lake.serving import EVERYTHING, Scan
from permalake.web.html import page
from permalake.web.list_pages import MOST, ListColumn, ListField, ListQuery, PageList
from permalake.web.page_router import page_router
from permalake.web.parameter_types import decimal_number
from permalake.web.problems import bad_request, not_found
from permalake.web.state import PublishedLake, RequestLake
from permalake.web.synthetic import is_synthetic

router = page_router()
stardust = page_router()
"""Lists of what Chrysalis does not have."""
_SITE = Path(__file__).parent / "site"
_SECONDS = "%Y-%m-%d %H:%M:%S"
_NAME_LENGTH = 3
"""Characters of a text that is looked for in names: one or two stand in too many."""
_CHANGES = (
    ListColumn("time", "Time, UTC", "time"),
    ListColumn("milestone", "Milestone", "figure", sorts=False),
    ListColumn("change", "Change"),
    ListColumn("kind", "Kind"),
    ListColumn("amount", "Amount", "coins"),
    ListColumn("address", "Address", "id"),
    ListColumn("output", "Output", "id", sorts=False),
    ListColumn("transaction", "Transaction", "id", sorts=False),
)
_CHANGE_ORDER = {
    "time": "ms_timestamp",
    "change": "is_spent",
    "kind": "kind",
    "amount": "amount",
    "address": "address",
}
_CHANGE_WORDS = {"created": 0, "consumed": 1}
_MESSAGES = (
    ListColumn("time", "Time, UTC", "time"),
    ListColumn("milestone", "Milestone", "figure", sorts=False),
    ListColumn("state", "State"),
    ListColumn("conflict", "Reason of the conflict"),
    ListColumn("message", "Id", "id", sorts=False),
)
_MESSAGE_ORDER = {
    "time": "m.milestone_index {way}, m.white_flag_index",
    "state": "m.inclusion_state",
    "conflict": "nullif(m.conflict_reason, 0)",
}
_STATES = {"included": 1, "conflicting": 0, "no transaction": 2}
_NFTS = (
    ListColumn("created", "Created, UTC", "time"),
    ListColumn("name", "Name"),
    ListColumn("collection", "Collection"),
    ListColumn("nft", "NFT", "id", sorts=False),
    ListColumn("issuer", "Issuer", "id"),
    ListColumn("owner", "Owner", "id"),
    ListColumn("moved", "Last changed, UTC", "time"),
)
_FOLDED = ("name", "collection")
_NFT_STATES = """SELECT nft_id, min(ms_timestamp) AS since, max(ms_timestamp) AS moved, max(date) AS day,
  min(ms_timestamp) FILTER (
    hex(data[11 + 70 * native_token_count : 42 + 70 * native_token_count]) = repeat('0', 64)
  ) AS created,
  arg_max(address, (milestone_index, spent IS NULL)) AS owner, any_value(issuer) AS issuer,
  any_value(collection_name) AS collection, any_value(nft_name) AS name, any_value(nft_uri) AS uri
FROM nft_outputs LEFT JOIN (
  SELECT output_id AS spent, milestone_index AS spent_in FROM consumed_outputs WHERE kind = 'nft'
) ON spent = output_id AND spent_in = milestone_index
WHERE milestone_index <= $last_milestone AND date <= $last GROUP BY nft_id"""
"""The NFTs; of one that moves twice in a milestone, the owner is that of the output which is left.

The output that creates an NFT has zeros for its id (TIP-18). The lake holds none of an NFT that is older.
"""
_NFT_CONDITIONS = {
    "first": "day >= $first",
    "issuer": "issuer = $issuer",
    "collection": "contains(lower(collection), lower($collection))",
    "name": "contains(lower(name), lower($name))",
}
_NFT_SUMS = f"""count(*) AS nfts, count(DISTINCT owner) AS owners,
  CASE WHEN count(created) = count(*) THEN min(created) END AS created,
  min(since) AS since, max(moved) AS moved,
  list_sort(list(DISTINCT collection) FILTER (collection <> ''))[:{MOST}] AS names"""


_FormReason = Annotated[
    Annotated[int, Field(ge=1, le=255)] | None, BeforeValidator(lambda text: text or None)
]
"""The code of a form, which sends an empty field as empty text."""


class _ChangeQuery(ListQuery):
    address: str = Field("", max_length=120)
    kind: str = Field("", max_length=20)
    change: str = Field("", max_length=20)
    minimum: str = Field("", max_length=40)
    maximum: str = Field("", max_length=40)


class _MessageQuery(ListQuery):
    state: str = Field("", max_length=20)
    payload: str = Field("", max_length=20)
    reason: _FormReason = None


class _NftQuery(ListQuery):
    issuer: str = Field("", max_length=120)
    collection: str = Field("", max_length=200)
    name: str = Field("", max_length=200)


@router.get("/changes")
def changes(request: Request, lake: PublishedLake, query: Annotated[_ChangeQuery, Query()]) -> Response:
    """List outputs that were created and consumed, by owner, kind and amount."""
    shown = PageList(request, query, _CHANGES, "-time")
    first, last = query.of(lake.snapshot.days(lake.network, "milestones"))
    conditions = ["date BETWEEN $first AND $last"]
    bound: dict[str, Any] = {"first": first, "last": last}
    if query.address:
        bech32_address(query.address, lake.settings.network(lake.network))
        conditions.append("address = $address")
        bound["address"] = query.address.lower()
    for name, text, choices in (
        ("kind", query.kind, {kind: kind for kind in KINDS}),
        ("change", query.change, _CHANGE_WORDS),
    ):
        if text:
            conditions.append(f"{'is_spent' if name == 'change' else name} = ${name}")
            bound[name] = _chosen(name, text, choices)
    for name, text, sign in (("minimum", query.minimum, ">="), ("maximum", query.maximum, "<=")):
        if text:
            conditions.append(f"amount {sign} ${name}")
            bound[name] = _base_tokens(lake, name, text)
    rows = lake.rows(
        f"SELECT * FROM ledger_updates WHERE {' AND '.join(conditions)} "  # noqa: S608
        f"ORDER BY {_CHANGE_ORDER[shown.column]} {shown.direction}, output_id, is_spent "
        f"LIMIT {shown.limit + 1} OFFSET {shown.skip}",
        bound,
        ledger_updates=Scan(first, last),
    )
    ticker = coin(lake.settings, lake.network).ticker
    fields = [
        ListField("kind", "Kind", query.kind, (("", "any"), *KINDS.items())),
        ListField("change", "Change", query.change, _choices(_CHANGE_WORDS)),
        ListField("minimum", f"{ticker} at least", query.minimum),
        ListField("maximum", f"{ticker} at most", query.maximum),
        ListField("address", "Address", query.address),
    ]
    content = {
        **_of(lake, first, last),
        "title": "Ledger changes",
        "about": "Outputs that these days created, and outputs that they consumed, with their owners.",
        **shown.content(fields, [_change(row) for row in rows], lambda row: _change_links(lake, row)),
    }
    return page(request, lake.snapshot.publication, "list.html", content)


@router.get("/messages")
def messages(request: Request, lake: PublishedLake, query: Annotated[_MessageQuery, Query()]) -> Response:
    """List messages by what they carry and what became of them."""
    shown = PageList(request, query, _MESSAGES, "-time")
    protocol = lake.settings.network(lake.network).protocol
    payloads = {words: code for code, words in PAYLOADS[protocol].items()}
    first, last = query.of(lake.snapshot.days(lake.network, "milestones"))
    conditions = ["m.date BETWEEN $first AND $last"]
    bound: dict[str, Any] = {"first": first, "last": last}
    if query.state:
        conditions.append("m.inclusion_state = $state")
        bound["state"] = _chosen("state", query.state, _STATES)
    if query.payload:
        code = payload_type_sql("m.message", protocol)
        conditions.append(f"({code}) IS NOT DISTINCT FROM CAST($payload AS INTEGER)")
        bound["payload"] = _chosen("payload", query.payload, payloads)
    if query.reason is not None:
        conditions.append("m.inclusion_state = 0 AND m.conflict_reason = $reason")
        bound["reason"] = query.reason
    order = _MESSAGE_ORDER[shown.column].format(way=shown.direction)
    rows = lake.rows(
        "SELECT m.message_id, m.milestone_index, m.inclusion_state, m.conflict_reason, m.date, s.timestamp "  # noqa: S608
        "FROM messages m JOIN milestones s ON s.date = m.date AND s.milestone_index = m.milestone_index "
        f"WHERE {' AND '.join(conditions)} ORDER BY {order} {shown.direction}, m.message_id "
        f"LIMIT {shown.limit + 1} OFFSET {shown.skip}",
        bound,
        messages=Scan(first, last),
        milestones=Scan(first, last),
    )
    fields = [
        ListField("payload", "Payload", query.payload, _choices(payloads)),
        ListField("state", "State", query.state, _choices(_STATES)),
        ListField("reason", "Conflict reason, a code", "" if query.reason is None else str(query.reason)),
    ]
    content = {
        **_of(lake, first, last),
        "title": "Messages",
        "about": "Messages (blocks) that the milestones of these days reference.",
        **shown.content(fields, [_message(row) for row in rows], lambda row: _message_links(lake, row)),
    }
    return page(request, lake.snapshot.publication, "list.html", content)


@stardust.get("/nfts")
def nfts(request: Request, lake: PublishedLake, query: Annotated[_NftQuery, Query()]) -> Response:
    """List NFTs by issuer, collection and name, as of a day's end."""
    shown = PageList(request, query, _NFTS, "-moved")
    first, last = query.of(lake.snapshot.days(lake.network, "milestones"))
    texts = {"issuer": query.issuer.lower(), "collection": query.collection, "name": query.name}
    asked = {"first": first, **{name: text for name, text in texts.items() if text}}
    fields = [
        ListField("issuer", "Issuer", query.issuer),
        ListField("collection", "Collection has", query.collection),
        ListField("name", "Name has", query.name),
    ]
    content = {
        **_of(lake, first, last),
        "title": "NFTs",
        "about": "NFTs that changed in these days, in their newest state. Names are the issuers' own.",
        **shown.content(fields, _nfts(lake, last, asked, shown), lambda row: _nft_links(lake, row)),
    }
    return page(request, lake.snapshot.publication, "list.html", content)


@stardust.get("/collection/{issuer}")
def collection(
    request: Request, lake: PublishedLake, issuer: str, query: Annotated[ListQuery, Query()]
) -> Response:
    """Show the NFTs of an issuer: names of its collections, owners, and each NFT."""
    kind, value = bech32_address(issuer, lake.settings.network(lake.network))
    shown = PageList(request, query, _NFTS, "created")
    last = query.end or max(lake.snapshot.days(lake.network, "milestones"), default=date.max)
    asked = {"issuer": issuer.lower()}
    [sums] = _nft_rows(lake, last, asked, _NFT_SUMS)
    if not sums["nfts"]:
        raise not_found(f"collection {issuer}")
    issuers = {NFT_ADDRESS: "nft", ALIAS_ADDRESS: "alias"}
    content = {
        **_of(lake, sums["since"].date(), last),
        "issuer": issuer.lower(),
        "issued_by": f"{issuers[kind]}/{value.hex()}" if kind in issuers else None,
        "names": sums["names"] or [],
        "nfts": sums["nfts"],
        "owners": sums["owners"],
        "first_created": _time(sums["created"]),
        "since": since(lake),
        "last_moved": sums["moved"].strftime(_SECONDS),
        "title": "Collection",
        "about": "NFTs of this issuer in their newest state.",
        **shown.content([], _nfts(lake, last, asked, shown), lambda row: _nft_links(lake, row)),
    }
    return page(request, lake.snapshot.publication, "collection.html", content, _SITE)


def _of(lake: RequestLake, first: date, last: date) -> dict[str, Any]:
    return {
        "network": lake.network,
        "coin": coin(lake.settings, lake.network),
        "start": first.isoformat(),
        "end": last.isoformat(),
        "above": {"name": f"Explore {lake.network}", "path": f"/{lake.network}/explore"},
    }


def _chosen(name: str, text: str, choices: Mapping[str, Any]) -> Any:
    if text not in choices:
        raise bad_request(f"{name}: {text} is none; choose from {', '.join(choices)}")
    return choices[text]


def _choices(words: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    return (("", "any"), *((word, word) for word in words))


def _base_tokens(lake: RequestLake, name: str, text: str) -> int:
    """Return an amount of coins in base tokens, within those that the ledger can hold."""
    unit = coin(lake.settings, lake.network)
    value = decimal_number(text, name)
    if value.is_finite() and 0 <= value < 2**63 and (scaled := value.scaleb(unit.decimals)) < 2**63:
        return int(scaled)
    raise bad_request(f"{name}: {text} is no amount of {unit.ticker}")


def _change(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "time": row["ms_timestamp"].strftime(_SECONDS),
        "is_synthetic": is_synthetic(row["date"]),
        "milestone": row["milestone_index"],
        "change": "consumed" if row["is_spent"] else "created",
        "kind": KINDS[row["kind"]],
        "amount": row["amount"],
        "address": row["address"],
        "output": row["output_id"],
        "transaction": row["transaction_id"],
    }


def _change_links(lake: RequestLake, row: Mapping[str, Any]) -> dict[str, str]:
    return _explored(lake, row, ("milestone", "address", "output", "transaction"))


def _explored(lake: RequestLake, row: Mapping[str, Any], kinds: Sequence[str]) -> dict[str, str]:
    return {kind: f"/{lake.network}/explore/{kind}/{row[kind]}" for kind in kinds if row[kind] is not None}


def _message(row: Mapping[str, Any]) -> dict[str, Any]:
    is_conflicting = row["inclusion_state"] == 0
    return {
        "time": datetime.fromtimestamp(row["timestamp"], UTC).strftime(_SECONDS),
        "is_synthetic": is_synthetic(row["date"]),
        "milestone": row["milestone_index"],
        "state": next(word for word, state in _STATES.items() if state == row["inclusion_state"]),
        "conflict": described(row["conflict_reason"]) if is_conflicting else None,
        "message": row["message_id"],
    }


def _message_links(lake: RequestLake, row: Mapping[str, Any]) -> dict[str, str]:
    return _explored(lake, row, ("milestone", "message"))


def _nft_rows(
    lake: RequestLake, last: date, asked: Mapping[str, Any], columns: str = "*", order: str = ""
) -> list[Row]:
    """Return columns of the NFTs that :data:`_NFT_CONDITIONS` let through, in their state at a day's end."""
    # No day after the last one has another list.
    last = min(last, max(lake.snapshot.days(lake.network, "milestones"), default=last))
    where = " AND ".join(_NFT_CONDITIONS[name] for name in asked)
    return lake.kept_rows(
        f"SELECT {columns} FROM ({_NFT_STATES}) WHERE {where} {order}",  # noqa: S608
        {**asked, "last": last, "last_milestone": ledger.ledger_index(lake)},
        nft_outputs=EVERYTHING,
        consumed_outputs=EVERYTHING,
    )


def _nfts(lake: RequestLake, last: date, asked: Mapping[str, Any], shown: PageList) -> list[dict[str, Any]]:
    """Return the part of these NFTs that is shown, and one more where there are more."""
    column = f"lower({shown.column})" if shown.column in _FOLDED else shown.column
    order = f"ORDER BY {column} {shown.direction}, moved DESC, nft_id"
    rows = _nft_rows(lake, last, asked, order=f"{order} LIMIT {shown.limit + 1} OFFSET {shown.skip}")
    return [
        {
            **{name: row[name] for name in ("name", "collection", "issuer", "owner", "uri")},
            "nft": row["nft_id"],
            "created": _time(row["created"]),
            "moved": row["moved"].strftime(_SECONDS),
        }
        for row in rows
    ]


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.strftime(_SECONDS)


def is_nft_name(lake: RequestLake, text: str) -> bool:
    """Return whether the text stands in the name of an NFT."""
    if len(text) < _NAME_LENGTH or not lake.snapshot.table(lake.network, "nft_outputs"):
        return False
    rows = lake.kept_rows(
        "SELECT 1 AS found FROM nft_outputs WHERE milestone_index <= $last_milestone "
        "AND contains(lower(nft_name), lower($text)) LIMIT 1",
        {"text": text, "last_milestone": ledger.ledger_index(lake)},
        nft_outputs=EVERYTHING,
    )
    return bool(rows)


def _nft_links(lake: RequestLake, row: Mapping[str, Any]) -> dict[str, str]:
    links = _explored(lake, row, ("nft",))
    base = f"/{lake.network}/explore"
    if row["issuer"]:
        links |= dict.fromkeys(("issuer", "collection"), f"{base}/collection/{row['issuer']}")
    if row["owner"]:
        links["owner"] = f"{base}/address/{row['owner']}"
    return links
