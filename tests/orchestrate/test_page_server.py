"""The pages in Airflow: those of the API, and headers that let a page do nothing else."""

from __future__ import annotations

import html
import re
import sqlite3
import time
from contextlib import closing
from datetime import UTC, date, datetime

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.audit import docs
from permalake.config import load_settings
from permalake.contracts.steps import StepResult
from permalake.lake.step_ledger import StepLedger
from permalake.orchestrate.page_server import application
from support.lakes import DAY1, NETWORK, OpenLake, build

TO_COME = date(2100, 1, 1)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The plugin's pages for somebody who may see them, over a lake of two days, one of them in 2100."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "permalake.toml").write_text(
        '[lake]\nwarehouse = "warehouse"\n'
        f'[networks.{NETWORK}]\nprotocol = "stardust"\nbech32_hrp = "smr"\npath = "."\n'
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PERMALAKE_CONFIG", str(folder / "permalake.toml"))
        patched.setattr(docs, "root", lambda: folder / "audit")
        lake = OpenLake(load_settings())
        for number, day in enumerate((DAY1, TO_COME), 1):
            build(load_settings(), lake, day, number, 5, f"run {number}")
            key = StepLedger(lake.database).start(NETWORK, f"run {number}", "publish", (day, day))
            StepLedger(lake.database).finish(key, StepResult(days=(day,)))
        lake.leave()
        (folder / "audit").mkdir()
        (folder / "audit" / "index.html").write_text("<style></style>")
        app = application()
        (permission,) = app.router.dependencies
        app.dependency_overrides[permission.dependency] = lambda: None
        yield TestClient(app)


def of_the_lake(text):
    names = ("permalake_lake_up", "permalake_latest", "permalake_fresh", "permalake_days")
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if line.startswith(names))
    return {name: float(value) for name, value in lines}


def test_both_servers_give_each_name_one_meaning(pages) -> None:
    with TestClient(create_app(load_settings())) as api:
        answers = [of_the_lake(server.get("/metrics").text) for server in (pages, api)]
    end = datetime(DAY1.year, DAY1.month, DAY1.day + 1, tzinfo=UTC).timestamp()
    label = f'{{network="{NETWORK}"}}'
    for metrics in answers:
        age = datetime.now(UTC).timestamp() - metrics.pop(f"permalake_freshness_seconds{label}")
        assert abs(age - end) < 60
        assert metrics == {
            "permalake_lake_up": 1,
            f"permalake_latest_published_day_timestamp_seconds{label}": end,
            f'permalake_days{{network="{NETWORK}",state="published"}}': 1,
            f'permalake_days{{network="{NETWORK}",state="gap"}}': 1,  # nothing lies before 2100
        }


def test_a_catalog_without_an_answer_is_a_figure_not_an_error(pages, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_LAKE__CATALOG", "postgresql+psycopg2://lake@127.0.0.1:9/lake")
    answer = pages.get("/metrics")
    assert answer.status_code == 200
    assert of_the_lake(answer.text) == {"permalake_lake_up": 0}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200),
        (f"/day?network={NETWORK}&date={DAY1}", 200),
        ("/day?network=<script>&date=2022-01-01", 400),
        ("/reasons", 200),
        ("/operations", 200),
        ("/operations?run=none", 404),
        ("/static/site.css", 200),
        ("/audit/", 200),
        ("/metrics", 200),
        ("/absent", 404),
    ],
)
def test_no_page_may_run_a_script_or_load_from_elsewhere(pages, path, status) -> None:
    answer = pages.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == status
    policy = answer.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "frame-ancestors 'self'"} <= set(policy)
    assert ("style-src 'unsafe-inline'" in policy) == path.startswith("/audit")
    assert not any(part.startswith("script-src") for part in policy)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<script" not in answer.text


def test_a_locked_catalog_is_named_in_time(pages) -> None:
    catalog = f"{load_settings().lake.warehouse}/catalog.db"
    with closing(sqlite3.connect(catalog, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        answer = pages.get("/operations")
        assert time.monotonic() - began < load_settings().serve.timeout
        other.execute("ROLLBACK")
    assert (answer.status_code, "catalog is locked" in answer.text) == (503, True)
    assert pages.get("/operations").status_code == 200


@pytest.mark.parametrize("path", ["/", f"/day?network={NETWORK}&date={DAY1}", "/reasons"])
def test_both_servers_show_the_same(pages, path) -> None:
    asked = {"Accept": "application/json"}
    with TestClient(create_app(load_settings())) as api:
        there = api.get(path, headers=asked).json()
    here = pages.get(path, headers=asked).json()
    for page in (here, there):
        page.pop("synthetic")
        for card in page.get("cards", ()):
            card.pop("figures")  # these are queries
    assert here == there


def test_pages_lead_only_to_what_airflow_serves_below_its_prefix(pages) -> None:
    outer = FastAPI()
    outer.mount("/permalake", pages.app)
    airflow, browser = TestClient(outer), {"Accept": "text/html"}
    found = set()
    for path in ("/", f"/day?network={NETWORK}&date={DAY1}", "/operations", "/reasons"):
        text = airflow.get(f"/permalake{path}", headers=browser).text
        found |= set(re.findall(r'(?:href|src|action)="(/[^"]*)"', text))
    assert f"/permalake/day?network={NETWORK}&amp;date={DAY1}" in found
    assert f"/permalake/operations?run=run+1&amp;network={NETWORK}" in found
    answers = {link: airflow.get(html.unescape(link), headers=browser).status_code for link in found}
    assert {link: status for link, status in answers.items() if status != 200} == {}
    assert "Open requests" not in airflow.get("/permalake/operations", headers=browser).text, (
        "none has looked"
    )


def test_a_redirect_names_no_host(pages) -> None:
    folder = docs.root() / "day"
    folder.mkdir()
    (folder / "index.html").write_text("a day")
    answer = pages.get("/audit/day", headers={"Host": "evil.example"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/audit/day/")
