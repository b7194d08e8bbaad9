"""Which frame becomes which running table of an IOTA network. They go on from the day before the range."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import partial
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
_KEPT = StorageLevel.MEMORY_AND_DISK


@dataclass(frozen=True, slots=True)
class StateRules:
    """``richest`` addresses are listed; ``v_byte_cost`` is TIP-19's, None where it is not known; ``rented``:
    outputs need a storage deposit (Stardust); ``ledger`` gives what was unspent before the network's first
    day (see :mod:`~permalake.iota.tables.known_ledger`) and after which milestone, where that is known."""

    richest: int = 100
    v_byte_cost: int | None = None
    rented: bool = True
    ledger: Callable[[], tuple[DataFrame, int]] | None = None


def state_tables(
    decoded: DataFrame, staged: Tables, history: Tables, rules: StateRules, refused: Collection[date] = ()
) -> Group:
    """The running tables.

    ``staged`` gives a table of the range as staged before, ``history`` what is published of it before the
    range. Days that stay unpublished (``refused``) are no part of what later ones go on from.
    """
    before = _ending(history)
    if before is None and rules.ledger:
        history = _beginning(*rules.ledger(), rules)
        before = _ending(history)
    days = chained(_days(staged("date_cache"), refused), before)
    touched = addresses.touched(decoded, staged("address_analytics"))
    return _built(ledger.flows(decoded), touched, days, _Prior(history, before), rules)


def _beginning(outputs: DataFrame, milestone: int, rules: StateRules) -> Tables:
    """What a day would leave behind that ends with ``milestone`` and the whole ledger, ``outputs``."""

    def nothing(name: str) -> DataFrame:
        return outputs.sparkSession.createDataFrame([], IOTA_TABLES[name].spark)

    held = outputs.where(F.col("owner").isNotNull()).groupBy("date", F.col("owner").alias("address"))
    touched = held.agg(F.sum("amount").alias("delta"), F.lit(False).alias("is_active"))
    tables = _built(ledger.sums(outputs), touched, [beginning(milestone)], _Prior(nothing, None), rules)
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
    figures = _figures(counted, days, prior.fingerprint, rules)

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
    counted: dict[str, list[dict[str, Any]]], days: list[Chained], fingerprint: int, rules: StateRules
) -> dict[str, list[dict[str, Any]]]:
    """Rows of the tables with a few rows a day, from what two passes ``counted`` per day and from their own
    rows of the day before the range."""
    flows, summaries = counted["flows"], counted["summaries"]
    outputs = ledger.ledger_outputs(flows, days, counted["ledger_outputs"])
    distribution = addresses.token_distribution(summaries, days, counted["token_distribution"])
    fingerprints = addresses.fingerprints(summaries, days, fingerprint)
    totals = [
        {
            **ledger.ledger_size(outputs, day.day, rules.v_byte_cost, rules.rented),
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
    """Small results of queries that do not wait for each other."""
    with ThreadPoolExecutor(len(queries)) as pool:
        asked = {name: pool.submit(query) for name, query in queries.items()}
        return {name: [row.asDict() for row in one.result()] for name, one in asked.items()}


class _Prior:
    """Rows of the running tables as the day before the range left them."""

    def __init__(self, history: Tables, before: Ending | None) -> None:
        self._history = history
        self._before = before

    @property
    def fingerprint(self) -> int:
        """Of the addresses' state at that day's end."""
        return self._before.fingerprint if self._before else 0

    def last(self, name: str) -> list[Row]:
        """Rows of that day, of a table with a few rows a day."""
        if self._before is None:
            return []
        return self._history(name).where(F.col("date") == F.lit(self._before.day)).collect()

    def since_checkpoint(self, name: str) -> DataFrame:
        """Rows from its checkpoint on."""
        table = self._history(name)
        if self._before is None:
            # Without rows: Spark folds away whatever an empty local relation takes part in.
            return table.sparkSession.createDataFrame([], table.schema)
        since, until = F.lit(self._before.checkpoint), F.lit(self._before.day)
        return table.where(F.col("date").between(since, until))


def _ending(history: Tables) -> Ending | None:
    """The state that the latest day before the range left; found in the metadata, however many there are."""
    totals = history("ledger_totals")
    latest = totals.agg(F.max("date")).first()[0]  # type: ignore[index]
    row = totals.where(F.col("date") == F.lit(latest)).first() if latest else None
    if row is None:
        return None
    return Ending(
        *(row[name] for name in ("date", "milestone_index", "since_milestone", "checkpoint", "fingerprint"))
    )


def _days(date_cache: DataFrame, refused: Collection[date]) -> list[tuple[date, int, int]]:
    rows = date_cache.select("date", "start_ms", "end_ms").collect()  # a row a day
    return sorted(tuple(row) for row in rows if row["date"] not in refused)
