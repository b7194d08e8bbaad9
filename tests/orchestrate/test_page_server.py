"""The pages in Airflow: the metrics that the API has too, and headers that let a page do nothing else."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from datetime import UTC, date, datetime

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.audit import docs
from permalake.config import load_settings
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


def test_both_servers_give_each_name_one_meaning(pages):
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


def test_a_catalog_without_an_answer_is_a_figure_not_an_error(pages, tmp_path, monkeypatch):
    monkeypatch.setenv("PERMALAKE_LAKE__CATALOG", "postgresql+psycopg2://lake@127.0.0.1:9/lake")
    answer = pages.get("/metrics")
    assert answer.status_code == 200
    assert of_the_lake(answer.text) == {"permalake_lake_up": 0}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200),
        (f"/day?network={NETWORK}&date={DAY1}", 200),
        ("/day?network=<script>&date=2022-01-01", 404),
        ("/runs", 200),
        ("/run?id=none", 404),
        ("/audit/", 200),
        ("/metrics", 200),
        ("/absent", 404),
    ],
)
def test_no_page_may_run_a_script_or_load_from_elsewhere(pages, path, status):
    answer = pages.get(path)
    assert answer.status_code == status
    policy = answer.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "frame-ancestors 'self'", "style-src 'unsafe-inline'"} <= set(policy)
    assert not any(part.startswith("script-src") for part in policy)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<script" not in answer.text or answer.headers["content-type"] == "application/json"


def test_a_locked_catalog_is_named_in_time(pages):
    catalog = f"{load_settings().lake.warehouse}/catalog.db"
    with closing(sqlite3.connect(catalog, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        answer = pages.get("/runs")
        assert time.monotonic() - began < load_settings().serve.timeout
        other.execute("ROLLBACK")
    assert (answer.status_code, f"{catalog} locked" in answer.text) == (503, True)
    assert pages.get("/runs").status_code == 200


def test_a_redirect_names_no_host(pages):
    folder = docs.root() / "day"
    folder.mkdir()
    (folder / "index.html").write_text("a day")
    answer = pages.get("/audit/day", headers={"Host": "evil.example"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/audit/day/")
