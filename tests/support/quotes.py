"""Wants and quotes of tests, as the queries of prices read them in one process."""

from __future__ import annotations

import pyarrow as pa

from permalake.pipeline.relations import LocalQueries
from permalake.spark.tasks import TaskShare
from permalake.wormhole.contracts.tables import TOKEN_PRICES
from permalake.wormhole.tables.nearest_quotes import NEAREST, PRICED, QUOTE, QUOTES, WANT, WANTS, nearest

LOCAL = LocalQueries(TaskShare("256m", 1))


def wants(*rows):
    """Wants of (chain, address, moment)."""
    return pa.Table.from_pylist([dict(zip(WANT.names, row, strict=True)) for row in rows], WANT)


def stored_quotes(*rows):
    """Rows of ``token_prices`` of (chain, address, provider, moment, price)."""
    named = [dict(zip(QUOTE.names, row, strict=False)) for row in rows]
    dated = [{**row, "date": row["quote_time"].date()} for row in named]
    return pa.Table.from_pylist(dated, pa.schema([field.with_nullable(True) for field in TOKEN_PRICES.arrow]))


def nearest_rows(wanted, quotes, rules):
    """The nearest quotes, in the order of tokens and moments."""
    given = {WANTS: wanted, QUOTES: quotes}
    rows = LOCAL.results({PRICED: nearest(rules)}, {PRICED: NEAREST}, given)[PRICED].to_pylist()
    return sorted(rows, key=lambda row: (row["origin_chain"], row["origin_address"], row["at"]))
