"""A synthetic tangle, made on Spark: its epochs in parallel, then its milestones in one quick pass.

A task holds one epoch at a time and the driver one milestone, so a larger world takes more time, but no more
memory.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from permalake.errors import ConfigError
from permalake_simulate.iota.day_files import entries, write_archive, write_logs
from permalake_simulate.iota.epochs import EpochMaker, Summary, as_line, from_line
from permalake_simulate.iota.milestone_chain import Closed, DayTotals, MilestoneChain
from permalake_simulate.iota.spine import Lead, genesis, leads
from permalake_simulate.iota.tangle_world import Epoch, IotaWorld
from permalake_simulate.iota.wallets import coordinator
from permalake_simulate.seeds import opened

WORLD = "world.json"
NETWORK = "network.toml"
_PARTS = ".parts"
_DONE = "epoch int, messages long"
_INPUT = pa.schema([("epoch", pa.int32()), ("what", pa.string())])
_BYTES = ("anchor", "bank_id", "bank_block")


def simulate(
    spark: SparkSession | None,
    world: IotaWorld,
    folder: Path,
    *,
    packed: bool = True,
    say: Callable[[str], None] | None = None,
) -> dict[date, DayTotals]:
    """Write the world in its layout, a folder per day, and return the totals of the days.

    Args:
        spark: Session that makes the epochs; without one, or where epochs have one ledger, this process makes
            them all, with the same bytes.
        world: The tangle to make.
        folder: An empty or absent folder.
        packed: Whether files are gzip (Chronicle logs never are).
        say: Takes lines on the progress.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder}: not empty; choose another --out, or remove it")
    folder = folder.resolve()
    (folder / _PARTS).mkdir(parents=True)
    count = _make_epochs(spark, world, folder, packed)
    if say:
        say(
            f"{world.messages:,} messages made in {count} parts; signing {world.milestone_count:,} milestones"
        )
    totals = _close(world, folder, packed)
    shutil.rmtree(folder / _PARTS)
    _describe(world, folder, totals)
    return totals


def _make_epochs(spark: SparkSession | None, world: IotaWorld, folder: Path, packed: bool) -> int:
    first = MilestoneChain(world).open()[1] if world.layout == "chronicle" else genesis(world)
    rows = [{"epoch": epoch.number, "what": _told(epoch, lead)} for epoch, lead in leads(world, first)]
    table, make = pa.Table.from_pylist(rows, schema=_INPUT), _maker(world, folder, packed)
    if spark is None or world.one_ledger:
        return sum(batch.num_rows for batch in make(table.to_batches()))
    parts: int = (
        spark.createDataFrame(table).repartitionById(len(rows), "epoch").mapInArrow(make, _DONE).count()
    )
    return parts


def _told(epoch: Epoch, lead: Lead) -> str:
    leading = {name: value.hex() if name in _BYTES else value for name, value in asdict(lead).items()}
    return json.dumps([asdict(epoch) | {"day": epoch.day.isoformat()}, leading])


def _understood(text: str) -> tuple[Epoch, Lead]:
    told, leading = json.loads(text)
    lists = {name: tuple(told[name]) for name in ("times", "sizes")}
    epoch = Epoch(**told | lists | {"day": date.fromisoformat(told["day"])})
    ids: dict[str, Any] = {name: bytes.fromhex(leading[name]) for name in _BYTES}
    return epoch, Lead(**leading | ids)


def _maker(
    world: IotaWorld, folder: Path, packed: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        maker = EpochMaker(world)
        for batch in batches:
            for text in batch.column("what").to_pylist():
                epoch, lead = _understood(text)
                place = _PARTS if world.layout == "chronicle" else epoch.day.isoformat()
                with opened(folder / _PARTS / f"{epoch.number:06d}.jsonl", packed=False) as part:
                    for summary in maker.make(epoch, lead, folder / place, packed):
                        part.write(as_line(summary))
                done = {"epoch": [epoch.number], "messages": [sum(epoch.sizes)]}
                yield pa.RecordBatch.from_pydict(
                    done, pa.schema([("epoch", pa.int32()), ("messages", pa.int64())])
                )

    return run


def _close(world: IotaWorld, folder: Path, packed: bool) -> dict[date, DayTotals]:
    chain = MilestoneChain(world)
    totals: dict[date, DayTotals] = {}
    unspent, treasury = world.funds.supply - world.funds.treasury, world.funds.treasury
    opening = [chain.open()[0]] if world.layout == "chronicle" else []
    milestones = itertools.chain(opening, chain.close(_summaries(folder)))
    waiting = entries(folder / _PARTS)
    for day, closed in itertools.groupby(milestones, key=lambda one: one.summary.day):
        total = DayTotals(unspent=unspent, treasury=treasury)
        counted = _counted(world, closed, total)
        if world.layout == "chronicle":
            write_logs(world, folder / day, waiting, counted)
        else:
            write_archive(world, folder / day, counted, packed)
        unspent, treasury = total.unspent, total.treasury
        totals[date.fromisoformat(day)] = total
    return totals


def _summaries(folder: Path) -> Iterator[Summary]:
    for part in sorted((folder / _PARTS).glob("*.jsonl")):
        with part.open(encoding="utf-8") as lines:
            yield from map(from_line, lines)


def _counted(world: IotaWorld, milestones: Iterable[Closed], total: DayTotals) -> Iterator[Closed]:
    for closed in milestones:
        total.add(world.index(closed.summary.milestone), closed)
        yield closed


def network_snippet(world: IotaWorld) -> str:
    """Return the section of permalake.toml that reads the world; its path is the file's folder."""
    keys = ", ".join(f'{{ key = "{pair.public.hex()}" }}' for pair in coordinator(world.seed))
    return (
        f"# A synthetic network: made by `permalake simulate iota`, seed {world.seed}.\n"
        f"[networks.{world.network}]\n"
        f'protocol = "{world.protocol}"\nbech32_hrp = "{world.bech32_hrp}"\nsource = "{world.layout}"\n'
        f'path = "."\ncoordinator_public_keys = [{keys}]\n'
        f"coordinator_threshold = {len(coordinator(world.seed))}\n"
    )


def _describe(world: IotaWorld, folder: Path, totals: dict[date, DayTotals]) -> None:
    described = asdict(world) | {
        "synthetic": True,
        "network": world.network,
        "network_id": str(world.network_id),
        "start": world.start.isoformat(),
        "milestones_per_day": world.per_day,
        "supply": world.funds.supply,
        "coordinator_keys": [pair.public.hex() for pair in coordinator(world.seed)],
        "totals": {day.isoformat(): asdict(total) for day, total in totals.items()},
    }
    (folder / WORLD).write_text(json.dumps(described, indent=1) + "\n", "utf-8")
    (folder / NETWORK).write_text(network_snippet(world), "utf-8")
    (folder / "README.md").write_text(_README.format(world=world, messages=world.messages), "utf-8")


_README = """# Synthetic data: a tangle that never was

Made by `permalake simulate iota` with seed {world.seed}: {messages:,} messages of a {world.protocol} network
called {world.network}. Nothing here happened on any network. Everything is valid nevertheless: ids,
signatures, Merkle roots, white-flag order, ledger changes and conflicts with their reasons. The keys follow
from the seed, so anybody can have them. Proof of work is not done.

- one folder per UTC day: a source of the kind `{world.layout}`
- `network.toml`: the section of permalake.toml that reads it, with the coordinator's public keys
- `world.json`: parameters, and what the days must add up to; `*/synthetic_ms_analytics.csv`: the same per
  milestone
"""
