"""What an address owns at the ledger index (inx-chronicle's explorer API)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from permalake.arrays.cursor import Mask
from permalake.iota.codec.bech32 import decode_address
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.outputs import Addresses, Outputs
from permalake.iota.rest import ledger
from permalake.iota.rest.index_filters import Kind, filter_of
from permalake.iota.rest.index_pages import Listing, positions
from permalake.iota.rest.index_queries import CommonQuery
from permalake.lake.serving import Scan
from permalake.web.state import RequestLake

_KINDS: tuple[Kind, ...] = ("basic", "alias", "nft", "foundry")
_EVERY = 2**62


def balance_of(lake: RequestLake, address: str) -> tuple[int, int] | None:
    """Return total and available balance (base tokens) of a Stardust address; None if it was never seen.

    An output with a passed expiration belongs to its return address. A storage deposit that is to go to
    somebody else is not the owner's (TIP-18). What a running timelock holds is not available.
    """
    last = ledger.ledger_index(lake)
    time = ledger.milestone(lake, last)["timestamp"]
    outputs = decode_outputs(pa.array(_unspent(lake, address, last), pa.binary()), "stardust")
    if not len(outputs) and not _is_seen(lake, address, last):
        return None
    return balances_at(outputs, address, time)


def balances_at(outputs: Outputs, address: str, time: int) -> tuple[int, int]:
    """Return total and available balance of an address among outputs, at a time (unix seconds)."""
    _, kind, raw = decode_address(address)
    value = np.frombuffer(raw, np.uint8)

    def is_address(addresses: Addresses) -> Mask:
        is_equal: Mask = (addresses.kind == kind) & (addresses.value == value).all(axis=1)
        return is_equal

    expired = (outputs.expiration_time > 0) & (outputs.expiration_time <= time)
    owns = is_address(outputs.address) | is_address(outputs.state_controller)
    spendable = (expired & is_address(outputs.expiration_return)) | (~expired & owns)
    owed = ~is_address(outputs.storage_return)
    kept = outputs.amount - outputs.storage_return_amount * owed
    free = outputs.timelock_time <= time
    return int(kept[spendable].sum()), int(kept[spendable & free].sum())


def _ids(lake: RequestLake, address: str, last: int, *, spent_too: bool, size: int) -> list[str]:
    query = CommonQuery.model_validate({"unlockableByAddress": address})
    filters = tuple(filter_of(kind, query, lambda text: text) for kind in _KINDS)
    listing = Listing(filters, last, spent_too, newest_first=False, after=None, size=size)
    return [output_id for _, output_id in positions(lake, listing)]


def _is_seen(lake: RequestLake, address: str, last: int) -> bool:
    spent = lake.find("consumed_outputs", "address", address).milestones or ()
    return any(index <= last for index in spent) or bool(_ids(lake, address, last, spent_too=True, size=1))


def _unspent(lake: RequestLake, address: str, last: int) -> list[bytes]:
    """Return the bytes of the unspent outputs that an address may unlock, now or later."""
    output_ids = _ids(lake, address, last, spent_too=False, size=_EVERY)
    outputs: list[bytes] = []
    for kind in _KINDS:
        table = f"{kind}_outputs"
        places = {
            index
            for output_id in output_ids
            for index in lake.find(table, "output_id", output_id).milestones or ()
        }
        if places:
            rows = lake.rows(
                f"SELECT data FROM {table} WHERE output_id IN (SELECT unnest($ids))",  # noqa: S608
                {"ids": output_ids},
                **{table: Scan(milestones=sorted(places))},
            )
            outputs += [row["data"] for row in rows]
    return outputs
