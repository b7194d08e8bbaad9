"""What the cone found wrong, out of decoded rows in frames."""

from __future__ import annotations

from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.iota.cone import verdict
from permalake.iota.cone.decoded import Row


def found(decoded, query):
    """Rows of a query over ``problems``."""
    problems = decoded.where(f"kind = {int(Row.PROBLEM)}").toArrow()
    engine = DuckDBEngine(lambda _: problems)
    engine.open("problems")
    try:
        return engine.rows(query)
    finally:
        engine.release()


def refused_days(decoded, days):
    return verdict.refused_days(found(decoded, verdict.FIRST_CAUSES), days)


def disagreements(decoded):
    return {row["date"]: row["transactions"] for row in found(decoded, verdict.DISAGREEMENTS)}


def quarantine(decoded, source):
    return found(decoded, verdict.rejected(source))
