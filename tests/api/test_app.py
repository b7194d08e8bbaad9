"""What holds for every route: problems, unknown paths and parameters, health."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.config import Settings
from permalake.domains import domain_of
from permalake.lake.serving import LakeReader
from support import lakes

NETWORKS = {"shimmer": {"protocol": "stardust", "bech32_hrp": "smr", "path": "."}}


@pytest.fixture
def empty(tmp_path):
    settings = Settings(lake={"warehouse": str(tmp_path / "lake")}, networks=NETWORKS)  # type: ignore[arg-type]
    with TestClient(create_app(settings)) as client:
        yield client


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """The configuration of a lake with a published day."""
    return published(tmp_path_factory.mktemp("app") / "lake")


def published(warehouse):
    settings = Settings(lake={"warehouse": str(warehouse)}, networks=NETWORKS)  # type: ignore[arg-type]
    lakes.build(settings, lakes.OpenLake(settings), lakes.DAY1, 1, 3, "first")
    return settings


@pytest.fixture(scope="module")
def client(settings):
    with TestClient(create_app(settings)) as client:
        yield client


def test_a_lake_without_published_days_is_not_healthy(empty) -> None:
    assert empty.get("/health").status_code == 503
    assert empty.get("/shimmer/health").status_code == 503


def test_health_is_empty_once_a_day_is_published(client) -> None:
    answer = client.get("/health")
    assert (answer.status_code, answer.content) == (200, b"")


def test_an_unknown_path_or_network_is_a_problem_document(client) -> None:
    for path in ("/nosuch", "/nosuch/health", "/nosuch/api/routes"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["error"] == {"code": "404", "message": answer.json()["detail"]}


def test_an_unknown_parameter_is_a_bad_request_that_names_it(client) -> None:
    answer = client.get("/shimmer/api/routes?nosuch=1")
    assert answer.status_code == 400
    assert "nosuch" in answer.json()["detail"]


def tags(settings, cache):
    """Entity tags of two answers."""
    with TestClient(create_app(settings, LakeReader(settings, domain_of, cache=cache))) as client:
        answers = [client.get(path) for path in ("/api/analytics/v1/", "/shimmer/api/routes")]
    assert {answer.status_code for answer in answers} == {200}
    return {answer.headers["etag"] for answer in answers}


def test_an_entity_tag_follows_the_configuration(settings, tmp_path) -> None:
    first = tags(settings, tmp_path)
    assert tags(settings, tmp_path) == first
    for key, value in (("network_name", "another"), ("token_supply", 7)):
        changed = settings.networks["shimmer"].model_copy(update={key: value})
        assert not first & tags(settings.model_copy(update={"networks": {"shimmer": changed}}), tmp_path)


def test_an_entity_tag_is_of_one_lake(settings, tmp_path) -> None:
    assert not tags(settings, tmp_path) & tags(published(tmp_path / "again"), tmp_path)


def test_an_entity_tag_of_wormhole_follows_its_reference(tmp_path) -> None:
    folder = tmp_path / "reference"
    folder.mkdir()
    wormhole = {"source": "files", "path": ".", "reference": str(folder)}
    settings = Settings(lake={"warehouse": str(tmp_path / "lake")}, wormhole=wormhole)  # type: ignore[arg-type]
    with TestClient(create_app(settings)) as client:

        def tag():
            return client.get("/wormhole/v1/guardianset/current").headers["etag"]

        before = tag()
        assert tag() == before
        (folder / "deny.json").write_text("[]")
        assert tag() != before


def test_an_unchanged_answer_is_not_sent_again(client) -> None:
    first = client.get("/shimmer/api/routes")
    again = client.get("/shimmer/api/routes", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
