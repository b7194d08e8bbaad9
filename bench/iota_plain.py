"""The peer of `iota_build`: one plain Python process with the product's own codec, without Spark or lake.

``python bench/iota_plain.py ARCHIVE OUT``: what an engineer would write instead. It reads a Stardust archive
of one day, verifies ids, milestone signatures, white-flag order, Merkle roots and transactions, and writes
every table that follows from milestones alone as zstd Parquet. It holds the day in memory, takes conflict
reasons from the source, carries and audits nothing, and starts over if it fails.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from permalake.iota.codec.milestones import decode_milestone
from permalake.iota.cone.batch import ConeState
from permalake.iota.cone.decoded import ARROW, Row
from permalake.iota.cone.prove import decode, whole_milestones
from permalake.iota.cone.rules import ConeRules
from permalake.iota.cone.source_records import MilestoneDay, Record, utc_date
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.sources.archive_columns import archive_columns
from permalake.iota.tables.base_tables import BASE_TABLES, base_tables
from permalake.iota.tables.decoded_columns import DecodedRange
from permalake.lake.catalog import PROPERTIES, file_layout
from permalake.lake.task_files import FileTarget, TaskFiles
from permalake.pipeline.line_files import Damage, line_ranges, read_pieces

_ROLES = {
    "milestones": Record.MILESTONE,
    "blocks": Record.BLOCK,
    "consumed_outputs": Record.CONSUMED,
    "utxo_changes": Record.CHANGES,
}
_ROWS = 10_000
_CHUNK_SIZE = 250_000


def main(archive: Path, out: Path) -> None:
    """Build the day and say what it holds."""
    table = records(archive)
    rules = rules_of(table)
    files = TaskFiles(map(_target(out), BASE_TABLES), {})
    state, rows, problems = ConeState(rules.look_back), Counter[str](), 0
    for part in whole_milestones(table.to_batches(max_chunksize=_ROWS)):
        decoded = pa.Table.from_batches(decode(part, rules, state), ARROW)
        problems += pc.sum(pc.equal(decoded["kind"], int(Row.PROBLEM))).as_py() or 0
        is_pending = pc.equal(decoded["kind"], int(Row.PENDING))
        kind = pc.if_else(is_pending, pa.scalar(int(Row.BLOCK), pa.int8()), decoded["kind"])
        for name, made in base_tables(DecodedRange(decoded.set_column(0, "kind", kind), _CHUNK_SIZE)):
            files.add(name, made)
            rows[name] += made.num_rows
    files.complete()
    print(f"{dict(rows)}, {problems} problems", file=sys.stderr)
    if problems:
        sys.exit(1)


def records(archive: Path) -> pa.Table:
    """Return all records in the order in which the cone wants them."""
    found = [batch for file in sorted(archive.rglob("*.jsonl*")) for batch in _batches(file)]
    table = pa.Table.from_batches(found)
    # Sorting joins all chunks, and a large day has more bytes than offsets of 32 bits can address.
    is_binary = [pa.types.is_binary(field.type) for field in table.schema]
    wide = pa.schema(
        field.with_type(pa.large_binary()) if binary else field
        for field, binary in zip(table.schema, is_binary, strict=True)
    )
    ordered = table.cast(wide).sort_by([("milestone", "ascending"), ("kind", "ascending")])
    # Taken, a part has bytes and offsets of its own.
    parts = [
        batch.take(pa.array(range(batch.num_rows))).cast(table.schema)
        for batch in ordered.to_batches(max_chunksize=_ROWS)
    ]
    return pa.Table.from_batches(parts).append_column("context", pa.repeat(False, table.num_rows))


def _batches(file: Path) -> Iterator[pa.RecordBatch]:
    role = file.name.split(".")[0].split("-")[0]
    if role not in _ROLES:
        return
    for piece in read_pieces(line_ranges([file])[0]):
        if isinstance(piece, Damage):
            raise ValueError(f"{file}: {piece.reason}")
        yield archive_columns(piece, _ROLES[role], file.name)


def rules_of(table: pa.Table) -> ConeRules:
    """Return the rules of a network without configured keys, whose only day the archive holds."""
    milestones = table.filter(pc.equal(table["kind"], int(Record.MILESTONE)))
    index = milestones["milestone"]
    first, last = index[0].as_py(), index[-1].as_py()
    day = utc_date(decode_milestone(milestones["raw"][0].as_py(), "stardust").timestamp)
    return ConeRules("stardust", "smr", (MilestoneDay(day, first, last),), first)


def _target(out: Path):  # type: ignore[no-untyped-def]
    def target(name: str) -> FileTarget:
        contract = IOTA_TABLES[name]
        schema = contract.iceberg.model_dump_json()
        return FileTarget(name, f"{out}/{name}", schema, PROPERTIES | file_layout(contract), 0, contract.sort)

    return target


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
