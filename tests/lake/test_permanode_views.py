"""What the permanode's schemas name and no lake table has: views, with the rows that Cassandra holds."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from permalake.iota.contracts.permanode_views import VIEWS
from support import expected_cassandra, served_lakes
from support.lakes import OpenLake

PROTOCOLS = sorted(served_lakes.NETWORKS)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> OpenLake:
    settings = served_lakes.settings_of(tmp_path_factory.mktemp("permanode"))
    served_lakes.write(settings)
    return OpenLake(settings)


def facts_of(protocol: str) -> dict[str, list[dict[str, Any]]]:
    folder = served_lakes.DATA / protocol / "expected"
    rows = expected_cassandra.stardust(folder)
    if protocol == "chrysalis":
        rows |= expected_cassandra.chrysalis(folder, 1_000_000)
    return rows


def rows_in(lake: OpenLake, protocol: str, view: str, *columns: str) -> list[tuple[Any, ...]]:
    sql = f'SELECT {", ".join(columns)} FROM "{served_lakes.NETWORKS[protocol]}".{view}'
    return sorted(tuple(map(plain, row.values())) for row in lake.query(sql).to_pylist())


def plain(value: Any) -> Any:
    """A time as Cassandra's driver returns it: in UTC, without saying so."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def picked(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[column] for column in columns) for row in rows)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("view", "columns"),
    [
        ("tag_hints", ("tag", "table_kind", "ms_range_id")),
        ("addresses_hints", ("address", "output_kind", "variant", "ms_range_id")),
        ("sync", ("ms_range_id", "milestone_index", "synced_by", "logged_by")),
    ],
)
def test_hints_and_sync_are_those_of_cassandra(
    lake: OpenLake, protocol: str, view: str, columns: tuple[str, ...]
) -> None:
    expected = picked(facts_of(protocol)[view], *columns)
    assert rows_in(lake, protocol, view, *columns) == expected
    assert expected


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_children_have_the_time_of_their_milestone(lake: OpenLake, protocol: str) -> None:
    columns = ("parent_id", "message_id", "milestone_index", "ms_timestamp", "inclusion_state")
    rows = rows_in(lake, protocol, "parents_by_ms", *columns)
    assert rows == picked(facts_of(protocol)["parents"], *columns)


def test_hints_of_the_chrysalis_schema(lake: OpenLake) -> None:
    columns = ("hint", "variant", "milestone_index")
    rows = rows_in(lake, "chrysalis", "hints", *columns)
    assert rows == picked(facts_of("chrysalis")["hints"], *columns)


def test_a_legacy_output_is_used_from_the_day_that_consumed_it(lake: OpenLake) -> None:
    columns = ("output_id", "is_used", "milestone_index", "ms_timestamp", "amount", "address")
    rows = rows_in(lake, "chrysalis", "legacy_outputs_by_address", *columns)
    assert rows == picked(facts_of("chrysalis")["legacy_outputs"], *columns)
    days = [date.fromisoformat(row["date"]) for row in served_lakes.expected("chrysalis", "date_cache")]
    first = rows_in(lake, "chrysalis", f"legacy_outputs_by_address('{min(days)}')", "output_id", "is_used")
    used = {output for output, is_used, *_ in rows if is_used}
    used_then = {output for output, is_used in first if is_used}
    assert used_then < used
    assert len(first) < len(rows)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_views_have_the_columns_and_keys_they_declare(lake: OpenLake, protocol: str, view: Any) -> None:
    network = served_lakes.NETWORKS[protocol]
    rows = lake.query(f'SELECT * FROM "{network}".{view.name}')
    assert rows.schema.names == [column.name for column in view.columns]
    keys = [tuple(row[name] for name in view.key) for row in rows.to_pylist()]
    assert len(keys) == len(set(keys))
