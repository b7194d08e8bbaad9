"""Price provider ``file``: quotes from CSV (plain or gzip, one file or a folder of them)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from permalake.contracts.sql_text import same
from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.engine.rows import Relation
from permalake.errors import ConfigError
from permalake.pipeline.line_files import LineRange, files_below, refuse_damaged
from permalake.pipeline.line_tasks import csv_batches, csv_parts
from permalake.pipeline.relations import QueryRunner, table
from permalake.spark.tasks import TaskShare
from permalake.wormhole.contracts.value_reasons import NO_QUOTE, NOT_ASKED
from permalake.wormhole.enrich.price_providers import PriceProvider
from permalake.wormhole.enrich.price_service import PriceCache, days_within_reach
from permalake.wormhole.enrich.provider_context import ProviderContext
from permalake.wormhole.enrich.quotes import invalid_quotes
from permalake.wormhole.reference import TokenId
from permalake.wormhole.tables.nearest_quotes import QUOTE, TOKEN, WANTS
from permalake.wormhole.tables.used_quotes import SPAN, SPANS, STORED, is_price, reach, spans, stored_near

NAME = "file"
_LINES, _READ, _NEAR, _ROWS = "csv_lines", "quotes_of_files", "near_quotes", "compared_quotes"
_COLUMNS = pa.schema([(name, pa.string()) for name in ("quoted_at", "chain", "token_address", "price_usd")])
_KEY = (*TOKEN, "provider", "quote_time")
_VALID = f"coalesce({is_price('price_usd')}, false)"
_CHOSEN = "chosen_quotes"
_INVALID = pa.schema([("invalid", pa.int64())])
_DIFFERING = pa.schema(
    [
        *(("differing", pa.int64()), ("token", pa.string()), ("moment", pa.string())),
        *(("stored_usd", pa.decimal128(38, 18)), ("price_usd", pa.decimal128(38, 18))),
    ]
)


def open_provider(context: ProviderContext) -> PriceProvider:
    """Open the quotes at ``prices.path``, or at the path of a fallback."""
    return FilePrices(context.source.path, context.window_hours, context.cache, context.asking.anew)


@dataclass
class FilePrices:
    """Quotes in CSV files; without a path nothing has a price.

    The header holds at least ``quoted_at`` (RFC 3339), ``chain`` (Wormhole id), ``token_address`` (32 bytes,
    hex) and ``price_usd``.

    A quote that the lake has stored counts, whatever the file says of that moment now; with ``anew`` the file
    counts. Without a ``cache`` nothing is stored. Files are read once for the days of what is wanted, and
    again once they have changed.
    """

    path: Path | None
    window_hours: float
    cache: PriceCache | None = None
    anew: bool = False
    _held: _HeldQuotes | None = field(default=None, init=False, repr=False)

    def quotes(self, runner: QueryRunner, wants: Relation) -> Relation:
        """Return quotes of the wanted tokens that lie within reach of any wanted time."""
        if self.path is None:
            return QUOTE.empty_table()
        want_spans = table(runner.results({SPANS: spans(WANTS)}, {SPANS: SPAN}, {WANTS: wants})[SPANS])
        days = days_within_reach(want_spans, self.window_hours)
        read = self._read(runner, self.path, days)
        if days is None:
            return QUOTE.empty_table()
        given: dict[str, Relation] = {SPANS: want_spans, _READ: read}
        if self.cache is None:
            queries = {_NEAR: self._near(), _CHOSEN: _priced(f"SELECT * FROM {_NEAR}")}
            return runner.results(queries, {_CHOSEN: QUOTE}, given)[_CHOSEN]
        given[STORED] = self.cache.quotes(*days)
        first, second = ("price_usd", "stored_usd") if self.anew else ("stored_usd", "price_usd")
        chosen = f"SELECT * REPLACE (coalesce({first}, {second}) AS price_usd) FROM {_ROWS}"
        queries = {
            _NEAR: self._near(),
            _ROWS: _compared(self.window_hours),
            _CHOSEN: _priced(chosen),
            "invalid": f"SELECT coalesce(sum(invalid), 0) AS invalid FROM {_ROWS}",
            "differing": _DIFFERENCE,
        }
        schemas = {_CHOSEN: QUOTE, "invalid": _INVALID, "differing": _DIFFERING}
        results = runner.results(queries, schemas, given)
        self._note(table(results["invalid"]), table(results["differing"]).to_pylist(), self.cache)
        return results[_CHOSEN]

    def lack(self, token: TokenId) -> str:  # noqa: ARG002
        """Return why a token that was wanted has no quote here."""
        return NOT_ASKED if self.path is None else NO_QUOTE

    # -- Inside --------------------------------------------------------------------------------------

    def _read(self, runner: QueryRunner, path: Path, days: tuple[date, date] | None) -> Relation:
        """Return what the files have of some days, a row per line with a token and a moment."""
        files = files_below(path, (".csv", ".csv.gz"))
        if not files:
            raise ConfigError(
                f"prices.path: {path} does not exist or holds no CSV file of quotes; point it at one"
            )
        marks = tuple((str(file), stat.st_size, stat.st_mtime_ns) for file in files for stat in [file.stat()])
        held = self._held
        if held and held.marks == marks and (days is None or held.covers(*days)):
            return held.rows
        refuse_damaged(files, "prices.path")
        parts = csv_parts(files, _COLUMNS.names, "prices.path")
        if days is None:
            return QUOTE.empty_table()
        if held and held.marks == marks:
            days = min(days[0], held.first), max(days[1], held.last)
        rows = runner.read(QUOTE, parts, _QuoteReader(*days))
        self._held = _HeldQuotes(marks, *days, rows)
        return rows

    def _near(self) -> str:
        """Return the query of quotes near wants, null without a valid price; ``invalid`` counts others."""
        around = reach(self.window_hours)
        # Two prices at one moment would leave the choice to the order of lines.
        return f"""
SELECT {", ".join(f"quote.{name}" for name in _KEY)}, CAST(NULL AS DOUBLE) AS confidence,
    CAST(NULL AS STRING) AS coin,
    min(CASE WHEN {_VALID} THEN price_usd END) AS price_usd, count_if(NOT {_VALID}) AS invalid
FROM {_READ} AS quote JOIN {SPANS} AS span ON {same("quote", "span", *TOKEN)}
WHERE quote_time BETWEEN span.first - {around} AND span.last + {around}
GROUP BY {", ".join(f"quote.{name}" for name in _KEY)}
"""

    def _note(self, invalid: pa.Table, differing: list[Mapping[str, Any]], cache: PriceCache) -> None:
        if count := invalid["invalid"][0].as_py():
            cache.note(invalid_quotes(NAME, count))
        for row in differing if not self.anew else ():
            cache.note(
                f"prices: {NAME}: quotes that differ from the stored ones: {row['differing']}; the stored "
                f"ones count, --force takes the file's: token {row['token']} at {row['moment']}: "
                f"{row['stored_usd'].normalize():f} is stored, the file has {row['price_usd'].normalize():f}"
            )


@dataclass(frozen=True)
class _HeldQuotes:
    """What files with these marks (path, size, time of change) have of the days ``first..last``."""

    marks: tuple[tuple[str, int, int], ...]
    first: date
    last: date
    rows: Relation

    def covers(self, first: date, last: date) -> bool:
        return self.first <= first and last <= self.last


@dataclass(frozen=True)
class _QuoteReader:
    """Reads the quotes of the days ``first..last`` from a file, whatever their prices are."""

    first: date
    last: date

    def __call__(self, part: LineRange, share: TaskShare) -> Iterator[pa.RecordBatch]:
        engine = DuckDBEngine(dict[str, Relation]().__getitem__, memory=share.memory, threads=share.threads)
        try:
            lines = csv_batches(part, _COLUMNS)
            engine.put(_LINES, pa.RecordBatchReader.from_batches(_COLUMNS, lines))
            yield from engine.batches(f"""
SELECT * FROM (
    SELECT try_cast(chain AS INT) AS origin_chain, lower(trim(token_address)) AS origin_address,
        '{NAME}' AS provider, timezone('UTC', try_cast(quoted_at AS TIMESTAMPTZ)) AS quote_time,
        try_cast(price_usd AS DECIMAL(38, 18)) AS price_usd, CAST(NULL AS DOUBLE) AS confidence,
        CAST(NULL AS STRING) AS coin
    FROM {_LINES}
) AS typed
WHERE origin_chain IS NOT NULL AND origin_address IS NOT NULL
    AND quote_time >= DATE '{self.first}' AND quote_time < DATE '{self.last + timedelta(days=1)}'
""")
        finally:
            engine.release()


def _priced(rows: str) -> str:
    return f"SELECT {', '.join(QUOTE.names)} FROM ({rows}) AS every WHERE price_usd IS NOT NULL"


def _compared(window_hours: float) -> str:
    """Return the query of the near quotes, each with the stored one of its key."""
    return f"""
WITH stored AS ({stored_near(NAME, window_hours)})
SELECT near.*, stored.price_usd AS stored_usd
FROM {_NEAR} AS near LEFT JOIN stored ON {same("near", "stored", *_KEY)}
"""


_DIFFERENCE = f"""
SELECT count(*) OVER () AS differing, concat_ws(':', CAST(origin_chain AS STRING), origin_address) AS token,
    strftime(quote_time, '%Y-%m-%dT%H:%M:%SZ') AS moment, stored_usd, price_usd
FROM {_ROWS} WHERE stored_usd <> price_usd
ORDER BY quote_time, origin_chain, origin_address LIMIT 1
"""
"""Query of how many quotes differ from the stored ones, with an example: the first."""
