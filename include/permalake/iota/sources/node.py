"""The ``node`` source: the REST API of a node, fetched by Spark tasks and landed on disk."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake import paths
from permalake.config.networks import NetworkSettings
from permalake.errors import ConfigError, PermalakeError
from permalake.iota.cone.packs import AS_RECORDS, Packing, in_packs
from permalake.iota.cone.source_records import RECORD, MilestoneDay, utc_date
from permalake.iota.sources.node_answers import NodeInfo
from permalake.iota.sources.node_api import NodeAddress, NodeApi, first_patience
from permalake.iota.sources.node_cache import STRETCH, NodeCache
from permalake.iota.sources.node_fetch import Stretch, fetch
from permalake.iota.sources.node_time import Timeline
from permalake.iota.sources.node_tips import TipCone, TipWalk, WalkLimits
from permalake.net.http import RequestRejectedError, RetryPolicy, UnavailableError

# What no build has asked for this long is not kept any longer.
_KEEP_SECONDS = 24 * 3_600.0
# Reasons of answers that the node lacks, not of wrong ones.
_LACKS = ("milestone_gap", "milestone_missing", "parent_missing", "consumed_missing")


class NodeSource:
    """A node as the source of a network's milestones. What was fetched once is not asked for again."""

    name = "node"

    def __init__(self, spark: SparkSession, network: str, settings: NetworkSettings):
        self._spark, self._look_back = spark, settings.look_back
        self._address = NodeAddress(
            f"networks.{network}.url",
            settings.url or "",
            settings.protocol,
            settings.rate_per_second,
            settings.concurrency,
            settings.timeout,
        )
        self._landing = NodeCache(paths.HOME / "landing" / network)
        self.present: Mapping[bytes, bytes] = {}
        """Bytes of blocks by id that the node need not be asked for, proven by these ids."""
        info = self._reach(settings.timeout)
        with self._asked() as api:
            self._look_around(api, info)

    def _look_around(self, api: NodeApi, info: NodeInfo) -> None:
        held_from = _first_held(api, info, self._look_back)
        self._info, self._held_from, self._is_same_tangle = info, held_from, False
        self._look_at_landing(api)
        if not self._is_same_tangle:
            self._times.unlink(missing_ok=True)

    def _look_at_landing(self, api: NodeApi) -> None:
        self._is_same_tangle = self._is_same_tangle or self._compare_landing(api)
        self._begin = self._landed_before(self._held_from)

    def refresh(self) -> None:
        """Ask the node again what it holds. One that has fallen back is looked at as if it were new.

        Raises:
            PermalakeError: if it cannot be asked, or holds no milestone.
        """
        with self._asked() as api:
            before, info = self._info, self._holding(api.info())
            if info.confirmed < before.confirmed:
                self._look_around(api, info)
                return
            self._info = info
            if info.pruned > before.pruned:
                self._held_from = max(self._held_from, info.pruned + 1)
            if info.pruned > before.pruned or not self._is_same_tangle:
                self._look_at_landing(api)

    def milestone_id(self, index: int) -> bytes | None:
        """Return the id of a milestone; None if the node does not hold it."""
        with self._asked() as api:
            milestone = api.milestone(index)
        return milestone.milestone.milestone_id if milestone else None

    def above(
        self, last: int, held: Mapping[bytes, bytes], referenced: Collection[bytes], limits: WalkLimits
    ) -> TipCone | None:
        """Return the blocks that no milestone references yet, as far as a walk within limits finds them.

        ``held``, ``referenced``: blocks of which that is known, not to be asked for. None if the node has not
        confirmed milestone ``last``, when it was last refreshed or afterwards: it may speak of a time before.

        Raises:
            PermalakeError: if it cannot be asked how far it is.
        """
        retry_policy = RetryPolicy(
            read=self._address.timeout,
            connect=min(self._address.timeout, 10.0),
            whole=self._address.timeout,
            attempts=3,
            back_off=0.2,
            longest_pause=2.0,
            failures=self._address.concurrency,
        )
        if self._info.confirmed < last:
            return None
        with self._asked(replace(self._address, retry_policy=retry_policy)) as api:
            with ThreadPoolExecutor(self._address.concurrency) as pool:
                cone = TipWalk(api, pool, held, referenced, limits).run()
            return cone if not cone.unreferenced or api.info().confirmed >= last else None

    def first_of(self, day: date) -> int:
        """Return the first milestone of a day or a later one; one more than the last if there is none."""
        with self._asked() as api, self._timeline(api) as times:
            return times.first_of(day)

    def days_between(self, first: int, last: int) -> list[MilestoneDay]:
        """Return the days of milestones ``first`` to ``last``, cut to these; whole or not."""
        with self._asked() as api:
            begin, end = (self._date_of(api, index) for index in (first, last))
            if begin == end:  # as nearly always: nothing is searched for, or remembered
                return [MilestoneDay(begin, first, last)]
            with self._timeline(api) as times:
                dates = range(begin.toordinal(), end.toordinal() + 1)
                days = [day for at in dates if (day := times.day(date.fromordinal(at)))]
            return [replace(day, first=max(day.first, first), last=min(day.last, last)) for day in days]

    def date_of(self, index: int) -> date:
        """Return the UTC date of a milestone; :class:`PermalakeError` if the node lacks it."""
        with self._asked() as api:
            return self._date_of(api, index)

    def _date_of(self, api: NodeApi, index: int) -> date:
        timestamp = api.timestamp(index)
        if timestamp is None:
            raise PermalakeError(f"milestone {index}: milestone_gap: the node lacks it")
        return utc_date(timestamp)

    @property
    def first_milestone(self) -> int:
        """Index of the first milestone that the node holds, or that was landed before it was pruned."""
        return self._begin

    @property
    def last_milestone(self) -> int:
        """Index of the last milestone that the node has confirmed."""
        return self._info.confirmed

    def days(self, start: date, end: date) -> list[MilestoneDay]:
        """Return the dates of ``start``..``end`` that have milestones, in order.

        Raises:
            PermalakeError: for a date that the node has pruned or not reached.
        """
        with self._asked() as api, self._timeline(api) as times:
            self._check_reach(times, start, end)
            ordinals = range(start.toordinal(), end.toordinal() + 1)
            days = [day for at in ordinals if (day := times.day(date.fromordinal(at)))]
            return [self._when_complete(day, times) for day in days]

    @contextmanager
    def _timeline(self, api: NodeApi) -> Iterator[Timeline]:
        """Give the block the times of the milestones, and remember what it asked for."""

        def ask(index: int) -> int | None:
            held = api.timestamp(index) if index >= self._held_from else None
            return self._landing.time_of(index) if held is None else held  # pruned meanwhile

        times = Timeline(ask, self._begin, self._info.confirmed, self._times)
        try:
            yield times
        finally:
            times.save()

    def _when_complete(self, day: MilestoneDay, times: Timeline) -> MilestoneDay:
        """Return the day; without milestones and with the reason while the node may still add to it."""
        if day.last < times.last:
            return day
        fault = (
            f"milestone {day.last}: day_incomplete: it is the node's last one, and {day.date} may go on; "
            "the day can be built once the node has a milestone of a later day"
        )
        return MilestoneDay(day.date, 0, -1, fault=fault)

    def records(self, days: Sequence[MilestoneDay], packing: Packing = AS_RECORDS) -> DataFrame:
        """Return records of the days' milestones and of those before that their cones may refer to.

        What is not landed is fetched now.

        Raises:
            PermalakeError: if the node cannot be asked.
        """
        first = max(min(day.first for day in days) - self._look_back, self._begin)
        last = max(day.last for day in days)
        self._landing.prune(first, last, _KEEP_SECONDS)
        landed = self._spark.read.schema(RECORD).parquet(*map(str, self._land(first, last)))
        return in_packs(landed.where((F.col("kind") >= 0) & F.col("milestone").between(first, last)), packing)

    def distrust(self, refused: Mapping[date, str], days: Sequence[MilestoneDay]) -> None:
        """Drop what was landed of days that did not hold, unless the node merely lacked something."""
        for day in days:
            reason = refused.get(day.date, "")
            if reason and not any(lack in reason for lack in _LACKS):
                self._landing.forget(day.first, day.last)

    def _land(self, first: int, last: int) -> list[Path]:
        """Files with all of ``first``..``last``."""
        files, missing = [], []
        for stretch in range(first // STRETCH, last // STRETCH + 1):
            begin, end = max(first, stretch * STRETCH), min(last, (stretch + 1) * STRETCH - 1)
            whole = self._landing.whole(stretch, to_read=True)
            if whole and whole.first <= begin and whole.last >= end:
                files.append(whole.path)
            else:
                missing.append(Stretch(stretch, begin, end))
        if missing:
            entry_end = self._begin + self._look_back
            files += fetch(
                self._spark, missing, self._address, self._landing.root, entry_end, present=self.present
            )
        return files

    # -- Reaching the node ---------------------------------------------------------------------------

    @contextmanager
    def _asked(self, address: NodeAddress | None = None) -> Iterator[NodeApi]:
        with closing((address or self._address).connect()) as api:
            try:
                yield api
            except UnavailableError as error:
                raise PermalakeError(str(error), pause=error.pause) from None
            except RequestRejectedError as refusal:
                raise PermalakeError(f"{self._address.name}: HTTP {refusal.status}") from None

    def _reach(self, timeout: float) -> NodeInfo:
        retry_policy = first_patience(timeout)
        with closing(replace(self._address, retry_policy=retry_policy).connect()) as api:
            kind = f"is it the address of a {api.protocol} node"
            try:
                info = api.info()
            except RequestRejectedError as refusal:
                line = f"{self._address.name}: HTTP {refusal.status} for {api.root}/info; {kind}?"
                raise ConfigError(line) from None
            except UnavailableError as error:
                raise PermalakeError(f"{error}; {kind}, and is it up?") from None
        return self._holding(info)

    def _holding(self, info: NodeInfo) -> NodeInfo:
        """Return what a node holds; :class:`PermalakeError` if that is nothing, as where it begins anew."""
        if info.pruned >= info.confirmed:
            raise PermalakeError(f"{self._address.name}: the node holds no milestone; is it synchronised?")
        return info

    def _compare_landing(self, api: NodeApi) -> bool:
        """Drop what is landed if it is of another tangle; return whether it is of the node's.

        The newest landed milestone that the node should hold is compared: only one that differs shows another
        tangle. A node that lacks it, or is not that far, says nothing, and is asked again.
        """
        landed = self._landing.newest_milestone(self._held_from, self._info.confirmed)
        milestone = api.milestone(landed[0]) if landed else None
        if landed and milestone:
            if milestone.raw == landed[1]:
                return True
            self._landing.forget_all()
        return False

    @property
    def _times(self) -> Path:
        return self._landing.root / "times.json"

    def _landed_before(self, first: int) -> int:
        """Return the first milestone, once what was landed before the node pruned it counts too."""
        while self._is_same_tangle and (whole := self._landing.holds(first - 1)):
            first = whole.first
        return first

    def _check_reach(self, times: Timeline, start: date, end: date) -> None:
        earliest, latest = utc_date(times.at(times.first)), utc_date(times.at(times.last))
        name = self._address.name
        if start < earliest and self._info.pruned:
            raise PermalakeError(
                f"{name}: {start} cannot be built: the node has pruned what lies before milestone "
                f"{times.first} of {earliest}; take an archive for it"
            )
        if end > latest:
            raise PermalakeError(
                f"{name}: {end} cannot be built yet: the node's last milestone {times.last} is of {latest}"
            )


def _first_held(api: NodeApi, info: NodeInfo, look_back: int) -> int:
    """Return the first milestone that the node has with its cone, whatever it says of its pruning."""
    lacks, first = info.pruned, info.pruned + 1
    if api.timestamp(first) is None:
        first = info.confirmed
        while first - lacks > 1:
            middle = (lacks + first) // 2
            if api.timestamp(middle) is None:
                lacks = middle
            else:
                first = middle
    while first - 1 > max(info.pruned - look_back, 0) and _has_cone(api, first - 1):
        first -= 1
    return first


def _has_cone(api: NodeApi, index: int) -> bool:
    """Whether a milestone is there with blocks that it references; some payloads outlive their cones."""
    milestone = api.milestone(index)
    states = map(api.state, milestone.milestone.parents if milestone else ())
    return any(state is not None and state.milestone == index for state in states)
