"""Pages of the whole lake: figures are read once per published state, and follow the next one."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.config import Settings
from permalake.lake import status
from support import lakes
from support.lakes import DAY1, DAY2, NETWORK

JSON = {"Accept": "application/json"}


def publish(settings, lake, day, milestone, messages) -> None:
    attempt = lake.begin(NETWORK, day, day, f"run {day}")
    lakes.stage_day(settings, attempt, day, milestone, messages)
    for table, told in (
        ("daily_extended", {"message_count": messages}),
        ("daily_activity", {"moved_tokens": 2_500_000}),
        ("ledger_totals", {"outputs": -messages, "since_milestone": 1, "checkpoint": day}),
    ):
        columns = lakes.domain_of(NETWORK).tables[table].columns
        row = {one.name: ([] if "list" in one.type else 0) if one.required else None for one in columns}
        lakes.put(settings, attempt, table, [row | told | {"date": day}])
    lake.builds.publish(lakes.pass_audit(attempt))


@pytest.fixture
def served(tmp_path):
    """The client of a lake with one day, and a function that publishes the next one."""
    networks = {NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": str(tmp_path)}}
    settings = Settings(lake={"warehouse": str(tmp_path / "lake")}, networks=networks)  # type: ignore[arg-type]
    lake = lakes.OpenLake(settings)
    publish(settings, lake, DAY1, 1, 5)
    with TestClient(create_app(settings)) as api:
        yield api, lambda: publish(settings, lake, DAY2, 3, 7)


def overview(api):
    [card] = api.get("/", headers=JSON).json()["cards"]
    return {figure["label"]: figure["value"] for figure in card["figures"]}, card["days"]


def test_pages_read_figures_once_per_published_state(served) -> None:
    api, publish_next = served
    assert overview(api)[0]["Messages"] == "5"
    charts = api.get(f"/{NETWORK}", headers=JSON).json()["charts"]
    reader, asked = api.app.state.reader, []
    reader.observe = lambda tables, seconds, error: asked.append(tables)
    opened = status._milestones_by_day.cache_info().misses
    assert overview(api)[0]["Messages"] == "5"
    assert api.get(f"/{NETWORK}", headers=JSON).json()["charts"] == charts
    assert (asked, status._milestones_by_day.cache_info().misses) == ([], opened)

    publish_next()
    assert reader.refresh() or reader.snapshot().publication > 1
    figures, days = overview(api)
    assert figures["Messages"] == "12"
    assert days[-1]["reason"] == "milestones 2 missing"
    after = api.get(f"/{NETWORK}", headers=JSON).json()["charts"]
    assert [len(chart["days"]) for chart in after] == [2] * len(charts)
    assert "daily_extended" in asked


def test_the_search_leads_to_that_of_the_network(served) -> None:
    api, _ = served
    answer = api.get("/search", params={"q": "a b&c", "in": NETWORK}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/{NETWORK}/explore?q=a+b%26c")
    assert api.get("/search", params={"q": "a", "in": "//elsewhere"}).status_code == 404
    assert 'action="/search"' in api.get("/", headers={"Accept": "text/html"}).text


def test_the_overview_draws_the_years_of_days_that_exist(served) -> None:
    api, publish_next = served
    text = api.get("/", headers={"Accept": "text/html"}).text
    assert f'aria-label="{DAY1.year}: 1 published"' in text
    publish_next()
    assert api.app.state.reader.refresh() or api.app.state.reader.snapshot().publication > 1
    text = api.get("/", headers={"Accept": "text/html"}).text
    assert f'aria-label="{DAY1.year}: 1 gap, 1 published"' in text
    assert text.count('<svg class="year"') == 1


def test_the_overview_shows_as_many_months_of_a_network_as_asked(served) -> None:
    api, _ = served
    answer = api.get("/", params={"network": "nosuch"}, headers=JSON)
    assert answer.json()["cards"] == []
    text = api.get("/", params={"network": NETWORK, "months": 1}, headers={"Accept": "text/html"}).text
    assert text.count('<div class="month">') == 1
    assert [api.get("/", params={"months": months}).status_code for months in (0, 241)] == [400, 400]


def test_a_running_figure_of_a_cut_history_is_called_a_difference(served) -> None:
    api, _ = served
    charts = {one["title"]: one for one in api.get(f"/{NETWORK}", headers=JSON).json()["charts"]}
    assert charts["Unspent outputs"]["series"] == {"outputs": [-5.0]}
    assert {title: charts[title]["since"] for title in ("Tokens moved", "Unspent outputs")} == {
        "Tokens moved": None,
        "Unspent outputs": 1,
    }
    page = api.get(f"/{NETWORK}", headers={"Accept": "text/html"}).text
    assert page.count("Since milestone 1: a difference to the ledger before it") == 1


def test_an_unexpected_error_of_a_page_is_a_page(served, monkeypatch) -> None:
    api, _ = served

    def broken(*_):
        raise RuntimeError("inside")

    monkeypatch.setattr("permalake.api.pages.daily_chart", broken)
    quiet = TestClient(api.app, raise_server_exceptions=False)
    answer = quiet.get(f"/{NETWORK}?start=2022-09-01&end=2022-09-28", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (500, "text/html")
    assert "internal error" in answer.text
    assert "inside" not in answer.text
    told = quiet.get(f"/{NETWORK}", headers=JSON)
    assert (told.status_code, told.json()["title"]) == (500, "Internal Server Error")
