"""Messages in the shapes of Wormhole's former event database: column names of its Bigtable families."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import Any

from permalake.lake.serving import Scan
from permalake.web.state import RequestLake
from permalake.wormhole.events.families import FAMILIES
from permalake.wormhole.reference import Reference
from permalake.wormhole.rest.edb_answers import NESTED_FAMILIES, EdbMessage
from permalake.wormhole.rest.event_database import ALL, DEFAULT_DAYS, EdbRequest
from permalake.wormhole.rest.events import EventFilter, EventKey, load
from permalake.wormhole.rest.identifiers import of_row_key
from permalake.wormhole.rest.rows import Parameters, base64_text, plain_decimal, utc_text
from permalake.wormhole.rest.scorecards import last_day
from permalake.wormhole.rest.vaa_documents import Tables

MESSAGE_TABLES = tuple(family.table.name for family in FAMILIES)
_GROUPS = {None: "true", "chain": "p.emitter_chain", "address": "p.emitter_chain, p.emitter_address"}


def summary(tables: Tables, reference: Reference) -> EdbMessage:
    """Return a message as ``recent`` and ``transaction`` do; bytes in base64."""
    published = tables["message_publication"][0]
    message = of_row_key(published["row_key"])
    chain = reference.chains.get(message.chain)
    document: EdbMessage = {
        "EmitterChain": (chain and chain.name) or str(message.chain),
        "EmitterAddress": message.emitter,
        "Sequence": str(message.sequence),
        "InitiatingTxID": published["initiating_tx_id"] or "",
        "Payload": base64_text(published["payload"]),
        "SignedVAABytes": base64_text(tables["quorum_state"][0]["signed_vaa"]),
        "QuorumTime": utc_text(published["timestamp"]),
    }
    if details := tables.get("token_transfer_details"):
        notional = details[0]["notional_usd"]
        document["TransferDetails"] = {
            "Amount": details[0]["amount"] or "",
            "NotionalUSD": "" if notional is None else plain_decimal(notional),
            "OriginSymbol": details[0]["origin_symbol"] or "",
            "OriginName": details[0]["origin_name"] or "",
            "OriginTokenAddress": details[0]["origin_token_address"] or "",
        }
    return document


def full_row(tables: Tables, reference: Reference) -> dict[str, Any]:
    """Return a message as ``readrow`` does: its summary, and the cells of its other families."""
    message = summary(tables, reference)
    document: dict[str, Any] = {**message, "SignedVAA": message["SignedVAABytes"]}
    for family in FAMILIES:
        rows = tables.get(family.table.name)
        if family.name in NESTED_FAMILIES and rows:
            values = {qualifier: rows[0][column] for qualifier, column in family.cells.items()}
            document[family.name] = {name: str(value) for name, value in values.items() if value is not None}
    return document


def recent_messages(
    lake: RequestLake, request: EdbRequest, count: int, reference: Reference
) -> dict[str, list[EdbMessage]]:
    """Return the newest messages of 30 days, ``count`` by ``*``, ``chain`` or ``chain:address``.

    All together are no more than the server's limit: the newest of each group come first.
    """
    group = request.group_by
    if group is None and request.chain is not None:
        group = "chain" if request.address is None else "address"
    keys = _newest(lake, request, count, _GROUPS[group])
    by_place: dict[str, list[EdbMessage]] = defaultdict(list)
    for key, tables in zip(keys, load(lake, keys, MESSAGE_TABLES, prices=False), strict=True):
        chain, emitter, _ = key.row_key.split(":")
        name = {"chain": chain, "address": f"{chain}:{emitter}"}.get(group or "", ALL)
        by_place[name].append(summary(tables, reference))
    return dict(by_place)


def _newest(lake: RequestLake, request: EdbRequest, count: int, group: str) -> list[EventKey]:
    last = last_day(lake.rows)
    if last is None:
        return []
    bound = Parameters(count=count, most=lake.settings.serve.max_page_size)
    event_filter = EventFilter(
        start=last - timedelta(DEFAULT_DAYS), chain=request.chain, emitter=request.address
    )
    newest = lake.rows(
        "SELECT row_key, date, timestamp FROM (SELECT p.row_key, p.date, p.timestamp, row_number() OVER "  # noqa: S608
        f"(PARTITION BY {group} ORDER BY p.timestamp DESC, p.row_key DESC) AS place "
        f"FROM message_publication p WHERE {' AND '.join(event_filter.conditions(bound))}) "
        "WHERE place <= $count ORDER BY place, timestamp DESC, row_key DESC LIMIT $most",
        bound,
        message_publication=Scan(event_filter.start, last),
    )
    return [EventKey(**row) for row in newest]
