"""A catalog that cannot be read or written says why on one line, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import insert

from permalake.cli import main as front
from permalake.errors import PermalakeError
from permalake.lake.database import Database
from permalake.lake.state import price_asks
from support.lakes import DAY1, build

ADVICE = "the catalog is damaged; restore its backup, or move it away and run `permalake restore`"


def catalog_of(settings) -> Path:
    return Path(settings.lake.warehouse) / "catalog.db"


def ask(database: Database, count: int, pragma: str = "SELECT 1") -> None:
    """Record so many requests to a price service."""
    row = {"provider": "file", "start": 0, "end": 1, "asked_at": 2}
    with database.write() as connection:
        connection.exec_driver_sql(pragma)
        connection.execute(insert(price_asks), [row | {"coin": f"coin {number}"} for number in range(count)])


@pytest.mark.parametrize("command", [("status",), ("query", "select 1"), ("maintain", "--dry-run")])
@pytest.mark.parametrize(
    "damage", [lambda content: b"x" * 200 + content[200:], lambda content: content[:9000]]
)
def test_a_damaged_catalog_is_named_by_every_command(
    settings, lake, tmp_path, capsys, damage, command
) -> None:
    build(settings, lake, DAY1, 1, 5, "a")
    catalog_of(settings).write_bytes(damage(catalog_of(settings).read_bytes()))
    config = tmp_path / "permalake.toml"
    config.write_text(f'[lake]\nwarehouse = "{settings.lake.warehouse}"\n', "utf-8")
    with pytest.raises(SystemExit) as end:
        front.main([*command, "--config", str(config)])
    assert end.value.code == 1
    assert capsys.readouterr().err == (f"permalake: lake.catalog: {ADVICE}, see docs/runbooks/restore.md\n")


def test_a_read_only_catalog_is_read_and_refuses_writes(settings, lake) -> None:
    database = Database(f"sqlite:///file:{catalog_of(settings)}?mode=ro&uri=true")
    with pytest.raises(PermalakeError, match=r"^lake\.catalog: the warehouse, its catalog .* is read-only"):
        ask(database, 1)


def test_a_full_disk_is_named(settings, lake) -> None:
    with pytest.raises(PermalakeError, match=r"^lake\.catalog: the disk is full; free space"):
        ask(lake.database, 10_000, "PRAGMA max_page_count = 1")
