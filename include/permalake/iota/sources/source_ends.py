"""The end of a source of files when a day was built, and whether it goes on now; without Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path

from permalake.config.networks import NetworkSettings
from permalake.iota.sources.archive_index import ReadTime, known_last
from permalake.iota.sources.archive_lines import milestone_time
from permalake.iota.sources.chronicle_records import milestone_time as chronicle_time
from permalake.pipeline.line_files import LONGEST_LINE, Damage, inside, line_ranges, read_lines

END_NOTE = "the source ends with milestone {}; the day may go on"
_ENDED = re.compile(END_NOTE.format("([0-9]+)"))
ARCHIVE_FILE = re.compile(
    r"(milestones|blocks|messages|utxo_changes|consumed_outputs)([-._].+)?\.jsonl(\.gz)?"
)
# A milestone of Chronicle's logs holds all of its messages in one line.
LONGEST_LOG_LINE = 256 * 2**20
CHRONICLE_FILE = re.compile(r"(\d+)to(\d+)\.log(\.gz)?")


def continued(notes: Mapping[date, Sequence[str]], goes_beyond: Callable[[int], bool]) -> dict[date, str]:
    """Return why days whose notes say that the source ended in them are stale: the source goes on now.

    ``goes_beyond`` returns whether the source has a later milestone than a given one.
    """
    ends = {}
    for day, lines in notes.items():
        for match in filter(None, map(_ENDED.fullmatch, lines)):
            if goes_beyond(int(match[1])):
                ends[day] = f"the source goes on after milestone {match[1]}"
    return ends


def continued_files(network: NetworkSettings, notes: Mapping[date, Sequence[str]]) -> dict[date, str]:
    """Return the days that :func:`continued` names, from the source's files as they are now.

    Files that did not change since Spark read them are not read.
    """
    path = network.path
    if network.source == "node" or path is None or not path.is_dir():
        return {}
    is_log = network.source == "chronicle"
    read, longest = (chronicle_time, LONGEST_LOG_LINE) if is_log else (milestone_time, LONGEST_LINE)

    @cache
    def goes_beyond(milestone: int) -> bool:
        files = inside(path, _files(path, network.source, milestone))
        last_milestones = known_last(files)
        if any(last > milestone for last in last_milestones.values()):
            return True
        return any(
            _has_later(file, read, milestone, longest) for file in files if file not in last_milestones
        )

    return continued(notes, goes_beyond)


def _files(root: Path, source: str, milestone: int) -> Iterator[Path]:
    """Yield the files that may hold a milestone after ``milestone``."""
    for file in root.rglob("*.log*" if source == "chronicle" else "*.jsonl*"):
        if source == "chronicle":
            match = CHRONICLE_FILE.fullmatch(file.name)
            if match and int(match[2]) > milestone + 1:
                yield file
        elif (match := ARCHIVE_FILE.fullmatch(file.name)) and match[1] == "milestones":
            yield file


def _has_later(file: Path, read: ReadTime, milestone: int, longest: int) -> bool:
    lines = (line for part in line_ranges([file], longest) for line in read_lines(part))
    times = (read(line) for line in lines if not isinstance(line, Damage))
    return any(end is not None and end[0] > milestone for end in times)
