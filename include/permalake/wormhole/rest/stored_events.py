"""Messages out of Bigtable, as far as the store holds the published state; the rest comes from the lake.

An answer is of the request's published state: the catalog tells which days the store holds as that state has
them, and rows of other days are not taken. A row is replaced in one step, so it is never half a message.
What the cells lack (digest, fee, the payload's rest) is decoded from the signed VAA beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from permalake.contracts.rows import Row
from permalake.stores.bigtable_reader import BigtableReader, Cells
from permalake.stores.readers import StoreReaders
from permalake.web.state import RequestLake, not_at_once
from permalake.wormhole.codec.bridge_payloads import TOKEN_BRIDGE, decode_payloads
from permalake.wormhole.codec.vaa import GENESIS_TIME, decode_vaas
from permalake.wormhole.contracts import tables
from permalake.wormhole.events.families import FAMILIES, Family
from permalake.wormhole.rest.event_filter import EventKey

_FAMILIES = {family.table.name: family for family in FAMILIES}
_TIME, _SIGNED = "MessagePublication:Timestamp", "QuorumState:SignedVAA"
_TRANSFERS = ("TokenTransferPayload:PayloadId", "NFTTransferPayload:PayloadId")
_EVERY_TRANSFER = {
    tables.TOKEN_TRANSFER_DETAILS.name: _TRANSFERS[:1],
    tables.CHAIN_DETAILS.name: _TRANSFERS,
}
"""Tables with a row, maybe of nulls, of each message with one of these cells."""
_FROM_VAA = {tables.TOKEN_TRANSFER_PAYLOAD.name: ("fee", "from_address", "app_payload")}


class StoredEvents:
    """Rows of the event table, version 2, as rows of lake tables; each is read once in a request."""

    def __init__(self, reader: BigtableReader, days: frozenset[date], deadline: float) -> None:
        self._reader = reader
        self._days = days
        self._deadline = deadline
        self._known: dict[str, Cells | None] = {}

    def key(self, row_key: str) -> EventKey | None:
        """Return the key of a message; None unless the store holds it and its day."""
        cells = self._cells([row_key]).get(row_key)
        if cells is None:
            return None
        time = datetime.fromisoformat(cells[_TIME].decode())
        # A body without a real time does not show its day.
        held = time >= GENESIS_TIME and time.date() in self._days
        return EventKey(row_key, time.date(), time) if held else None

    def rows(self, keys: Sequence[EventKey], table: str, *, prices: bool) -> dict[str, Row | None]:
        """Return the row in a table of each message that the store holds, None where it has none there."""
        family = _FAMILIES.get(table)
        if family is None or (prices and table == tables.TOKEN_TRANSFER_DETAILS.name):
            return {}
        held = {key.row_key: key for key in keys if key.date in self._days}
        cells = self._cells(list(held))
        stored = {row_key: _row(family, held[row_key], own_cells) for row_key, own_cells in cells.items()}
        _complete(table, [(row, cells[row_key]) for row_key, row in stored.items() if row is not None])
        return stored

    def _cells(self, row_keys: Sequence[str]) -> dict[str, Cells]:
        missing = [row_key for row_key in row_keys if row_key not in self._known]
        read = self._reader.rows(missing, self._deadline)
        self._known |= {row_key: read.get(row_key) for row_key in missing}
        return {row_key: cells for row_key in row_keys if (cells := self._known[row_key]) is not None}


def stored_events(lake: RequestLake) -> StoredEvents | None:
    """Return the messages of the request's store; None where the lake alone is read."""
    if lake.snapshot.has_head:
        return None
    stores: StoreReaders = lake.request.app.state.stores
    whole = stores.whole(lake.network)
    if whole is None or stores.bigtable is None:
        return None
    not_at_once(lake)
    state = lake.request.state
    if not hasattr(state, "stored_events"):
        name, publication = f"held by the store {whole.version}", lake.snapshot.publication
        days = lake.once(name, lambda: frozenset(whole.as_of(publication)))
        state.stored_events = StoredEvents(stores.bigtable, days, lake.deadline) if days else None
    events: StoredEvents | None = state.stored_events
    return events


def _row(family: Family, key: EventKey, cells: Cells) -> Row | None:
    """Return a family's cells as a row of its lake table; None without cells."""
    values = {column: cells.get(f"{family.name}:{qualifier}") for qualifier, column in family.cells.items()}
    expected = _EVERY_TRANSFER.get(family.table.name, ())
    if all(value is None for value in values.values()) and not any(name in cells for name in expected):
        return None
    key_values = {"row_key": key.row_key, "date": key.date}
    return {
        column.name: key_values.get(column.name, _typed(column.type, values.get(column.name)))
        for column in family.table.columns
    }


def _typed(kind: str, cell: bytes | None) -> Any:
    """Return the value of a cell as the lake has it."""
    if cell is None or kind == "binary":
        return cell
    text = cell.decode()
    if kind in ("int", "long"):
        return int(text)
    if kind == "timestamptz":
        return datetime.fromisoformat(text)
    return Decimal(text) if kind.startswith("decimal") else text


def _complete(table: str, rows: Sequence[tuple[Row, Mapping[str, bytes]]]) -> None:
    """Add the columns that have no cells, from the signed VAAs."""
    if not rows or table not in (tables.MESSAGE_PUBLICATION.name, *_FROM_VAA):
        return
    vaas = decode_vaas(pa.array([cells[_SIGNED] for _, cells in rows], pa.binary()))
    if table == tables.MESSAGE_PUBLICATION.name:
        for (row, _), digest in zip(rows, vaas.digest_hex().to_pylist(), strict=True):
            row["digest"] = digest
        return
    decoded = decode_payloads(vaas, np.full(len(rows), TOKEN_BRIDGE, np.uint8)).transfers
    for (row, _), transfer in zip(rows, decoded.to_pylist(), strict=True):
        row |= {name: transfer[name] for name in _FROM_VAA[table]}
