"""What holds for every route: problems, unknown paths and parameters, health."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.config import Settings
from support import lakes

NETWORKS = {"shimmer": {"protocol": "stardust", "bech32_hrp": "smr", "path": "."}}


@pytest.fixture
def empty(tmp_path):
    settings = Settings(lake={"warehouse": str(tmp_path / "lake")}, networks=NETWORKS)  # type: ignore[arg-type]
    with TestClient(create_app(settings)) as client:
        yield client


@pytest.fixture
def client(tmp_path):
    settings = Settings(lake={"warehouse": str(tmp_path / "lake")}, networks=NETWORKS)  # type: ignore[arg-type]
    lakes.build(settings, lakes.OpenLake(settings), lakes.DAY1, 1, 3, "first")
    with TestClient(create_app(settings)) as client:
        yield client


def test_a_lake_without_published_days_is_not_healthy(empty):
    assert empty.get("/health").status_code == 503
    assert empty.get("/shimmer/health").status_code == 503


def test_health_is_empty_once_a_day_is_published(client):
    answer = client.get("/health")
    assert (answer.status_code, answer.content) == (200, b"")


def test_an_unknown_path_or_network_is_a_problem_document(client):
    for path in ("/nosuch", "/nosuch/health", "/nosuch/api/routes"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["error"] == {"code": "404", "message": answer.json()["detail"]}


def test_an_unknown_parameter_is_a_bad_request_that_names_it(client):
    answer = client.get("/shimmer/api/routes?nosuch=1")
    assert answer.status_code == 400
    assert "nosuch" in answer.json()["detail"]


def test_an_unchanged_answer_is_not_sent_again(client):
    first = client.get("/shimmer/api/routes")
    again = client.get("/shimmer/api/routes", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
