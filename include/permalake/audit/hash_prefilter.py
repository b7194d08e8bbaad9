"""Laws that may be violated, found over hashes of places: what is asked first about large days.

A place is text that names ids; to sum by it is to exchange it, or to hold it in memory, row by row. Its hash
of 64 bits says almost as much: places that differ share a hash once in 10^19, so a violation that it hides is
one of 10^6 days of 10^6 places. Only for laws that fail here are the places themselves compared, which also
shows a false alarm.
"""

from __future__ import annotations

from collections.abc import Sequence

from permalake.audit.laws import VALUE_TYPE, Law, union
from permalake.audit.scope import Scope
from permalake.engine.duckdb_engine import DuckDBEngine

_BITS = 63
"""Sides that fit the mask of a place."""


def hash_prefilter(laws: Sequence[Law], scope: Scope) -> set[str]:
    """Return the names of laws that have to be looked at by place; laws of another form are among them.

    If a question cannot be computed, all that it was about are.
    """
    names = {law.name for law in laws if law.kind == "violations"}
    covered = [law for law in laws if law.kind == "covered"]
    balances = [law for law in laws if law.kind == "balance"]
    for ask, those in ((_uncovered, covered), (_unbalanced, balances)):
        if not those:
            continue
        try:
            engine = scope.engine(*(side for law in those for side in law.sides))
            names |= ask(engine, those)
        except Exception:  # noqa: BLE001 (found out law by law)
            names |= {law.name for law in those}
    return names


def _uncovered(engine: DuckDBEngine, laws: Sequence[Law]) -> set[str]:
    """Ask about covering laws: each place has a bit for each side that names it, and laws share sides."""
    sides = list(dict.fromkeys(side for law in laws for side in law.sides))
    if len(sides) > _BITS:
        return {law.name for law in laws}
    marked = union(
        f"SELECT date, hash(place) AS h, CAST({1 << at} AS BIGINT) AS bit FROM ({side})"
        for at, side in enumerate(sides)
    )
    masks = f"SELECT bit_or(bit) AS sides FROM ({marked}) GROUP BY date, h"
    unknown = ", ".join(
        f"count_if(sides & {1 << sides.index(law.sides[0])} <> 0 "
        f"AND sides & {1 << sides.index(law.sides[1])} = 0) AS law_{at}"
        for at, law in enumerate(laws)
    )
    [row] = engine.rows(f"SELECT {unknown} FROM ({masks})")
    return {law.name for at, law in enumerate(laws) if row[f"law_{at}"]}


def _unbalanced(engine: DuckDBEngine, laws: Sequence[Law]) -> set[str]:
    """Ask about balances: the sums of both sides by law and place."""
    nothing = f"CAST(0 AS {VALUE_TYPE})"
    booked = union(
        f"SELECT {at} AS law, date, hash(place) AS h, {expected} AS expected, {actual} AS found FROM ({side})"
        for at, law in enumerate(laws)
        for side, expected, actual in zip(law.sides, ("value", nothing), (nothing, "value"), strict=True)
    )
    sums = f"SELECT law, sum(expected) AS expected, sum(found) AS found FROM ({booked}) GROUP BY law, date, h"
    rows = engine.rows(f"SELECT DISTINCT law FROM ({sums}) WHERE expected IS DISTINCT FROM found")
    return {laws[row["law"]].name for row in rows}
