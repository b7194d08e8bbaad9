"""The live head of a network: rows of days that are not published yet, in a namespace of their own.

One process at a time follows a network. What it adds is seen at once, all tables together; what a killed one
had written and not added nobody ever sees.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import cached_property, partial
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from sqlalchemy import Connection, func, select

from permalake.config import Settings
from permalake.contracts import Table
from permalake.contracts.namespaces import live_namespace
from permalake.lake import catalog, leases
from permalake.lake.catalog import locations, open_table
from permalake.lake.commit import MovedMeanwhileError, change
from permalake.lake.counts import day_of, files, files_between
from permalake.lake.database import Database
from permalake.lake.head_edit import TableChange, drop_prepared, prepare, published_among
from permalake.lake.head_position import Reached, forget_position, set_position
from permalake.lake.published import dataset
from permalake.lake.state import LIVE, PUBLISHED, days
from permalake.lake.task_files import FileTarget, TaskFiles, WrittenFile
from permalake.net import object_storage

_PATH = "__filename"
"""Arrow's name of the path that a row was read from."""


class Head:
    """The head of one network; ``contracts`` are its tables."""

    def __init__(
        self, settings: Settings, database: Database, network: str, contracts: Mapping[str, Table]
    ) -> None:
        self.network = network
        self.namespace = live_namespace(network)
        self.place = f"{settings.lake.warehouse}/{self.namespace}"
        self._settings = settings
        self.database = database
        self.contracts = contracts
        self._private = f"{LIVE}_{network}_{uuid4().hex[:12]}"
        self.holder: str | None = None
        """The run that follows the network, as its lease names it; None: nobody checks who adds."""

    def ensure(self) -> None:
        """Create the tables that are missing; drop a head that an earlier version wrote.

        What a killed run has prepared goes too: whoever calls this follows the network.
        """
        catalog.ensure_network(self.database, self.network)
        self.database.make_sure(partial(drop_prepared, network=self.network))
        present = self.locations()
        outdated = any(
            catalog.is_of_earlier_version(open_table(at), self.contracts[name])
            for name, at in present.items()
            if name in self.contracts
        )
        missing = self.contracts if outdated else self.contracts.keys() - present.keys()
        made = {
            name: catalog.create_table(self._settings, self.namespace, self.contracts[name])
            for name in missing
        }
        if not made:
            return

        def point(connection: Connection) -> None:
            catalog.point(connection, of=LIVE, network=self.namespace, tables=made, replace=outdated)
            forget_position(connection, self.network)

        self.database.make_sure(point)

    def locations(self) -> dict[str, str]:
        """Return the metadata location of every table, in one read."""
        with self.database.read() as connection:
            return locations(connection, LIVE, self.namespace)

    def rows(self, name: str, first: date = date.min, last: date = date.max) -> ds.Dataset:
        """Return the rows of a table from ``first`` to ``last``, read when they are used."""
        location = self.locations().get(name)
        data_files = files_between(location, first, last) if location else ()
        return self.scan(name, sorted(data_files, key=day_of))

    def files(self, name: str) -> list[DataFile]:
        """Return the data files of a table."""
        return list(files_between(self.locations()[name], date.min, date.max))

    def targets(self) -> list[FileTarget]:
        """Return what tasks need to write files of the tables."""
        return list(self._targets.values())

    @cached_property
    def _targets(self) -> dict[str, FileTarget]:
        """The tables as writers need them, which no batch changes."""
        by_table = self.locations()
        return {
            name: FileTarget.of(open_table(by_table[name]), name, contract.order)
            for name, contract in self.contracts.items()
        }

    def scan(self, name: str, files: Sequence[DataFile]) -> ds.Dataset:
        """Return the rows of some files of a table, read when they are used."""
        return object_storage.parquet_files([file.file_path for file in files], self.contracts[name].nullable)

    def write(self, name: str, rows: pa.Table) -> list[WrittenFile]:
        """Write rows of a table into files, which are not part of the head yet."""
        if not rows.num_rows:
            return []
        target = self._targets[name]
        written = TaskFiles([target], object_storage.file_io())
        written.add(name, target.checked(rows))
        return written.complete()

    def greatest(self, name: str, column: str) -> int | None:
        """Return the greatest value of a column of integers: in the head, or in published days if greater.

        None where neither has rows.
        """
        with self.database.read() as connection:
            live = locations(connection, LIVE, self.namespace).get(name)
            published = locations(connection, PUBLISHED, self.network).get(name)
            newest = self._newest_published(connection)
        greatest = [_greatest(files(open_table(live)), column, self.contracts[name])] if live else []
        if published and newest:
            greatest.append(_greatest(files_between(published, newest, newest), column, self.contracts[name]))
        return max((milestone for milestone in greatest if milestone is not None), default=None)

    def newest_published(self) -> date | None:
        """Return the newest day that is published."""
        with self.database.read() as connection:
            return self._newest_published(connection)

    def published_rows(self, name: str, *, every_day: bool = False) -> ds.Dataset:
        """Return the rows of a table on the newest day that is published, or on every one."""
        with self.database.read() as connection:
            published = locations(connection, PUBLISHED, self.network).get(name)
            newest = self._newest_published(connection)
        if newest is None:
            return dataset(self.contracts[name], None)
        return dataset(self.contracts[name], published, date.min if every_day else newest, newest)

    def _is_of_heads_alone(self, name: str) -> bool:
        return name in self.contracts and self.contracts[name].commit == "head"

    def _newest_published(self, connection: Connection) -> date | None:
        newest: date | None = connection.execute(
            select(func.max(days.c.date)).where(
                days.c.network == self.network, days.c.publication_id.is_not(None)
            )
        ).scalar()
        return newest

    def commit(
        self,
        added: Iterable[WrittenFile],
        replaced: Mapping[str, Collection[str]] | None = None,
        oldest: date = date.min,
        reached: Reached | None = None,
    ) -> set[date]:
        """Add files in the place of ``replaced`` ones (paths by table), all tables in one transaction.

        Files of days that are published by now, or before ``oldest``, are left out; days before ``oldest``
        leave the head. Of a table that the head alone has, files of days up to the newest published one are
        left out too. ``reached``: how far the head then is.

        Returns:
            The days that were left out.

        Raises:
            PermalakeError: if others kept on changing the head.
            LeaseLostError: if the network is no longer that of :attr:`holder`.
        """
        files_by_table: dict[str, list[WrittenFile]] = defaultdict(list)
        for file in added:
            files_by_table[file.table].append(file)
        days_with_files = {file.day for given in files_by_table.values() for file in given}

        def once() -> set[date]:
            with self.database.read() as connection:
                base = locations(connection, LIVE, self.namespace)
                published = published_among(connection, self.network, days_with_files)
                newest = self._newest_published(connection)
            left_out = published | {day for day in days_with_files if day < oldest}
            passed = left_out | {day for day in days_with_files if newest and day <= newest}
            changes = {
                name: _change_of(
                    at,
                    files_by_table[name],
                    (replaced or {}).get(name, ()),
                    passed if self._is_of_heads_alone(name) else left_out,
                    oldest,
                )
                for name, at in base.items()
            }
            edit = prepare(
                self._settings,
                self.database,
                self.network,
                catalog=self._private,
                base=base,
                changes=changes,
            )
            with self.database.write() as connection:
                leases.lock_network(connection, self.network)
                self._check_holder(connection)
                same = published_among(connection, self.network, days_with_files) == published
                same = same and self._newest_published(connection) == newest
                if not (same and edit.apply(connection)):
                    raise MovedMeanwhileError(self.namespace)
                if reached:
                    set_position(connection, self.network, reached)
            return left_out

        return change(self._settings, self.database, f"{self.namespace}; run it again", once)

    def _check_holder(self, connection: Connection) -> None:
        """Raise :class:`LeaseLostError` where two runs would add the same to the head."""
        if self.holder and not leases.holds(connection, self.network, leases.LIVE, self.holder):
            raise leases.LeaseLostError(f"{self.network}: another run follows it by now, so this one ends")


def rows_among(rows: ds.Dataset, column: str, values: pa.Array) -> pa.Table:
    """Return the rows of files whose ``column`` has one of some values.

    Of every file this column is read, and the others of those files alone that have such a row.
    """
    is_among = pc.field(column).isin(values)
    paths = set(rows.to_table([_PATH], filter=is_among)[_PATH].unique().to_pylist())
    some = [fragment for fragment in rows.get_fragments() if fragment.path in paths]
    return ds.FileSystemDataset(some, rows.schema, rows.format, rows.filesystem).to_table(filter=is_among)


def _change_of(
    location: str,
    added: Sequence[WrittenFile],
    replaced: Collection[str],
    left_out: Collection[date],
    oldest: date,
) -> TableChange:
    present = files_between(location, date.min, date.max) if replaced or oldest > date.min else ()
    removed = [file for file in present if file.file_path in replaced or day_of(file) < oldest]
    return TableChange(removed, [file.data_file for file in added if file.day not in left_out])


def _greatest(data_files: Iterable[DataFile], column: str, contract: Table) -> int | None:
    field = contract.iceberg.find_field(column)
    bounds = [(file.upper_bounds or {}).get(field.field_id) for file in data_files]
    values = [int(from_bytes(field.field_type, bound)) for bound in bounds if bound is not None]  # type: ignore[arg-type]
    return max(values, default=None)
