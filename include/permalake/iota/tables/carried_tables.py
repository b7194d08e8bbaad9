"""The carried tables of an IOTA network: which frame becomes which."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import partial, reduce
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.tables import address_state as addresses
from permalake.iota.tables import ledger_daily as ledger
from permalake.iota.tables.carried_sums import Chained, Ending, chained, frame
from permalake.iota.tables.day_tables import Group, Tables
from permalake.iota.tables.known_ledger import beginning

_FEW_ROWS = ("ledger_outputs", "unlock_conditions", "token_distribution", "active_addresses")
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


def state_tables(
    decoded: DataFrame, staged: Tables, published: Tables, rules: StateRules, refused: Collection[date] = ()
) -> Group:
    """Return the carried tables of a range of days.

    Args:
        decoded: Decoded rows of the range.
        staged: Gives a table of the range that was staged before.
        published: Gives a table as it was published when the attempt began.
        rules: Settings of the network.
        refused: Days of the range that stay as they were published. Later days continue from that
            publication, and without one from the day before.
    """
    touched = addresses.touched(decoded, staged("address_analytics"))
    flows = ledger.flows(decoded, rules.v_byte_cost)
    parts = []
    for days in _parts(_days(staged("date_cache"), refused), _published_days(published, refused)):
        history = _until(published, days[0][0]) if days else published
        before = _ending(history)
        if before is None and rules.ledger:
            history = _beginning(*rules.ledger(), rules)
            before = _ending(history)
        parts.append(_built(flows, touched, chained(days, before), _Prior(history, before), rules))
    return {name: partial(_united, [part[name] for part in parts]) for name in parts[0]}


def _until(tables: Tables, day: date) -> Tables:
    return lambda name: tables(name).where(F.col("date") < F.lit(day))


def _united(frames: Sequence[Callable[[], DataFrame]]) -> DataFrame:
    return reduce(DataFrame.unionByName, (frame() for frame in frames))


def _published_days(published: Tables, days: Collection[date]) -> list[date]:
    """Return which of the days were published, in order."""
    if not days:
        return []
    rows = published("ledger_totals").where(F.col("date").isin(list(days))).select("date").collect()
    return sorted(row["date"] for row in rows)


def _parts(days: Sequence[Span], kept: Sequence[date]) -> list[list[Span]]:
    """Split the days after each ``kept`` date; one empty part when there is no day."""
    parts: dict[int, list[Span]] = {}
    for day in days:
        parts.setdefault(bisect(kept, day[0]), []).append(day)
    return list(parts.values()) or [[]]


def _beginning(outputs: DataFrame, milestone: int, rules: StateRules) -> Tables:
    """Return the carried tables of a day that ends with ``milestone`` and the whole ledger, ``outputs``."""

    def nothing(name: str) -> DataFrame:
        return outputs.sparkSession.createDataFrame([], IOTA_TABLES[name].spark)

    held = outputs.where(F.col("owner").isNotNull()).groupBy("date", F.col("owner").alias("address"))
    touched = held.agg(F.sum("amount").alias("delta"), F.lit(False).alias("is_active"))
    tables = _built(
        ledger.sums(outputs, rules.v_byte_cost),
        touched,
        [beginning(milestone)],
        _Prior(nothing, None),
        rules,
    )
    return lambda name: tables[name]()


def _built(
    flows: DataFrame, touched: DataFrame, days: list[Chained], prior: _Prior, rules: StateRules
) -> Group:
    spark = flows.sparkSession
    here = frame(spark, days)
    state = addresses.state(prior.since_checkpoint("address_balances")).persist(_KEPT)
    changes = addresses.changes(touched, here, state).persist(_KEPT)
    standing = addresses.standing(changes, state)
    counted = _at_once(
        flows=flows.collect,
        summaries=addresses.summary(changes).collect,
        **{name: partial(prior.last, name) for name in _FEW_ROWS},
    )
    figures = _figures(counted, days, prior, rules)

    def small(name: str) -> DataFrame:
        contract = IOTA_TABLES[name]
        rows = [tuple(row[column] for column in contract.names) for row in figures[name]]
        return spark.createDataFrame(rows, contract.spark).coalesce(1)

    return {
        **{name: partial(small, name) for name in figures},
        "address_balances": lambda: addresses.address_balances(changes, standing, here),
        "richest_addresses": lambda: addresses.richest_addresses(standing, here, rules.richest),
    }


def _figures(
    counted: dict[str, list[dict[str, Any]]], days: list[Chained], prior: _Prior, rules: StateRules
) -> dict[str, list[dict[str, Any]]]:
    """Return rows of the tables with a few rows a day.

    ``counted`` holds figures per day from two passes, and the tables' own rows of the day before the range.
    """
    flows, summaries = counted["flows"], counted["summaries"]
    outputs = ledger.ledger_outputs(flows, days, counted["ledger_outputs"])
    distribution = addresses.token_distribution(summaries, days, counted["token_distribution"])
    fingerprints = addresses.fingerprints(summaries, days, prior.fingerprint)
    is_priced = rules.v_byte_cost is not None
    deposits = ledger.storage_deposits(flows, days, prior.storage_deposit) if is_priced else {}
    totals = [
        {
            **ledger.ledger_size(outputs, day.day, deposits.get(day.day), rules.rented),
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
        return {name: [row.asDict() for row in one.result()] for name, one in asked.items()}


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
            return table.sparkSession.createDataFrame([], table.schema)
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


def _days(date_cache: DataFrame, refused: Collection[date]) -> list[Span]:
    rows = date_cache.select("date", "start_ms", "end_ms").collect()  # a row a day
    return sorted(tuple(row) for row in rows if row["date"] not in refused)
