"""Derives published days of an IOTA network again from their own raw bytes, in this process.

The same code that proves a source proves the lake: what the tables hold is read as a source's records, whose
ids, orders and states are claims. Milestones go through in groups, so that a day need not fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from permalake.config import Settings
from permalake.config.networks import CoordinatorKey
from permalake.engine.connection import connect
from permalake.errors import ConfigError
from permalake.iota.cone.batch import ConeState
from permalake.iota.cone.decoded import ARROW, Row
from permalake.iota.cone.prove import decoded_or_refused
from permalake.iota.cone.rules import ConeRules
from permalake.iota.cone.source_records import InclusionState, MilestoneDay
from permalake.iota.cone.verdict import FIRST_CAUSES, refused_days
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.sources.lake_records import consumed_records, context_records, whole_groups
from permalake.iota.tables.base_tables import BASE_TABLES, base_tables
from permalake.iota.tables.decoded_columns import DecodedRange
from permalake.iota.tables.milestone_table import MILESTONE_TABLE
from permalake.transparency.deep import RawDay, TableFolder, UnderivedError
from permalake.transparency.documents import Manifest, needed_keys

_CONSEQUENCE = "consumed_unexpected"
_OF_OUTPUTS = ("consumed", "utxo")
"""The beginning of the reasons of problems with outputs."""
_OF_MESSAGES = ("block", "transaction", "message")
"""The beginning of the details of problems with a message."""


@dataclass(frozen=True)
class NetworkRules:
    """The rules of a network that a derivation needs, and whose word they are."""

    protocol: Literal["chrysalis", "stardust"]
    bech32_hrp: str
    chunk_size: int
    look_back: int
    transaction_signatures: bool
    keys: tuple[CoordinatorKey, ...]
    threshold: int | None
    source_of_keys: str

    @classmethod
    def of(cls, settings: Settings, network: str, manifest: Manifest) -> NetworkRules:
        """Return the rules by the settings of this machine, else by the manifest."""
        configured = settings.networks.get(network)
        if configured is not None:
            return cls(
                configured.protocol,
                configured.bech32_hrp,
                configured.chunk_size,
                configured.look_back,
                configured.transaction_signatures,
                configured.coordinator_public_keys,
                configured.coordinator_threshold,
                "this machine's settings name",
            )
        said = manifest["verified"]
        signed, protocol = said.get("settings"), said.get("protocol")
        if signed is None or protocol is None:
            raise ConfigError(
                f"{network}: its manifest does not say how to derive it; add [networks.{network}] to "
                "the settings"
            )
        coordinator = said.get("coordinator") or {"keys": [], "threshold": None}
        return cls(
            protocol,
            signed["bech32_hrp"],
            signed["chunk_size"],
            signed["look_back"],
            signed["transaction_signatures"],
            tuple(CoordinatorKey.model_validate(key) for key in coordinator["keys"]),
            coordinator["threshold"],
            "the publisher alone names: compare them with the network's own word",
        )


class TangleDerivation:
    """Derives days of one network, in their order."""

    tables = ("milestones", *BASE_TABLES)

    def __init__(self, settings: Settings, network: str) -> None:
        self._settings = settings
        self._network = network
        self._rules: NetworkRules | None = None
        self._state = ConeState()
        self._first = -1
        self._starts: list[str] = []
        self._counts = {"days": 0, "milestones": 0, "messages": 0, "transactions": 0}

    def derive(self, day: RawDay, before: Callable[[], RawDay | None], tables: TableFolder) -> None:
        """Write the day's tables, as :class:`~permalake.transparency.deep.Derivation` has it."""
        rules = self._rules = NetworkRules.of(self._settings, self._network, day.manifest)
        milestones = day.rows("milestones").to_table().sort_by("milestone_index")
        if not len(milestones):
            self._refuse_rows_without_milestone(day)
            return
        indices = milestones["milestone_index"].to_numpy()
        span = MilestoneDay(day.date, int(indices[0]), int(indices[-1]))
        if self._state.last is None or self._state.last[0] != span.first - 1:
            self._begin(span, before())
        cone_rules = ConeRules(
            rules.protocol,
            rules.bech32_hrp,
            (span,),
            self._first,
            rules.keys,
            rules.threshold,
            rules.transaction_signatures,
            rules.look_back,
        )
        consumed, has_bytes = consumed_records(day.rows)
        kept = []
        for records in whole_groups(day.rows, milestones, consumed, rules.protocol):
            rows, self._state = decoded_or_refused(records, cone_rules, self._state)
            rows = _settled(rows)
            self._check(rows.filter(pc.equal(rows["kind"], int(Row.PROBLEM))))
            kept.append(self._added(rows, tables, has_bytes=has_bytes))
        tables.add("milestones", _milestone_table(kept))
        self._counts["days"] += 1
        self._counts["milestones"] += len(milestones)

    def proven(self) -> Iterator[str]:
        """Yield what was proven."""
        counts = {name: f"{count:,}" for name, count in self._counts.items()}
        yield (
            f"built again from their raw bytes: {counts['messages']} messages of {counts['milestones']} "
            "milestones. Each message is the one that its id names; the milestones' signatures are valid."
        )
        if self._rules and self._rules.protocol == "chrysalis":
            yield (
                "what each milestone signs fits its transactions, and its messages are all that it points "
                "to, directly or through others: their order is right, and none is missing in between."
            )
        else:
            yield (
                "what each milestone signs fits its messages and no others: their order is right, and none "
                "is missing."
            )
        if self._rules is None or self._rules.transaction_signatures:
            yield f"{counts['transactions']} transactions moved what their owners signed, and no more."
        yield f"tables made again from them have the same rows: {', '.join(self.tables)}."

    def rests_on(self) -> Iterator[str]:
        """Yield whose keys it rests on."""
        rules = self._rules
        if rules is None or not rules.keys:
            yield "no list of the coordinator's keys is known: those that the milestones name were believed."
            return
        thresholds = [key.threshold or rules.threshold for key in rules.keys]
        needed = f"{needed_keys(thresholds)} of {len(rules.keys)}"
        yield f"the coordinator's keys: {needed}, which {rules.source_of_keys}."

    def not_covered(self) -> Iterator[str]:
        """Yield what it does not cover."""
        yield "why transactions conflict (conflict_reason): the publisher's word. That they do is proven."
        others = sorted(
            name
            for name, contract in IOTA_TABLES.items()
            if contract.commit != "side" and name not in self.tables
        )
        yield f"figures that sum these tables up: signed, not made again ({', '.join(others)})."
        yield from self._starts

    def _refuse_rows_without_milestone(self, day: RawDay) -> None:
        if day.rows("messages").count_rows():
            raise UnderivedError(
                f"{self._network}.milestones of {day.date}: there is none, but the day has messages"
            )

    def _begin(self, span: MilestoneDay, before: RawDay | None) -> None:
        """Start a range of days: with what the day before referenced, or at the copy's beginning."""
        assert self._rules is not None  # noqa: S101
        look_back = self._rules.look_back
        self._state = ConeState(look_back)
        if before is None:
            self._start_at(span.first, f"messages before {span.date}")
            return
        earlier = before.rows("milestones").to_table()
        ends = pc.min_max(earlier["milestone_index"]).as_py()
        first, last = ends["min"] or 0, ends["max"] or 0
        if last != span.first - 1:
            self._start_at(span.first, f"milestones {last + 1} to {span.first - 1}")
            return
        self._first = first
        if span.first - first < look_back:
            self._start_at(first, f"messages before {before.date}")
        context = context_records(before.rows, earlier, span.first - look_back, self._rules.protocol)
        rules = ConeRules(
            self._rules.protocol,
            self._rules.bech32_hrp,
            (MilestoneDay(before.date, self._first, last),),
            self._first,
            look_back=look_back,
        )
        _, self._state = decoded_or_refused(context, rules, self._state)

    def _start_at(self, first: int, lacking: str) -> None:
        """Take a milestone as the first that is known, and say so."""
        assert self._rules is not None  # noqa: S101
        self._first = first
        self._starts.append(
            f"{lacking}, which this check did not read: up to milestone {first + self._rules.look_back}, "
            "parents that are not there count as older messages."
        )

    def _added(self, rows: pa.Table, tables: TableFolder, *, has_bytes: bool) -> pa.Table:
        """Add the tables that follow from decoded rows; return milestones, and messages that carry one."""
        assert self._rules is not None  # noqa: S101
        kind = rows["kind"]
        is_message = pc.equal(kind, int(Row.BLOCK))
        included = pc.and_(is_message, pc.equal(rows["inclusion_state"], int(InclusionState.INCLUDED)))
        self._counts["messages"] += int(pc.sum(is_message).as_py() or 0)
        self._counts["transactions"] += int(pc.sum(included).as_py() or 0)
        for name, made in base_tables(DecodedRange(rows, self._rules.chunk_size)):
            if name == "consumed_outputs" and not has_bytes:
                at = made.schema.get_field_index("data")
                tables.add(name, made.set_column(at, "data", pa.nulls(len(made), pa.binary())))
            else:
                tables.add(name, made)
        carries_one = pc.and_(is_message, pc.is_valid(rows["milestone_id"]))
        kept = rows.filter(pc.or_(pc.equal(kind, int(Row.MILESTONE)), carries_one))
        return kept.select(_MILESTONE_COLUMNS)

    def _check(self, problems: pa.Table) -> None:
        """Refuse the day with the first thing that does not hold."""
        # Where a cone is broken, what its transactions consume is only a consequence.
        causes_alone = problems.filter(pc.not_equal(problems["reason"], _CONSEQUENCE))
        if pc.any(causes_alone["breaks"]).as_py():
            problems = causes_alone
        if not len(problems):
            return
        with connect() as connection:
            connection.register("problems", problems.select(_PROBLEM_COLUMNS))
            causes = connection.sql(FIRST_CAUSES).to_arrow_table().to_pylist()
        for day, line in refused_days(causes, ()).items():
            table = _table_of(causes[0])
            raise UnderivedError(f"{self._network}.{table} of {day}: {line}")


_PROBLEM_COLUMNS = ["kind", "date", "milestone_index", "reason", "detail", "breaks"]


def _table_of(cause: Mapping[str, Any]) -> str:
    """Return the table that a problem is about."""
    if cause["reason"].startswith(_OF_OUTPUTS):
        return "consumed_outputs"
    return "messages" if cause["detail"].startswith(_OF_MESSAGES) else "milestones"


def derivation(settings: Settings, network: str) -> TangleDerivation:
    """Return the derivation of a network's days."""
    return TangleDerivation(settings, network)


def _settled(rows: pa.Table) -> pa.Table:
    """Return decoded rows with conflicting messages as the lake has them, with its reason."""
    kind = rows["kind"]
    pending = pc.equal(kind, int(Row.PENDING))
    if not pc.any(pending).as_py():
        return rows
    settled = pc.if_else(pending, pa.scalar(int(Row.BLOCK), pa.int8()), kind)
    return rows.set_column(0, ARROW.field("kind"), settled)


def _milestone_table(parts: list[pa.Table]) -> pa.Table:
    with connect() as connection:
        connection.register("milestone_rows", pa.concat_tables(parts))
        made = connection.sql(MILESTONE_TABLE).to_arrow_table()
    return made.sort_by("milestone_index")


_MILESTONE_COLUMNS = [
    *("kind", "date", "milestone_index", "white_flag_index", "message_id", "timestamp", "raw"),
    "milestone_id",
]
