"""Native tokens (TIP-18) in an output, and in the unspent outputs of an address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from permalake.iota.codec.to_json import output_json
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.rest.chain_facts import is_known
from permalake.iota.rest.holdings import OWNERS, Holdings
from permalake.web.state import RequestLake

TOKEN_KINDS = frozenset(
    name.removesuffix("_outputs")
    for name, table in IOTA_TABLES.items()
    if "native_token_count" in table.names
)
"""Kinds of outputs that may hold native tokens."""
_MOST = 5_000
"""Outputs with tokens that are decoded for a page."""
_TABLES = {name: owner for name, owner in OWNERS.items() if "native_token_count" in IOTA_TABLES[name].names}


def tokens_in(lake: RequestLake, output: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the native tokens of an output, which is given as nodes answer it."""
    return _listed(lake, _amounts(output))


def tokens_of(lake: RequestLake, address: str, held: Holdings) -> dict[str, Any]:
    """Return the native tokens in the unspent outputs of an address.

    ``tokens``: id, amount in the token's smallest unit as text, and whether the lake has its foundry;
    ``complete``: whether all outputs were counted.
    """
    unspent = {row["output_id"] for row in held.created} - set(held.spent)
    total: Counter[str] = Counter()
    decoded = 0
    for table, owner in _TABLES.items():
        scan = lake.find(table, owner, address)
        if not unspent or scan.is_empty:
            continue
        rows = lake.rows(
            f"SELECT output_id, data FROM {table} WHERE {owner} = $address AND native_token_count > 0 "  # noqa: S608
            "ORDER BY milestone_index DESC, output_id LIMIT $most",
            {"address": address, "most": _MOST + 1},
            **{table: scan},
        )
        decoded += len(rows)
        for row in rows[:_MOST]:
            if row["output_id"] in unspent:
                total += _amounts(output_json(row["data"], "stardust"))
    return {"tokens": _listed(lake, total), "complete": decoded <= _MOST}


def tokens_of_bytes(data: bytes) -> list[dict[str, str]]:
    """Return id and amount of the native tokens in a Stardust output."""
    held = _amounts(output_json(data, "stardust"))
    return [{"id": token, "amount": str(amount)} for token, amount in sorted(held.items())]


def _amounts(output: Mapping[str, Any]) -> Counter[str]:
    return Counter(
        {token["id"].removeprefix("0x"): int(token["amount"], 16) for token in output.get("nativeTokens", ())}
    )


def _listed(lake: RequestLake, amounts: Counter[str]) -> list[dict[str, Any]]:
    return [
        {"id": token, "amount": str(amount), "is_known": is_known(lake, "foundry", token)}
        for token, amount in sorted(amounts.items())
    ]
