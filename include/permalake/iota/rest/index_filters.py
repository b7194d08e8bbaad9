"""Filters of the indexer as SQL over the output tables, with bound parameters (TIP-26, inx-indexer 1.0).

A filter holds for the rows of one table, named ``o`` in the text; every value is a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Literal

from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.rest.index_queries import (
    AliasQuery,
    BasicQuery,
    CommonQuery,
    CreatedQuery,
    FoundryQuery,
    LegacyQuery,
    NftQuery,
)

Kind = Literal["basic", "nft", "alias", "foundry", "legacy"]
AsAddress = Callable[[str], str]
"""Checks an address of a request and returns it as the tables have it."""

# Who may unlock an output, by column.
UNLOCKERS: dict[Kind, tuple[str, ...]] = {
    "basic": ("address", "expiration_return_address", "storage_return_address"),
    "nft": ("address", "expiration_return_address", "dust_return_address"),
    "alias": ("state_controller", "governor"),
    "foundry": ("address",),
}
RETURN_ADDRESS: dict[Kind, str] = {"basic": "storage_return_address", "nft": "dust_return_address"}


@dataclass
class OutputFilter:
    """Conditions on the rows of one output table, and their parameters.

    ``lookups`` are values that one of some indexed columns must have.
    """

    kind: Kind
    conditions: list[str] = field(default_factory=list)
    lookups: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """The table whose rows it selects."""
        return f"{self.kind}_outputs"

    def bind(self, value: Any) -> str:
        """Return the placeholder of a parameter with this value."""
        name = f"{self.kind}_{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"

    def compare(self, column: str, operator: Literal["=", "<", ">", "<=", ">="], value: Any) -> None:
        """Demand a comparison with a column, unless the value is None."""
        if value is not None:
            self.conditions.append(f"o.{column} {operator} {self.bind(value)}")
            if operator == "=":
                self._look_up((column,), value)

    def demand_presence(self, column: str, present: bool | None) -> None:
        """Demand that a column is null or is not, unless ``present`` is None."""
        if present is not None:
            self.conditions.append(f"o.{column} IS {'NOT NULL' if present else 'NULL'}")

    def demand_any(self, columns: Collection[str], value: Any) -> None:
        """Demand that one of the columns has a value, unless it is None."""
        if value is not None:
            name = self.bind(value)
            self.conditions.append(f"({' OR '.join(f'o.{column} = {name}' for column in columns)})")
            self._look_up(columns, value)

    def _look_up(self, columns: Collection[str], value: Any) -> None:
        if set(columns) <= set(IOTA_TABLES[self.table].lookups):
            self.lookups.append((tuple(columns), value))


def filter_of(kind: Kind, query: CreatedQuery, as_address: AsAddress) -> OutputFilter:
    """Return the filter of a request over one kind of outputs.

    Raises:
        ProblemError: From ``as_address``.
    """
    chosen = OutputFilter(kind)

    def address(text: str | None) -> str | None:
        return None if text is None else as_address(text)

    _created(chosen, query)
    if isinstance(query, LegacyQuery):
        chosen.compare("address", "=", address(query.address))
    if isinstance(query, CommonQuery):
        _native_tokens(chosen, query)
        chosen.demand_any(UNLOCKERS[kind], address(query.unlockable_by_address))
    if isinstance(query, FoundryQuery):
        chosen.compare("address", "=", address(query.alias_address))
    if isinstance(query, AliasQuery):
        chosen.compare("state_controller", "=", address(query.state_controller))
        chosen.compare("governor", "=", address(query.governor))
    if isinstance(query, AliasQuery | NftQuery):
        chosen.compare("issuer", "=", address(query.issuer))
    if isinstance(query, AliasQuery | BasicQuery):
        chosen.compare("sender", "=", address(query.sender))
    if isinstance(query, BasicQuery):
        chosen.compare("address", "=", address(query.address))
        chosen.compare(RETURN_ADDRESS[kind], "=", address(query.storage_deposit_return_address))
        chosen.compare("expiration_return_address", "=", address(query.expiration_return_address))
        _conditions(chosen, query)
    return chosen


def _created(chosen: OutputFilter, query: CreatedQuery) -> None:
    for operator, time in (("<", query.created_before), (">", query.created_after)):
        if time is not None:
            chosen.conditions.append(f"o.ms_timestamp {operator} to_timestamp({chosen.bind(time)})")


def _native_tokens(chosen: OutputFilter, query: CommonQuery) -> None:
    chosen.compare("native_token_count", ">=", query.min_native_token_count)
    chosen.compare("native_token_count", "<=", query.max_native_token_count)
    if query.has_native_tokens is not None:
        chosen.compare("native_token_count", ">" if query.has_native_tokens else "=", 0)


def _conditions(chosen: OutputFilter, query: BasicQuery) -> None:
    chosen.demand_presence(RETURN_ADDRESS[chosen.kind], query.has_storage_deposit_return)
    chosen.demand_presence("timelock_time", query.has_timelock)
    chosen.compare("timelock_time", "<", query.timelocked_before)
    chosen.compare("timelock_time", ">", query.timelocked_after)
    chosen.demand_presence("expiration_time", query.has_expiration)
    chosen.compare("expiration_time", "<", query.expires_before)
    chosen.compare("expiration_time", ">", query.expires_after)
    if query.tag is not None:
        chosen.compare("tag", "=", query.tag.lower().removeprefix("0x"))
