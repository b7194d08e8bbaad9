"""A small lake of synthetic days whose publications are signed, and its export."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from permalake.config import Settings
from permalake.contracts import Table
from permalake.contracts.schema import Column
from permalake.domains import domain_of
from permalake.lake.published import state
from permalake.transparency import keys, seen, signing
from permalake.transparency.copies import LakeCopy
from permalake.transparency.export import Export, Exported
from permalake.transparency.log import SignedLog, read_log
from permalake.transparency.notes import VerifierKey
from permalake.transparency.places import FolderPlace
from support.lakes import OpenLake

NAME = "example.org/synthetic"


def at_home(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Keep key and seen logs in a folder of the test's."""
    patch.delenv(keys.VARIABLE, raising=False)
    patch.setattr(keys, "KEY_FILE", folder / "log.key")
    patch.setattr(seen, "FILE", folder / "seen_logs.json")


def table_of(network, name):
    return domain_of(network).tables.get(name)


def grown(table: Table, *, required: bool = False) -> Table:
    """A contract with a column more, between the others."""
    column = Column("extra", "string", "It came later.", required=required)
    return replace(table, body=(*table.body[:2], column, *table.body[2:]))


def sign(settings: Settings, lake: OpenLake) -> list[tuple[str, str]]:
    entries = signing.sign_all(settings, lake.database, domain_of)
    return [(entry.network, entry.date) for entry in entries]


def public_key() -> VerifierKey:
    key = keys.signing_key()
    assert key is not None
    return key.verifier


def log_of(settings: Settings) -> SignedLog:
    log = read_log(FolderPlace(settings.lake.warehouse), signing.FOLDER, [public_key()])
    assert log is not None
    return log


def lake_copy(settings: Settings, lake: OpenLake) -> LakeCopy:
    return LakeCopy(FolderPlace(settings.lake.warehouse), signing.FOLDER, state(lake.database))


def export(settings: Settings, lake: OpenLake, target: Path | FolderPlace) -> Exported:
    copy = lake_copy(settings, lake)
    work = Export(copy, log_of(settings), public_key(), table_of, lambda _: True)
    return work.write(target if isinstance(target, FolderPlace) else FolderPlace(str(target)))
