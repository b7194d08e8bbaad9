"""A catalog that another process keeps locked: pages answer in time, and commands name the lock."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, contextmanager

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.config import Settings
from permalake.errors import CatalogUnavailableError
from permalake.lake.identity import open_database
from support import lakes

NETWORKS = {"shimmer": {"protocol": "stardust", "bech32_hrp": "smr", "path": "."}}
TIMEOUT = 4


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    warehouse = tmp_path_factory.mktemp("locked") / "lake"
    settings = Settings(
        lake={"warehouse": str(warehouse)},  # type: ignore[arg-type]
        networks=NETWORKS,  # type: ignore[arg-type]
        serve={"timeout": TIMEOUT},  # type: ignore[arg-type]
    )
    lakes.build(settings, lakes.OpenLake(settings), lakes.DAY1, 1, 3, "first")
    return settings


@contextmanager
def locked(settings):
    with closing(sqlite3.connect(f"{settings.lake.warehouse}/catalog.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def test_pages_answer_in_time(settings) -> None:
    with TestClient(create_app(settings)) as api:
        for path in ("/", "/operations", "/quality", "/quality?network=shimmer"):
            with locked(settings):
                began = time.monotonic()
                answer = api.get(path, headers={"Accept": "text/html"})
                assert time.monotonic() - began < TIMEOUT, path
            assert (answer.status_code, answer.headers.get("retry-after")) == (503, "2"), path
            assert "catalog is locked" in answer.text
            assert settings.lake.warehouse not in answer.text
            assert api.get(path).status_code == 200, path


def test_the_lake_is_served_all_the_same(settings) -> None:
    with TestClient(create_app(settings)) as api, locked(settings):
        assert api.get("/health").status_code == 200
        assert api.get("/api/analytics/v1/shimmer/ms_analytics").status_code == 200


def test_a_command_names_the_lock(settings) -> None:
    with locked(settings), pytest.raises(CatalogUnavailableError) as error:
        open_database(settings, wait=0.2)
    assert str(error.value) == (
        f"lake.catalog: another process has kept {settings.lake.warehouse}/catalog.db locked for 0.2 s; "
        "wait until it is done, or end it (`fuser` names it)"
    )
