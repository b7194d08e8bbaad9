"""Fetching stretches of milestones from a node, split over Spark tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import SparkSession

from permalake.errors import PermalakeError
from permalake.iota.sources.node_api import NodeAddress
from permalake.iota.sources.node_cache import NodeCache
from permalake.iota.sources.node_walk import Walk
from permalake.net.http import RequestRejectedError, UnavailableError

_STRETCHES = pa.schema([(name, pa.int32()) for name in ("stretch", "first", "last", "task")])
_LANDED = pa.schema(
    [("stretch", pa.int32()), ("path", pa.string()), ("error", pa.string()), ("pause", pa.float64())]
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Milestones ``first``..``last`` of a stretch."""

    stretch: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Landed:
    """The place where a stretch was landed, or why it was not, and the seconds that the node asks to wait."""

    stretch: int
    path: str | None
    error: str | None = None
    pause: float = 0.0


def fetch(
    spark: SparkSession,
    stretches: Sequence[Stretch],
    address: NodeAddress,
    root: Path,
    entry_end: int,
    *,
    present: Mapping[bytes, bytes],
) -> list[Path]:
    """Land the wanted stretches below ``root``; their files. The tasks share the node's rate and concurrency.

    ``present``: bytes of blocks by id that the node need not be asked for. :class:`PermalakeError` when the
    node cannot be asked; what it had answered by then is landed.
    """
    tasks = min(len(stretches), spark.sparkContext.defaultParallelism, address.concurrency)
    share = replace(address, concurrency=address.concurrency // tasks, shares=tasks)
    rows = [asdict(stretch) | {"task": i * tasks // len(stretches)} for i, stretch in enumerate(stretches)]
    done = (
        spark.createDataFrame(pa.Table.from_pylist(rows, _STRETCHES))
        .repartitionById(tasks, "task")
        .mapInArrow(
            _task(share, root, entry_end, present), "stretch int, path string, error string, pause double"
        )
        .collect()
    )
    failed = sorted((row["stretch"], row["error"]) for row in done if row["error"])
    if failed:
        reason = f"{failed[0][1]}; what was fetched is kept, run it again to go on"
        raise PermalakeError(reason, pause=max(row["pause"] for row in done))
    return [Path(row["path"]) for row in done]


def _task(
    address: NodeAddress, root: Path, entry_end: int, present: Mapping[bytes, bytes]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [row for batch in batches for row in batch.to_pylist()]
        stretches = sorted(
            (Stretch(r["stretch"], r["first"], r["last"]) for r in rows), key=lambda w: w.stretch
        )
        done = [
            asdict(landed) for landed in land(address, NodeCache(root), stretches, entry_end, present=present)
        ]
        yield pa.RecordBatch.from_pylist(done, _LANDED)

    return run


def land(
    address: NodeAddress,
    landing: NodeCache,
    stretches: Iterable[Stretch],
    entry_end: int,
    *,
    present: Mapping[bytes, bytes] = MappingProxyType({}),
) -> Iterator[Landed]:
    """Land stretches one after another, with up to ``address.concurrency`` requests at a time.

    The first that fails is the last.
    """
    with closing(address.connect()) as api, ThreadPoolExecutor(address.concurrency) as pool:
        for stretch in stretches:
            try:
                walk = Walk(api, landing, pool, (stretch.first, stretch.last), entry_end, present=present)
                yield Landed(stretch.stretch, str(walk.run().path))
            except (PermalakeError, UnavailableError) as error:
                yield Landed(stretch.stretch, None, str(error), error.pause)
                return
            except RequestRejectedError as refusal:
                yield Landed(stretch.stretch, None, f"{address.name}: HTTP {refusal.status}")
                return
