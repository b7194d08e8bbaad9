"""Outcomes of queries: failing rows of rules and violations of laws, counted per day, with examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from permalake.audit.findings import one_line
from permalake.audit.hash_prefilter import hash_prefilter
from permalake.audit.laws import Law, violations_of
from permalake.audit.scope import Scope
from permalake.audit.suite import Rule, shown
from permalake.contracts.schema import Table
from permalake.engine.duckdb_engine import DuckDBEngine

SAMPLE = 5
"""Failing rows to report of each day."""
KEY_UNIQUE = "key_unique"
_OF_LAWS = ("place", "expected", "found")


@dataclass(frozen=True)
class Outcome:
    """The outcome of one expectation.

    Attributes:
        count: Failing rows.
        days: Failing rows per day.
        sample: Some of each day.
        error: Why it could not be computed.
    """

    count: int = 0
    days: Mapping[str, int] = field(default_factory=dict)
    sample: Sequence[Mapping[str, Any]] = ()
    error: str | None = None


Outcomes = dict[str, Outcome]
"""Outcomes by name of the expectation."""


def rule_outcomes(engine: DuckDBEngine, table: Table, rules: Sequence[Rule]) -> Outcomes:
    """Judge the rows of a table by its key and rules: all rules in one scan.

    Only the rows of a failing rule are looked for. If the scan fails, no rule is known to hold.
    """
    try:
        outcomes = {KEY_UNIQUE: _of_key(engine, table)}
        for rule, count in zip(rules, failing_rows(engine, table, rules), strict=True):
            rows = f"SELECT * FROM {table.name} WHERE NOT ({rule.predicate})"
            outcome = _details(engine, rows, shown(table, rule.predicate)) if count else Outcome()
            outcomes[rule.name] = Outcome(count, outcome.days, outcome.sample)
    except Exception as error:  # noqa: BLE001 (reported as the outcome)
        lost = Outcome(error=one_line(error))
        return {KEY_UNIQUE: lost} | {rule.name: lost for rule in rules}
    return outcomes


def failing_rows(engine: DuckDBEngine, table: Table, rules: Sequence[Rule]) -> list[int]:
    """Return the number of rows that violate each rule, by one scan."""
    counts = ", ".join(
        f"coalesce(count_if(NOT ({rule.predicate})), 0) AS rule_{at}" for at, rule in enumerate(rules)
    )
    [row] = engine.rows(f"SELECT {counts} FROM {table.name}")
    return [int(row[f"rule_{at}"]) for at in range(len(rules))]


def _of_key(engine: DuckDBEngine, table: Table) -> Outcome:
    key = ", ".join(table.key)
    # Keys are compared by their hashes first, which are short to exchange: equal keys have equal hashes.
    hashed = f"SELECT hash(({key})) AS h FROM {table.name}"
    if not engine.rows(f"SELECT h FROM ({hashed}) GROUP BY h HAVING count(*) > 1 LIMIT 1"):
        return Outcome()
    rows = f"SELECT count(*) AS n FROM {table.name} GROUP BY {key} HAVING count(*) > 1"
    [row] = engine.rows(f"SELECT coalesce(sum(n - 1), 0) AS surplus FROM ({rows})")
    surplus = int(row["surplus"])
    if not surplus:
        return Outcome()
    # A key on several days is a fault of each of them.
    columns = [name for name in table.key if name != "date"]
    counted = f"SELECT date, {key}, count(*) OVER (PARTITION BY {key}) AS n FROM {table.name}"
    if "date" in table.key:
        counted = counted.replace("SELECT date, ", "SELECT ", 1)
    twice = f"SELECT DISTINCT {', '.join(['date', *columns])}, n AS rows FROM ({counted}) WHERE n > 1"
    outcome = _details(engine, twice, [*columns, "rows"])
    return Outcome(surplus, outcome.days, outcome.sample)


def law_outcomes(laws: Sequence[Law], scope: Scope) -> Outcomes:
    """Judge laws, each with the engine of the tables that it reads.

    Of laws about large tables it is asked first which may be violated, of all laws at once.
    """
    outcomes: Outcomes = {}
    large = [law for law in laws if scope.reads_large(*law.sides)]
    suspected = hash_prefilter(large, scope)
    for law in laws:
        if law in large and law.name not in suspected:
            outcomes[law.name] = Outcome()
            continue
        try:
            outcomes[law.name] = _of_law(law, scope)
        except Exception as error:  # noqa: BLE001 (reported as the outcome)
            outcomes[law.name] = Outcome(error=one_line(error))
    return outcomes


def _of_law(law: Law, scope: Scope) -> Outcome:
    engine = scope.engine(*law.sides)
    if law.check is not None:
        engine.keep(f"checked_{law.name}", law.sides[0], law.check)
    outcome = _details(engine, violations_of(law), _OF_LAWS)
    sample = [{name: _number(value) for name, value in row.items()} for row in outcome.sample]
    return Outcome(outcome.count, outcome.days, sample)


def _details(engine: DuckDBEngine, failing: str, columns: Sequence[str]) -> Outcome:
    """Count failing rows per day, and return a few of each day."""
    listed = "".join(f", {name}" for name in columns)
    order = ", ".join(columns) or "date"
    few = engine.rows(
        f"SELECT date{listed}, of_day, nth FROM ("
        f"SELECT date{listed}, count(*) OVER (PARTITION BY date) AS of_day, "
        f"row_number() OVER (PARTITION BY date ORDER BY {order}) AS nth FROM ({failing})) "
        f"WHERE nth <= {SAMPLE} ORDER BY date, nth"
    )
    days = {_plain(row["date"]) or "": int(row["of_day"]) for row in few}
    sample = [{name: _plain(row[name]) for name in ("date", *columns)} for row in few]
    return Outcome(sum(days.values()), days, sample)


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return value.hex()
    return f"{value:f}" if isinstance(value, Decimal) else value


def _number(value: Any) -> Any:
    """Return text of a decimal without trailing zeros."""
    is_number = isinstance(value, str) and value.replace(".", "", 1).lstrip("-").isdigit() and "." in value
    return value.rstrip("0").rstrip(".") if is_number else value
