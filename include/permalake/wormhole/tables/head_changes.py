"""Judged VAAs of messages that a live head may have already → what it gains and loses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from permalake.contracts import QUARANTINE
from permalake.contracts.quarantine import RAW_LIMIT, whole_in_words

_PUBLICATION, _QUORUM = "message_publication", "quorum_state"
_INPUT = ("date", "reason", "raw")


@dataclass(frozen=True)
class HeadChanges:
    """Rows to add by table, and the messages whose rows the head has and must lose (row keys)."""

    added: Mapping[str, pa.Table]
    gone: frozenset[str]

    @property
    def messages(self) -> pa.Table:
        """The rows of ``message_publication`` to add."""
        return self.added[_PUBLICATION]


def changes(made: Mapping[str, pa.Table], publication: pa.Table, quorum_state: pa.Table) -> HeadChanges:
    """Compare the rows of messages as they now are judged with those that the head has of them.

    ``made``: rows of all tables by name; ``publication`` and ``quorum_state``: rows of the head.
    """
    before = _facts(publication, quorum_state)
    after = _facts(made[_PUBLICATION], made[_QUORUM])
    same = {key for key, facts in after.items() if before.get(key) == facts}
    new = pa.array(sorted(after.keys() - same), pa.string())
    added = {name: rows.filter(pc.is_in(rows["row_key"], value_set=new)) for name, rows in made.items()}
    return HeadChanges(added, frozenset(before.keys() - same))


def _facts(publication: pa.Table, quorum_state: pa.Table) -> dict[str, tuple[object, ...]]:
    """Return by message: its day, transaction and VAA."""
    names = ("row_key", "date", "initiating_tx_id")
    columns = zip(*(publication[name].to_pylist() for name in names), strict=True)
    vaas = dict(zip(quorum_state["row_key"].to_pylist(), quorum_state["signed_vaa"].to_pylist(), strict=True))
    return {key: (day, tx_id, vaas.get(key)) for key, day, tx_id in columns}


def quarantine_rows(refused: pa.Table, present: ds.Dataset, seen_at: datetime) -> pa.Table:
    """Return the rows of the quarantine whose input is not ``present``, each once, of a long one its head.

    The same input from another file is no news.
    """
    if not len(refused):
        return QUARANTINE.arrow.empty_table()
    shortened = [_shortened(row) for row in refused.to_pylist()]
    inputs = pa.array([row["raw"] for row in shortened], QUARANTINE.arrow.field("raw").type)
    same_input = present.to_table(list(_INPUT), filter=pc.field("raw").isin(inputs))
    recorded = {tuple(row.values()) for row in same_input.to_pylist()}
    rows = []
    for row in shortened:
        key = tuple(row[name] for name in _INPUT)
        if key not in recorded:
            recorded.add(key)
            rows.append(row | {"seen_at": seen_at})
    return pa.Table.from_pylist(rows, schema=QUARANTINE.arrow)


def _shortened(row: dict[str, object]) -> dict[str, object]:
    raw = row["raw"]
    if not isinstance(raw, bytes) or len(raw) <= RAW_LIMIT:
        return row
    whole = whole_in_words(len(raw), sha256(raw).hexdigest())
    detail = "; ".join(filter(None, (row["detail"], whole)))  # type: ignore[arg-type]
    return row | {"raw": raw[:RAW_LIMIT], "detail": detail}


def without(tables: Mapping[str, pa.Table], column: str, values: Iterable[object]) -> dict[str, pa.Table]:
    """Return tables without the rows that have one of some values in a column."""
    kept = {}
    for name, rows in tables.items():
        gone = pc.is_in(rows[column], value_set=pa.array(list(values), rows.schema.field(column).type))
        kept[name] = rows.filter(pc.invert(gone))
    return kept
