"""The declaration of a Wormhole day says what its steps do."""

from __future__ import annotations

from permalake.wormhole.day import WORMHOLE
from permalake.wormhole.tables.enriched_tables import enriched_tables
from permalake.wormhole.tables.event_tables import EVENT_TABLES


def test_steps_declare_the_tables_that_they_stage() -> None:
    events = {*EVENT_TABLES, "messages_daily", "observations"}
    assert set(WORMHOLE.step("ingest_decode").writes) == events
    assert set(WORMHOLE.step("enrich_analytics").writes) == set(enriched_tables({}))
    assert set(WORMHOLE.step("carry").writes) == {
        name for name, table in WORMHOLE.tables.items() if table.commit == "carried"
    }
