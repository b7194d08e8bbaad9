"""What an address owns at the ledger index (inx-chronicle's explorer API)."""

from __future__ import annotations

from collections.abc import Sequence

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
from permalake.web.problems import ProblemError
from permalake.web.state import RequestLake

_KINDS: tuple[Kind, ...] = ("basic", "alias", "nft", "foundry")
_MOST_OUTPUTS = 200_000
"""Outputs, spent ones too, among which a balance is added up for one request."""


class TooManyOutputsError(ProblemError):
    """Raised where an address has had more outputs than a request adds up (400)."""


def balance_of(lake: RequestLake, address: str) -> tuple[int, int] | None:
    """Return total and available balance (base tokens) of a Stardust address; None if it was never seen.

    An output with a passed expiration belongs to its return address. A storage deposit that is to go to
    somebody else is not the owner's (TIP-18). What a running timelock holds is not available.

    Raises:
        TooManyOutputsError: if it could ever have unlocked more than 200,000.
    """
    last = ledger.ledger_index(lake)
    time = ledger.milestone(lake, last)["timestamp"]
    output_ids = _unlockable(lake, address, last)
    if not output_ids and not _has_spent(lake, address, last):
        return None
    spent = ledger.spent(lake, output_ids)
    unspent = [output_id for output_id in output_ids if output_id not in spent]
    outputs = decode_outputs(pa.array(_contents(lake, unspent), pa.binary()), "stardust")
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


def _unlockable(lake: RequestLake, address: str, last: int) -> list[str]:
    """Return the outputs, spent ones too, that an address may unlock or might have, now or later."""
    query = CommonQuery.model_validate({"unlockableByAddress": address})
    filters = tuple(filter_of(kind, query, lambda text: text) for kind in _KINDS)
    size = _MOST_OUTPUTS + 1
    listing = Listing(filters, last, spent_too=True, newest_first=False, after=None, size=size)
    output_ids = [output_id for _, output_id in positions(lake, listing)]
    if len(output_ids) > _MOST_OUTPUTS:
        statement = f"/api/analytics/v1/{lake.network}/account_statement?address={address}&format=csv"
        raise TooManyOutputsError(
            400, f"{address} has had more than {_MOST_OUTPUTS:,} outputs; {statement} has all that moved them"
        )
    return output_ids


def _has_spent(lake: RequestLake, address: str, last: int) -> bool:
    milestones = lake.find("consumed_outputs", "address", address).milestones or ()
    return any(index <= last for index in milestones)


def _contents(lake: RequestLake, output_ids: Sequence[str]) -> list[bytes]:
    """Return the bytes of outputs."""
    outputs: list[bytes] = []
    for kind in _KINDS:
        table = f"{kind}_outputs"
        places = ledger.places_of(lake, table, output_ids)
        if places:
            rows = lake.rows(
                f"SELECT data FROM {table} WHERE output_id IN (SELECT unnest($ids))",  # noqa: S608
                {"ids": list(output_ids)},
                **{table: Scan(milestones=sorted(places))},
            )
            outputs += [row["data"] for row in rows]
    return outputs
