"""The carried tables of an IOTA network: which frame becomes which."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from permalake.errors import PermalakeError
from permalake.iota.contracts import IOTA_TABLES, carried
from permalake.iota.tables import address_state as addresses
from permalake.iota.tables import ledger_daily as ledger
from permalake.iota.tables.carried_sums import Chained, Ending, Rows, chained, frame
from permalake.iota.tables.known_ledger import beginning
from permalake.spark.frames import of_rows

_FEW_ROWS = ("ledger_outputs", "unlock_conditions", "token_distribution", "active_addresses")
Tables = Callable[[str], DataFrame]
Group = dict[str, Callable[[], DataFrame]]
Span = tuple[date, int, int]
_KEPT = StorageLevel.MEMORY_AND_DISK


@dataclass(frozen=True, slots=True)
class StateRules:
    """Settings of a network that carried tables need.

    Attributes:
        richest: How many addresses ``richest_addresses`` holds.
        v_byte_cost: Rent per weighted byte (TIP-19) in base tokens; None where it is not known.
        rented: Whether outputs need a storage deposit (Stardust).
        ledger: Returns the outputs unspent before the network's first day, and the milestone after which they
            are so, where that is known (:mod:`~permalake.iota.tables.known_ledger`).
    """

    richest: int = 100
    v_byte_cost: int | None = None
    rented: bool = True
    ledger: Callable[[], tuple[DataFrame, int]] | None = None


def carried_tables(
    own: Tables, published: Tables, days: Sequence[Span], rules: StateRules, stale: Collection[date] = ()
) -> Group:
    """Return the carried tables of a range of days.

    Args:
        own: Gives the rows of these days of a table, as published.
        published: Gives a whole table, as published.
        days: (date, first milestone, last milestone) in order.
        rules: Settings of the network.
        stale: Days whose carried rows cannot be trusted.

    Raises:
        PermalakeError: A day was built by a version without ``ledger_changes``, and its carried rows are
            missing or stale.
    """
    if not days:
        return _nothing(own)
    earlier = F.col("date") < F.lit(days[0][0])
    history: Tables = lambda name: published(name).where(earlier)  # noqa: E731
    before = _ending(history)
    if before is None and rules.ledger:
        history = _beginning(*rules.ledger(), rules)
        before = _ending(history)
    flows, touched = _changes(own, _Prior(history, before), days, stale)
    return _built(flows, touched, chained(days, before), _Prior(history, before), rules)


def _nothing(own: Tables) -> Group:
    return {table.name: partial(own(table.name).limit, 0) for table in carried.TABLES}


def _changes(
    own: Tables, prior: _Prior, days: Sequence[Span], stale: Collection[date]
) -> tuple[Rows, DataFrame]:
    """Return what the days changed in the ledger: rows of ``ledger_changes``, and addresses touched.

    Days that were published by a version without these tables are told by their carried rows, which hold
    sums and balances of consecutive days.
    """
    flows = _dicts(own("ledger_changes").collect())  # a dozen rows a day
    touched = addresses.touched(own("balance_changes"))
    old = sorted({day for day, _, _ in days} - {row["date"] for row in flows})
    if not old:
        return flows, touched
    of_old = F.col("date").isin(old)
    totals = _dicts(own("ledger_totals").where(F.col("date") <= F.lit(old[-1])).collect())
    if untold := set(old) - ({row["date"] for row in totals} - set(stale)):
        raise PermalakeError(
            f"{min(untold)} was built by an earlier version, which did not say what it changed in the "
            "ledger; build it again with --force"
        )
    flows += ledger.changes_before(
        _dicts(own("ledger_outputs").where(of_old).collect()),
        _dicts(own("unlock_conditions").where(of_old).collect()),
        [*_dicts(prior.last("ledger_totals")), *totals],
    )
    kept = {row["date"] for row in flows if row["kind"] is not None}
    balances = prior.since_checkpoint("address_balances").unionByName(own("address_balances"))
    known = addresses.touched_before(balances).where(of_old)
    return [row for row in flows if row["date"] in kept], touched.unionByName(known)


def _dicts(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [row.asDict() for row in rows]


def _beginning(outputs: DataFrame, milestone: int, rules: StateRules) -> Tables:
    """Return the carried tables of a day that ends with ``milestone`` and the whole ledger, ``outputs``."""

    def nothing(name: str) -> DataFrame:
        return of_rows(outputs.sparkSession, [], IOTA_TABLES[name].spark)

    held = outputs.where(F.col("owner").isNotNull()).groupBy("date", F.col("owner").alias("address"))
    touched = held.agg(F.sum("amount").alias("delta"), F.lit(False).alias("is_active"))
    tables = _built(
        _dicts(ledger.sums(outputs, rules.v_byte_cost).collect()),
        touched,
        [beginning(milestone)],
        _Prior(nothing, None),
        rules,
    )
    return lambda name: tables[name]()


def _built(flows: Rows, touched: DataFrame, days: list[Chained], prior: _Prior, rules: StateRules) -> Group:
    spark = touched.sparkSession
    here = frame(spark, days)
    state = addresses.state(prior.since_checkpoint("address_balances")).persist(_KEPT)
    changes = addresses.changes(touched, here, state).persist(_KEPT)
    standing = addresses.standing(changes, state)
    counted = _at_once(
        summaries=addresses.summary(changes).collect,
        **{name: partial(prior.last, name) for name in _FEW_ROWS},
    )
    figures = _figures(flows, counted, days, prior, rules)

    def small(name: str) -> DataFrame:
        contract = IOTA_TABLES[name]
        rows = [tuple(row[column] for column in contract.names) for row in figures[name]]
        return of_rows(spark, rows, contract.spark)

    return {
        **{name: partial(small, name) for name in figures},
        "address_balances": lambda: addresses.address_balances(changes, standing, here),
        "richest_addresses": lambda: addresses.richest_addresses(standing, here, rules.richest),
    }


def _figures(
    flows: Rows,
    counted: dict[str, list[dict[str, Any]]],
    days: list[Chained],
    prior: _Prior,
    rules: StateRules,
) -> dict[str, list[dict[str, Any]]]:
    """Return rows of the tables with a few rows a day.

    ``flows`` are rows of ``ledger_changes``; ``counted`` holds sums over addresses per day, and the tables'
    own rows of the day before the range.
    """
    summaries = counted["summaries"]
    outputs = ledger.ledger_outputs(flows, days, counted["ledger_outputs"])
    distribution = addresses.token_distribution(summaries, days, counted["token_distribution"])
    fingerprints = addresses.fingerprints(summaries, days, prior.fingerprint)
    deposits = ledger.storage_deposits(flows, days, prior.storage_deposit)
    totals = [
        {
            **ledger.ledger_size(outputs, day.day, deposits[day.day], rules.rented),
            "milestone_index": day.end_ms,
            "holders": sum(row["addresses"] for row in distribution if row["date"] == day.day),
            "checkpoint": day.checkpoint,
            "fingerprint": fingerprints[day.day],
            **day.stamp,
        }
        for day in days
    ]
    return {
        "ledger_outputs": outputs,
        "unlock_conditions": ledger.unlock_conditions(flows, days, counted["unlock_conditions"]),
        "token_distribution": distribution,
        "active_addresses": addresses.active_addresses(summaries, days, counted["active_addresses"]),
        "ledger_totals": totals,
    }


def _at_once(**queries: Callable[[], list[Row]]) -> dict[str, list[dict[str, Any]]]:
    """Run queries with small results in parallel."""
    with ThreadPoolExecutor(len(queries)) as pool:
        asked = {name: pool.submit(query) for name, query in queries.items()}
        return {name: _dicts(one.result()) for name, one in asked.items()}


class _Prior:
    """Rows of the carried tables of the day before the range."""

    def __init__(self, history: Tables, before: Ending | None) -> None:
        self._history = history
        self._before = before

    @property
    def fingerprint(self) -> int:
        """Fingerprint of the addresses at that day's end."""
        return self._before.fingerprint if self._before else 0

    @property
    def storage_deposit(self) -> int | None:
        """Storage deposit of all outputs unspent at that day's end; None where it is not known."""
        return self._before.storage_deposit if self._before else 0

    def last(self, name: str) -> list[Row]:
        """Return that day's rows of a table with a few rows a day."""
        if self._before is None:
            return []
        return self._history(name).where(F.col("date") == F.lit(self._before.day)).collect()

    def since_checkpoint(self, name: str) -> DataFrame:
        """Return a table's rows since that day's checkpoint."""
        table = self._history(name)
        if self._before is None:
            # Without rows: Spark folds away whatever an empty local relation takes part in.
            return of_rows(table.sparkSession, [], table.schema)
        since, until = F.lit(self._before.checkpoint), F.lit(self._before.day)
        return table.where(F.col("date").between(since, until))


def _ending(history: Tables) -> Ending | None:
    """Return the end of the latest day; its date is found in metadata, however many days there are."""
    totals = history("ledger_totals")
    latest = totals.agg(F.max("date")).first()[0]  # type: ignore[index]
    row = totals.where(F.col("date") == F.lit(latest)).first() if latest else None
    if row is None:
        return None
    return Ending(
        row["date"],
        row["milestone_index"],
        row["since_milestone"],
        row["checkpoint"],
        row["fingerprint"],
        row["storage_deposit"],
    )


def spans(date_cache: DataFrame) -> list[Span]:
    """Return days with milestones in order: (date, first milestone, last milestone)."""
    rows = date_cache.select("date", "start_ms", "end_ms").collect()  # a row a day
    return sorted(tuple(row) for row in rows)
