"""Published states with the rows of a network's live head beside them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from permalake.contracts import Table
from permalake.contracts.namespaces import Namespaces, contracts_in, live_namespace
from permalake.lake.published import state_in
from permalake.lake.serving.snapshot import LakeSnapshot, ServedTable, read_table
from permalake.lake.state import LIVE, networks

Locations = Mapping[str, Mapping[str, str]]
"""Metadata locations of the tables of heads, by network."""


@dataclass(frozen=True)
class _Joined:
    locations: Mapping[str, str]
    tables: Mapping[str, ServedTable]
    whole: LakeSnapshot
    of: LakeSnapshot


class ServedHeads:
    """The heads of all networks; their files are looked up once somebody asks for what is not published."""

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self._joining = threading.Lock()
        self._joined: dict[str, _Joined] = {}
        self._newest: tuple[LakeSnapshot, Locations] | None = None

    def follow(self, snapshot: LakeSnapshot, locations: Locations) -> None:
        """Take a published state and the heads of the same read of the catalog as the newest ones."""
        self._newest = snapshot, locations

    def whole(self, network: str) -> LakeSnapshot | None:
        """Return the newest published state with a network's head; None where it has none.

        A row of a day that is published meanwhile is in one of them.
        """
        if self._newest is None:
            return None
        snapshot, heads = self._newest
        locations = heads.get(network)
        if locations is None:
            return None
        with self._joining:
            joined = self._joined.get(network)
            if joined is None or joined.of is not snapshot or joined.locations != locations:
                contracts = contracts_in(self._namespaces, live_namespace(network))
                tables = _read(contracts, locations, joined.tables if joined else {})
                joined = _Joined(locations, tables, _whole(snapshot, network, tables), snapshot)
                self._joined[network] = joined
        return joined.whole if joined.whole.has_head else None


def head_locations(connection: Connection) -> Locations:
    """Return where the heads of networks are."""
    located: dict[str, dict[str, str]] = {}
    for (namespace, name), location in state_in(connection, LIVE).items():
        if location:
            located.setdefault(namespace, {})[name] = location
    names: Iterable[str] = connection.execute(select(networks.c.network)).scalars() if located else ()
    return {
        network: located[namespace] for network in names if (namespace := live_namespace(network)) in located
    }


def _read(
    contracts: Mapping[str, Table], locations: Mapping[str, str], previous: Mapping[str, ServedTable]
) -> dict[str, ServedTable]:
    """Return the tables of a head; those that ``previous`` has at the same place are taken from there."""
    return {
        name: served
        if (served := previous.get(name)) and served.location == location
        else read_table(contracts[name], location)
        for name, location in locations.items()
        if name in contracts
    }


def _whole(snapshot: LakeSnapshot, network: str, head: Mapping[str, ServedTable]) -> LakeSnapshot:
    tables = dict(snapshot.tables)
    for name, table in head.items():
        tables[network, name] = _table(snapshot.table(network, name), table)
    days = frozenset(file.day for table in head.values() for file in table.files)
    return LakeSnapshot(snapshot.publication, tables, days)


def _table(published: ServedTable | None, head: ServedTable) -> ServedTable:
    # A query reads columns by the field ids of one table.
    if published is None or any(published.field_ids.get(name) != at for name, at in head.field_ids.items()):
        return head
    data_files = sorted((*published.files, *head.files), key=lambda file: (file.day, file.location))
    is_uniform = published.is_uniform and head.is_uniform
    return ServedTable(head.contract, head.location, head.field_ids, tuple(data_files), is_uniform)
