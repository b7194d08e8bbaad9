"""Days to audit: a small synthetic Stardust network without transactions, whose every table is at hand, and
the expected rows of a synthetic tangle with all kinds of transactions."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from hashlib import blake2b

import pyarrow as pa

from permalake.audit.configuration import Configuration
from permalake.audit.outcomes import law_outcomes
from permalake.audit.scope import Scope
from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.iota.codec.encode import MilestoneDraft, pack_milestone, pack_milestone_essence
from permalake.iota.codec.merkle import merkle_root
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.contracts.ledger_changes import KINDS, SIDES
from support import places

DAYS = (dt.date(2022, 9, 28), dt.date(2022, 9, 29), dt.date(2022, 9, 30))
FIRST, PER_DAY, BLOCKS = 100, 2, 3
TANGLE = places.DATA / "synthetic" / "stardust" / "expected"


def small_network(days=DAYS):
    """Rows by table: PER_DAY milestones a day of BLOCKS blocks with a tag each. Synthetic."""
    rows = {name: [] for name in IOTA_TABLES}
    index = FIRST
    for day in days:
        first = index
        for hour in range(PER_DAY):
            moment = dt.datetime.combine(day, dt.time(hour + 1), dt.UTC)
            _milestone(rows, day, index, moment)
            index += 1
        tags = sorted({row["tag"] for row in rows["tags"] if row["date"] == day})
        count = BLOCKS * PER_DAY
        rows["date_cache"].append({"date": day, "start_ms": first, "end_ms": index - 1})
        rows["metrics_cache"] += [
            {"date": day, "variant": "index", "metric": "used", "value": tag, "metric_value": None}
            for tag in tags
        ]
        _metrics(rows, day, first, index - 1)
        _activity(rows, day, tags)
        nobody = dict.fromkeys(("total_addresses", "send_addresses", "recv_addresses"), 0)
        rows["daily_analytics"].append({"year": day.year, "date": day, **nobody})
        rows["daily_extended"].append(
            {
                "date": day,
                "message_count": count,
                "included_transaction_count": 0,
                "conflicting_transaction_count": 0,
                "transferred_tokens": 0,
                "avg_outputs": None,
                "max_outputs": 0,
                "used_tags": len(tags),
            }
        )
    return rows


def _metrics(rows, day, first, last):
    """Rows of the day in the tables of metrics that have something to tell of days without transactions."""
    of_day = [row for row in rows["ms_activity"] if row["date"] == day]
    summed = {
        column.name: [0] * 11 if column.type == "list<int>" else sum(row[column.name] for row in of_day)
        for column in IOTA_TABLES["daily_activity"].columns
        if column.name in of_day[0] and column.name != "date"
    }
    rows["daily_activity"].append(
        {
            **summed,
            "date": day,
            "milestones": PER_DAY,
            "max_milestone_bytes": max(row["message_bytes"] for row in of_day),
            "booked_tokens": 0,
        }
    )
    rows["ledger_changes"] += [
        {**dict.fromkeys(IOTA_TABLES["ledger_changes"].names, 0), "kind": kind, "side": side, "date": day}
        for kind in KINDS
        for side in SIDES
    ]
    empty = dict.fromkeys(("outputs", "amount", "key_bytes", "data_bytes", "storage_deposit", "holders"), 0)
    empty["fingerprint"] = 0
    rows["ledger_totals"].append(
        {**empty, "milestone_index": last, "checkpoint": day, "since_milestone": first, "date": day}
    )


def _activity(rows, day, tags):
    """Rows of the day in the tables of its activity."""
    of_day = [row for row in rows["ms_activity"] if row["date"] == day]
    still = ("included_transactions", "conflicting_transactions", "transferred_tokens", "moved_tokens")
    rows["hourly_activity"] += [
        {
            **dict.fromkeys(still, 0),
            "date": day,
            "hour": hour + 1,
            "payload": "tagged_data",
            "messages": BLOCKS,
            "message_bytes": row["message_bytes"],
        }
        for hour, row in enumerate(of_day)
    ]
    rows["milestone_intervals"].append({"date": day, "seconds": 3600, "milestones": PER_DAY - 1})
    family = {"family": "", "tags": len(tags), "messages": BLOCKS * PER_DAY, **dict.fromkeys(still, 0)}
    rows["tag_families"].append({"date": day, **family})
    rows["top_tags"] += [
        {"date": day, "metric": "messages", "rank": rank, "tag": tag, "text": None, "value": PER_DAY}
        for rank, tag in enumerate(tags, 1)
    ]


def _milestone(rows, day, index, moment):
    blocks = [f"synthetic block {index}.{place}".encode() for place in range(BLOCKS)]
    ids = [blake2b(block, digest_size=32).digest() for block in blocks]
    draft = MilestoneDraft(
        index, int(moment.timestamp()), (ids[-1],), merkle_root([]), inclusion_root=merkle_root(ids)
    )
    essence = pack_milestone_essence(draft, "stardust")
    payload = pack_milestone(essence, [(bytes(32), bytes(64))], "stardust")
    here = {"milestone_index": index, "date": day}
    rows["milestones"].append(
        {
            **here,
            "message_id": None,
            "timestamp": int(moment.timestamp()),
            "payload": payload,
            "milestone_id": blake2b(essence, digest_size=32).hexdigest(),
        }
    )
    for place, (block, block_id) in enumerate(zip(blocks, ids, strict=True)):
        stated = {**here, "message_id": block_id.hex(), "inclusion_state": 2}
        rows["messages"].append(
            {
                **stated,
                "version": 2,
                "message": block,
                "white_flag_index": place,
                "conflict_reason": 0,
                "proof": None,
            }
        )
        rows["parents"].append({**stated, "parent_id": ids[place - 1].hex() if place else "00" * 32})
        rows["tags"].append({**stated, "tag": f"7a{place:02x}", "ms_range_id": 0, "ms_timestamp": moment})
    rows["ms_analytics"].append(
        {**here, "ms_range_id": 0, "message_count": BLOCKS, "transaction_count": 0, "transferred_tokens": 0}
    )
    size = sum(map(len, blocks))
    counts = {
        column.name: [0] * 11 if column.type == "list<int>" else 0
        for column in IOTA_TABLES["ms_activity"].columns
    }
    counted = {
        "tagged_data_count": BLOCKS,
        "no_transaction_count": BLOCKS,
        "tagged_data_bytes": size,
        "message_bytes": size,
    }
    rows["ms_activity"].append({**counts, **counted, **here})


def tangle_rows():
    """Expected rows of the synthetic tangle, in the contracts' types.

    It tells nothing of consumed_outputs and the metrics; a day's last milestone names a block of the next day
    there, which the day itself cannot know.
    """
    dates = {
        row["milestone_index"]: f"{dt.datetime.fromtimestamp(row['timestamp'], dt.UTC):%Y-%m-%d}"
        for row in _expected("milestones")
    }
    rows = {}
    for name, table in IOTA_TABLES.items():
        dated = [{"date": dates.get(row.get("milestone_index")), **row} for row in _expected(name)]
        rows[name] = [{c.name: _value(c, row.get(c.name)) for c in table.columns} for row in dated]
    known = {(row["date"], row["message_id"]) for row in rows["messages"]}
    for row in rows["milestones"]:
        if (row["date"], row["message_id"]) not in known:
            row["message_id"] = None
    return rows


def _expected(name):
    file = TANGLE / f"{name}.jsonl.gz"
    text = gzip.decompress(file.read_bytes()).decode() if file.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def _value(column, value):
    if value is None:
        return None
    if column.type == "binary":
        return bytes.fromhex(value)
    if column.type == "date":
        return dt.date.fromisoformat(value)
    return dt.datetime.fromtimestamp(value, dt.UTC) if column.type == "timestamptz" else value


def find(rows, table, **where):
    """The first row of a table with these values."""
    return next(row for row in rows[table] if all(row[name] == value for name, value in where.items()))


def arrow(table, rows):
    """Rows as Arrow; every column may be null, as in damaged data."""
    given = [{name: row.get(name) for name in table.names} for row in rows]
    return pa.Table.from_pylist(given, table.nullable)


def scope(rows, tables=IOTA_TABLES, **configuration):
    """A scope over rows by table, in memory."""
    engine = DuckDBEngine(lambda name: arrow(tables[name], rows[name]))
    return _scope(rows, tables, configuration, tables_engine=engine)


def _scope(rows, tables, configuration, **more):
    counted = {name: len(rows[name]) for name in tables}
    settings = Configuration(**{"chunk_size": 250_000} | configuration)
    return Scope(frozenset(tables), configuration=settings, rows=counted, **more)


def violations(laws, scope):
    """What a scope violates: rows of law, date, place, expected and found; some of each law and day."""
    outcomes = law_outcomes(laws, scope)
    scope.release()
    found = [{"law": name, **row} for name, outcome in outcomes.items() for row in outcome.sample]
    return found + [
        {"law": name, "date": None, "place": None, "found": outcome.error}
        for name, outcome in outcomes.items()
        if outcome.error
    ]
