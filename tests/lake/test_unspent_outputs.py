"""The view of unspent outputs, as of any day: a join of what published days created and consumed."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import pytest

from permalake.errors import PermalakeError
from support.lakes import DAY1, DAY2, DAY3, NETWORK, OpenLake, pass_audit, put, settings_of

OWNER = "smr1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"


def name(number: int) -> str:
    return f"{number:064x}0000"


def created(day: date, milestone: int, **amounts: int) -> dict:
    rows = {}
    for kind, (number, amount) in amounts.items():
        rows[f"{kind}_outputs"] = [
            {
                "output_id": name(number) if kind != "treasury" else f"{number:064x}",
                "ms_range_id": 0,
                "milestone_index": milestone,
                "ms_timestamp": datetime.combine(day, time(12), UTC),
                "inclusion_state": 1,
                "amount": amount,
                "data": b"synthetic",
                "date": day,
            }
            | (
                {"alias_id": "00" * 32, "state_controller": OWNER, "governor": OWNER}
                if kind == "alias"
                else {}
            )
            | ({"address": OWNER} if kind == "basic" else {})
        ]
    return rows


def consumed(day: date, milestone: int, *ids: str) -> dict:
    row = {
        "address": OWNER,
        "amount": 1,
        "transaction_id": "11" * 32,
        "message_id": "22" * 32,
        "milestone_index": milestone,
        "ms_timestamp": datetime.combine(day, time(12), UTC),
        "date": day,
    }
    kinds = {68: "basic", 64: "treasury"}
    return {"consumed_outputs": [row | {"output_id": one, "kind": kinds[len(one)]} for one in ids]}


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Day 1 creates a basic output, an alias and a treasury; day 2 consumes two of them and creates one;
    day 3 consumes that."""
    settings = settings_of(tmp_path_factory.mktemp("lake") / "warehouse")
    lake = OpenLake(settings)
    days = {
        DAY1: created(DAY1, 1, basic=(1, 10), alias=(2, 20), treasury=(3, 70)),
        DAY2: created(DAY2, 2, basic=(4, 15), treasury=(5, 65)) | consumed(DAY2, 2, name(1), f"{3:064x}"),
        DAY3: consumed(DAY3, 3, name(4)),
    }
    for day, tables in days.items():
        attempt = lake.begin(NETWORK, day, day, f"run {day}")
        for table, rows in tables.items():
            put(settings, attempt, table, rows)
        lake.builds.publish(pass_audit(attempt))
    return lake


@pytest.mark.parametrize(
    ("view", "unspent"),
    [
        ("unspent_outputs", {("alias", 20), ("treasury", 65)}),
        (f"unspent_outputs('{DAY1}')", {("basic", 10), ("alias", 20), ("treasury", 70)}),
        (f"unspent_outputs(DATE '{DAY2}')", {("basic", 15), ("alias", 20), ("treasury", 65)}),
        ("unspent_outputs('2020-01-01')", set()),
    ],
)
def test_unspent_as_of_any_day(lake, view, unspent) -> None:
    rows = lake.query(f"select kind, amount, address from {NETWORK}.{view}").to_pylist()
    assert {(row["kind"], row["amount"]) for row in rows} == unspent
    assert all((row["address"] == OWNER) == (row["kind"] != "treasury") for row in rows)


def test_the_view_joins_other_tables_and_is_offered_only_where_it_is_named(lake) -> None:
    sql = f"select count(*) n from {NETWORK}.unspent_outputs u join {NETWORK}.alias_outputs using (output_id)"
    assert lake.query(sql).to_pylist() == [{"n": 1}]
    with pytest.raises(PermalakeError, match="unspent_output: no such table"):
        lake.query(f"select * from {NETWORK}.unspent_output")
    with pytest.raises(PermalakeError, match="invalid date"):
        lake.query(f"select * from {NETWORK}.unspent_outputs('yesterday')")
