"""The files of a synthetic day that its milestones complete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from permalake_simulate.iota import chronicle_logs
from permalake_simulate.iota.archive_lines import Shape
from permalake_simulate.iota.milestone_chain import Closed
from permalake_simulate.iota.tangle_world import IotaWorld
from permalake_simulate.seeds import opened

FIGURES = "synthetic_ms_analytics.csv"
_HEAD = "milestone_index,message_count,transaction_count,transferred_tokens\n"


def write_archive(world: IotaWorld, folder: Path, milestones: Iterable[Closed], packed: bool) -> None:
    """Write milestones, the messages that carry them, and what receipts create."""
    shape = Shape(world.protocol)
    names = {"milestones": "milestones", shape.blocks_file: f"{shape.blocks_file}-milestones"}
    if world.protocol == "chrysalis":
        names |= {name: f"{name}-receipts" for name in ("created_outputs", "utxo_changes")}
    with ExitStack() as files:
        out: dict[str, TextIO] = {
            name: files.enter_context(opened(folder / f"{file}.jsonl", packed))
            for name, file in names.items()
        }
        figures = files.enter_context(opened(folder / FIGURES, packed=False))
        figures.write(_HEAD)
        for closed in milestones:
            figures.write(_figures(closed))
            for name, lines in closed.lines.items():
                out[name].writelines(lines)


def write_logs(world: IotaWorld, folder: Path, waiting: Iterator[str], milestones: Iterable[Closed]) -> None:
    """Write Chronicle logs of as many milestones as an epoch has.

    ``waiting`` are the entries of their messages, a line for each milestone.
    """
    with opened(folder / FIGURES, packed=False) as figures:
        figures.write(_HEAD)
        whole = iter(milestones)
        while first := next(whole, None):
            begin = end = first.milestone.index
            unnamed = folder / "unnamed"
            with opened(unnamed, packed=False) as log:
                # The opening milestone is one more.
                for closed in _some(first, whole, world.epoch_length + bool(first.entries)):
                    cone = closed.entries or next(waiting).rstrip("\n")
                    log.write(chronicle_logs.line(closed.milestone, (cone, closed.carrier)))
                    figures.write(_figures(closed))
                    end = closed.milestone.index + 1
            unnamed.rename(folder / f"{begin}to{end}.log")


def _some(first: Closed, others: Iterator[Closed], count: int) -> Iterator[Closed]:
    yield first
    for _ in range(count - 1):
        closed = next(others, None)
        if closed is None:
            return
        yield closed


def entries(folder: Path) -> Iterator[str]:
    """Yield the lines of the entries files of a folder, in order."""
    for file in sorted(folder.glob("entries-*")):
        with file.open(encoding="utf-8") as lines:
            yield from lines


def _figures(closed: Closed) -> str:
    return ",".join(map(str, (closed.milestone.index, *closed.analytics))) + "\n"
