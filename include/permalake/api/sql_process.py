"""The process of a statement, which loads neither a web framework nor Iceberg."""

from __future__ import annotations

from dataclasses import dataclass

from permalake.config import Settings
from permalake.domains import domain_of
from permalake.errors import PermalakeError
from permalake.lake.identity import open_database
from permalake.lake.json_rows import json_rows
from permalake.lake.query import run_query
from permalake.query_process import QueryLimits, Send, limit_memory

_MOST_BYTES = 32 << 20


@dataclass(frozen=True)
class SqlOrder:
    """A statement, its limits, at most how many of its rows are sent, and in which form.

    ``publication``: the one whose state it reads; None: the last.
    """

    text: str
    limits: QueryLimits
    rows: int
    form: str
    publication: int | None = None


def send_answer(send: Send, settings: Settings, order: SqlOrder) -> None:
    """Send columns, then rows, at most so many, and whether there are more."""
    database = open_database(settings, settings.serve.catalog_wait)
    limit_memory(order.limits)
    result = run_query(database, domain_of, order.text, order.publication, order.limits)
    is_parquet = order.form == "parquet"
    kinds = [str(kind) for kind in result.kinds]
    send(("columns", (result.names, kinds, result.schema if is_parquet else None)))
    room, space = order.rows, _MOST_BYTES
    for batch in result.batches():
        kept = batch.slice(0, room)
        if kept.nbytes > _MOST_BYTES:
            raise PermalakeError(
                f"an answer has at most {_MOST_BYTES >> 20} MiB, and some of its rows are larger: "
                "select parts of their values, such as left(text, 1000)"
            )
        if kept.nbytes > space:
            kept = kept.slice(0, 0)
        if kept:
            rows = kept if is_parquet else list(json_rows([kept], result.names, result.kinds))
            send(("batch" if is_parquet else "items", rows))
        if len(kept) < len(batch):
            send(("cut", None))
            return
        room -= len(kept)
        space -= kept.nbytes
