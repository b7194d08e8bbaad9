"""Applications of whole batches of VAAs.

What emitter and first bytes tell is told for all rows at once; only messages that have fields of an
application are decoded one by one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.cursor import I64
from permalake.contracts.schema import Table
from permalake.wormhole.codec.applications.decode import (
    FORMS,
    LAYOUTS,
    NFT_BRIDGE_APP,
    TOKEN_BRIDGE_APP,
    UNKNOWN,
    ApplicationMessage,
    Contracts,
    decode_application,
)
from permalake.wormhole.codec.applications.transfers import transfer_of
from permalake.wormhole.codec.bridge_payloads import Payloads, chain_keys, scatter
from permalake.wormhole.codec.governance import is_governance
from permalake.wormhole.codec.vaa import SEQUENCE_WIDTH, Bool, Vaas, gather
from permalake.wormhole.contracts.application_tables import (
    APPLICATION_MESSAGES,
    APPLICATION_TRANSFERS,
    RELAYER_DELIVERIES,
)

_BRIDGE_LAYOUTS = ("token_bridge", "nft_bridge")
_WITH_PAYLOAD = 3
# Where a transfer's payload has its receiver (32 bytes, then 2 bytes of its chain).
_TARGET = 67
_LONGEST_FORM = max(map(len, FORMS))
Row = dict[str, Any]
Kind = tuple[str, str | None, str, str | None, int]
"""``app_id``, ``carrier_app_id``, ``kind``, ``layout``, ``is_listed``."""
_KIND_NAMES = ("app_id", "carrier_app_id", "kind", "layout", "is_listed")
_UNKNOWN: Kind = (UNKNOWN, None, "unknown", None, 0)
_GOVERNANCE: Kind = (UNKNOWN, None, "governance", None, 0)


def decode_applications(
    vaas: Vaas, payloads: Payloads, contracts: Contracts, select: Bool
) -> dict[str, pa.StructArray]:
    """Return struct columns parallel to the VAAs: their rows of the three tables of applications.

    ``payloads`` are those of the selected rows. ``application`` is null in rows that are not selected; the
    other two are null where a message moves nothing, or is no delivery.
    """
    batch = _Batch(vaas, payloads, contracts)
    single = [int(row) for row in np.flatnonzero(select & batch.single())]
    messages = [batch.decode(row) for row in single]
    pairs = list(zip(single, messages, strict=True))
    moved = [(row, transfer) for row, message in pairs if (transfer := batch.moved(row, message))]
    deliveries = [(row, _delivery(message)) for row, message in pairs if message.layout == "relayer"]
    return {
        "application": _messages(batch, select, pairs),
        "moved": _rows(APPLICATION_TRANSFERS, moved, len(vaas)),
        "delivery": _rows(RELAYER_DELIVERIES, deliveries, len(vaas)),
    }


@dataclass(frozen=True)
class _Batch:
    """The VAAs of a batch, and the contracts that they are looked up in."""

    vaas: Vaas
    payloads: Payloads
    contracts: Contracts

    def single(self) -> Bool:
        """Whether only a row's whole payload shows its application, bool[n]."""
        vaas = self.vaas
        emitters = chain_keys(vaas.emitter_chain, vaas.emitter_address)
        listed = self._listed(emitters, "emitter", lambda layout: layout not in _BRIDGE_LAYOUTS)
        of_bridge = self._listed(emitters, "emitter", lambda layout: layout in _BRIDGE_LAYOUTS)
        return ~is_governance(vaas) & (listed | (~of_bridge & self._has_form()) | self._received())

    def decode(self, row: int) -> ApplicationMessage:
        """Decode one message."""
        vaas = self.vaas
        emitter = vaas.emitter_address[row].tobytes()
        return decode_application(int(vaas.emitter_chain[row]), emitter, self._payload(row), self.contracts)

    def moved(self, row: int, message: ApplicationMessage) -> Row | None:
        """Return what a message moves."""
        transfer = transfer_of(message, int(self.vaas.emitter_chain[row]), self._payload(row))
        return transfer and {"app_id": (message.inner or message).app_id, **transfer}

    def bridged(self) -> Iterable[tuple[I64, Kind]]:
        """Rows that the bridges' own tables hold, by kind."""
        transfers = self.payloads.transfers
        rows, ids = (transfers[name].to_numpy() for name in ("row", "payload_id"))
        metas, nfts = (payloads["row"].to_numpy() for payloads in (self.payloads.metas, self.payloads.nfts))
        yield rows[ids != _WITH_PAYLOAD], (TOKEN_BRIDGE_APP, None, "transfer", "token_bridge", 1)
        yield rows[ids == _WITH_PAYLOAD], (TOKEN_BRIDGE_APP, None, "transfer_with_payload", "token_bridge", 1)
        yield metas, (TOKEN_BRIDGE_APP, None, "attestation", "token_bridge", 1)
        yield nfts, (NFT_BRIDGE_APP, None, "transfer", "nft_bridge", 1)

    def _payload(self, row: int) -> bytes:
        start, length = int(self.vaas.payload_start[row]), int(self.vaas.payload_length[row])
        return self.vaas.data[start : start + length].tobytes()

    def _has_form(self) -> Bool:
        first = gather(self.vaas.data, self.vaas.payload_start, _LONGEST_FORM)
        begins = np.zeros(len(self.vaas), bool)
        for form in FORMS:
            begins |= (first[:, : len(form)] == np.frombuffer(form, np.uint8)).all(axis=1)
        return begins & (self.vaas.payload_length > _LONGEST_FORM)

    def _received(self) -> Bool:
        """Whether a transfer with payload goes to the contract of an application, bool[n]."""
        transfers = self.payloads.transfers
        rows = transfers["row"].to_numpy()[transfers["payload_id"].to_numpy() == _WITH_PAYLOAD]
        target = gather(self.vaas.data, self.vaas.payload_start[rows] + _TARGET, 34)
        chains = target[:, 32:].copy().view(">u2")[:, 0]
        received = np.zeros(len(self.vaas), bool)
        received[rows] = self._listed(
            chain_keys(chains, target[:, :32]), "recipient", LAYOUTS["recipient"].__contains__
        )
        return received

    def _listed(self, keys: pa.Array, role: str, is_layout: Callable[[str], bool]) -> Bool:
        listed = [
            chain.to_bytes(2, "big") + address
            for (of, chain, address), contract in self.contracts.items()
            if of == role and is_layout(contract.layout)
        ]
        is_listed: Bool = pc.is_in(keys, pa.array(listed, pa.binary(34))).to_numpy(zero_copy_only=False)
        return is_listed


def _messages(batch: _Batch, select: Bool, pairs: Sequence[tuple[int, ApplicationMessage]]) -> pa.StructArray:
    """Return the rows of ``application_messages``, of which many are alike."""
    size = len(batch.vaas)
    kinds: dict[Kind, int] = {_UNKNOWN: 0, _GOVERNANCE: 1}
    codes = np.zeros(size, np.int64)
    codes[is_governance(batch.vaas)] = kinds[_GOVERNANCE]
    for rows, kind in batch.bridged():
        codes[rows] = kinds.setdefault(kind, len(kinds))
    for row, message in pairs:
        codes[row] = kinds.setdefault(_kind(message), len(kinds))
    place = np.zeros(size, np.int64)
    place[[row for row, _ in pairs]] = np.arange(len(pairs)) + 1
    columns = {
        name: pa.array([kind[at] for kind in kinds]).take(pa.array(codes))
        for at, name in enumerate(_KIND_NAMES)
    }
    texts = pa.array([None, *(_json(message) for _, message in pairs)], pa.string())
    columns["fields"] = texts.take(pa.array(place))
    fields = _fields(APPLICATION_MESSAGES)
    arrays = [columns[field.name].cast(field.type) for field in fields]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=pa.array(~select))


def _kind(message: ApplicationMessage) -> Kind:
    if message.inner:
        inner = message.inner
        return inner.app_id, message.app_id, inner.kind, inner.layout, int(inner.is_listed)
    return message.app_id, message.carrier, message.kind, message.layout, int(message.is_listed)


def _json(message: ApplicationMessage) -> str | None:
    fields = (message.inner or message).fields
    return json.dumps(fields) if fields else None


def _delivery(message: ApplicationMessage) -> Row:
    fields = message.fields
    delivered, keys = fields.get("delivery"), fields.get("message_keys")
    repeated = None
    if isinstance(delivered, Mapping) and "emitter" in delivered:
        sequence = str(delivered["sequence"]).zfill(SEQUENCE_WIDTH)
        repeated = f"{delivered['chain']}:{delivered['emitter']}:{sequence}"
    counted = len(keys) if isinstance(keys, Sequence) else 0
    return {**fields, "kind": message.kind, "message_count": counted, "delivered_row_key": repeated}


def _fields(table: Table) -> list[pa.Field]:
    return [field for field in table.arrow if field.name not in {"row_key", "date"}]


def _rows(table: Table, decoded: Sequence[tuple[int, Row]], size: int) -> pa.StructArray:
    """Return struct rows of a table, null where none is found."""
    fields = _fields(table)
    columns = [pa.array([record.get(field.name) for _, record in decoded], field.type) for field in fields]
    rows = pa.array([row for row, _ in decoded], pa.int64())
    row = pa.field("row", pa.int64(), nullable=False)
    return scatter(pa.RecordBatch.from_arrays([rows, *columns], schema=pa.schema([row, *fields])), size)
