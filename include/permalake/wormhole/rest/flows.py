"""What moved between chains over a range of days, for the pages: corridors, tokens, and their sums."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from permalake.contracts.rows import Row
from permalake.lake.serving import Scan
from permalake.web.charts import Flow
from permalake.wormhole.contracts.analyst_views import TOKEN_VOLUMES
from permalake.wormhole.reference import Reference
from permalake.wormhole.rest.rows import Rows, exact_sum, plain_decimal

CORRIDORS = """SELECT emitter_chain, target_chain, CAST(sum(transfers) AS BIGINT) AS transfers,
  CAST(sum(valued) AS BIGINT) AS valued,
  sum(trunc(notional_usd)) AS dollars, sum(notional_usd - trunc(notional_usd)) AS fractions
FROM token_volumes_daily WHERE date BETWEEN $first AND $last
GROUP BY emitter_chain, target_chain"""
TOKENS = """SELECT origin_chain, origin_address, max(symbol) AS symbol,
  CAST(sum(transfers) AS BIGINT) AS transfers, CAST(sum(valued) AS BIGINT) AS valued,
  sum(trunc(notional_usd)) AS dollars, sum(notional_usd - trunc(notional_usd)) AS fractions
FROM token_volumes_daily WHERE date BETWEEN $first AND $last
GROUP BY origin_chain, origin_address"""
_HEAT = (Decimal("0.01"), Decimal("0.05"), Decimal("0.2"))


@dataclass(frozen=True)
class MovedPart:
    """Which transfers count: a condition on the columns of ``token_volumes_daily``, and its values."""

    condition: str
    values: Mapping[str, Any]


EVERYTHING_MOVED = MovedPart("true", {})


@dataclass(frozen=True)
class Corridor:
    """What one chain sent to another; ``usd`` is the value of ``valued`` transfers, None where they are 0."""

    source: int
    target: int
    transfers: int
    valued: int
    usd: Decimal | None


def corridors(rows: Rows, first: date, last: date, part: MovedPart = EVERYTHING_MOVED) -> list[Corridor]:
    """Return every pair of chains with a transfer, the most valuable first."""
    pairs = [
        Corridor(row["emitter_chain"], row["target_chain"], row["transfers"], row["valued"], _usd(row))
        for row in _volumes(rows, CORRIDORS, first, last, part)
    ]
    return sorted(
        pairs, key=lambda pair: (-(pair.usd or Decimal(0)), -pair.transfers, pair.source, pair.target)
    )


def _volumes(rows: Rows, sql: str, first: date, last: date, part: MovedPart) -> list[Row]:
    scans = dict.fromkeys((TOKEN_VOLUMES.name, *TOKEN_VOLUMES.tables), Scan(first, last))
    sql = sql.replace("\nGROUP BY", f" AND {part.condition}\nGROUP BY")
    return rows(sql, {"first": first, "last": last, **part.values}, **scans)


def tokens_by_value(
    rows: Rows, first: date, last: date, reference: Reference, part: MovedPart = EVERYTHING_MOVED
) -> list[dict[str, Any]]:
    """Return the tokens that moved, the most valuable first."""
    volumes = _volumes(rows, TOKENS, first, last, part)
    ranked = sorted(volumes, key=lambda volume: (-(_usd(volume) or Decimal(0)), -volume["transfers"]))
    return [
        {
            "chain": chain_name(reference, volume["origin_chain"]),
            "chain_id": volume["origin_chain"],
            "address": volume["origin_address"],
            "symbol": volume["symbol"] or "",
            "transfers": volume["transfers"],
            "valued": volume["valued"],
            "usd": _text(_usd(volume)),
        }
        for volume in ranked
    ]


def largest_flows(pairs: list[Corridor], reference: Reference, most: int) -> list[Flow]:
    """Return the first corridors as flows, and the sum of all others as one more."""
    flows = [
        Flow(chain_name(reference, pair.source), chain_name(reference, pair.target), float(pair.usd or 0))
        for pair in pairs[:most]
    ]
    if others := pairs[most:]:
        flows.append(Flow("others", "others", float(exact_sum(pair.usd or Decimal(0) for pair in others))))
    return flows


def corridor_facts(pairs: list[Corridor], reference: Reference) -> list[dict[str, Any]]:
    """Return corridors with names of their chains, as JSON values."""
    return [
        {
            "source": chain_name(reference, pair.source),
            "target": chain_name(reference, pair.target),
            "source_id": pair.source,
            "target_id": pair.target,
            "transfers": pair.transfers,
            "valued": pair.valued,
            "usd": _text(pair.usd),
        }
        for pair in pairs
    ]


def total_usd(pairs: list[Corridor]) -> str | None:
    """Return the value of all corridors; None where no transfer has one."""
    values = [pair.usd for pair in pairs if pair.usd is not None]
    return plain_decimal(exact_sum(values)) if values else None


def matrix(largest: list[Corridor], reference: Reference) -> dict[str, Any]:
    """Return USD by source and target, largest sums first; ``heat`` is 0 to 4 by share of the largest."""
    sent, received = defaultdict[int, Decimal](Decimal), defaultdict[int, Decimal](Decimal)
    valued = {pair.source for pair in largest if pair.valued}
    cells: dict[tuple[int, int], Corridor] = {}
    for pair in largest:
        cells[pair.source, pair.target] = pair
        sent[pair.source] = exact_sum((sent[pair.source], pair.usd or Decimal(0)))
        received[pair.target] = exact_sum((received[pair.target], pair.usd or Decimal(0)))
    columns = sorted(received, key=lambda chain: (-received[chain], chain))
    most = max((pair.usd or Decimal(0) for pair in largest), default=Decimal(0))
    return {
        "targets": [chain_name(reference, chain) for chain in columns],
        "rows": [
            {
                "source": chain_name(reference, source),
                "sum": plain_decimal(sent[source]) if source in valued else None,
                "cells": [_cell(cells.get((source, target)), most) for target in columns],
            }
            for source in sorted(sent, key=lambda chain: (-sent[chain], chain))
        ],
    }


def _cell(corridor: Corridor | None, most: Decimal) -> dict[str, Any] | None:
    if corridor is None:
        return None
    share = (corridor.usd or Decimal(0)) / most if most else Decimal(0)
    heat = 0 if not corridor.usd else 1 + sum(share >= step for step in _HEAT)
    return {"usd": _text(corridor.usd), "transfers": corridor.transfers, "heat": heat}


def chain_name(reference: Reference, chain: int) -> str:
    """Return a chain's name, else its number."""
    info = reference.chains.get(chain)
    return info.name if info and info.name else str(chain)


def chain_with_id(reference: Reference, chain: int) -> str:
    """Return a chain's name with its Wormhole chain id."""
    name = chain_name(reference, chain)
    return name if name == str(chain) else f"{name} ({chain})"


def _usd(row: Row) -> Decimal | None:
    if row["dollars"] is None:
        return None
    return exact_sum((Decimal(row["dollars"]), Decimal(row["fractions"])))


def _text(value: Decimal | None) -> str | None:
    return None if value is None else plain_decimal(value)
