"""The declaration of an IOTA day says what its steps do."""

from __future__ import annotations

from permalake.iota.day import IOTA
from permalake.iota.tables.base_tables import BASE_TABLES
from permalake.iota.tables.day_tables import analytics_tables


def test_steps_declare_the_tables_that_they_stage() -> None:
    assert set(IOTA.step("ingest_decode").writes) == {"milestones", *BASE_TABLES}
    assert set(IOTA.step("analytics").writes) == set(analytics_tables())
    assert set(IOTA.step("carry").writes) == {
        name for name, table in IOTA.tables.items() if table.commit == "carried"
    }
