"""What is asked of a page must be something that it knows: one rule over the routes of all pages."""

from __future__ import annotations

import re

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.pages.routers import ROUTERS
from permalake.web.page_router import page_parameters
from permalake.web.unknown_parameters import parameters_of
from support import synthetic_lake
from support.lakes import OpenLake
from support.served_wormhole import wormhole_settings

JSON = {"Accept": "application/json"}


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    """A server of all kinds of networks whose lake is empty: the rule asks before a page reads."""
    folder = tmp_path_factory.mktemp("empty")
    settings = synthetic_lake.settings_of(folder / "lake")
    settings = settings.model_copy(update={"wormhole": wormhole_settings(folder).wormhole})
    OpenLake(settings)
    with TestClient(create_app(settings)) as client:
        yield client


def page_routes(app):
    return [route for route in app.routes if isinstance(route, APIRoute) and "pages" in route.tags]


def test_every_page_refuses_a_misspelt_parameter_and_names_the_nearest(api) -> None:
    routes = page_routes(api.app)
    assert len({route.path for route in routes}) > 40
    assert {path for shared in ROUTERS for path in (one.path for one in page_routes(shared))} <= {
        route.path for route in routes
    }
    for route in routes:
        path = re.sub(r"{[^}]*}", "1", route.path)
        for name in sorted(page_parameters(route)):
            answer = api.get(path, params={f"{name}x": "2024-01-01"}, headers=JSON)
            told = answer.json()["detail"]
            assert answer.status_code == 400, route.path
            assert told.startswith(f"{name}x: unknown parameter; the nearest one is "), told
            assert f"nearest one is {name} " in told or len(name) == 1, told
            assert len(told.splitlines()) == 1


def test_pages_say_it_as_pages_do(api) -> None:
    answer = api.get("/wormhole/messages?publication=3", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (400, "text/html")
    assert "publication: unknown parameter; the nearest one is application (there are " in (answer.text)
    hostile = api.get("/", params={"<script>\n": "1"}, headers={"Accept": "text/html"})
    assert hostile.status_code == 400
    assert "<script>" not in hostile.text


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        ("form=2024-01-01", "format"),
        ("Start=2024-01-01", "start"),
        ("stat=2024-01-01", "start"),
        ("ned=", "end"),
    ],
)
def test_the_nearest_is_named_whatever_else_is_right(api, asked, nearest) -> None:
    told = api.get(f"/shimmer/explore/changes?sort=time&{asked}", headers=JSON).json()["detail"]
    assert f"nearest one is {nearest} (" in told
    assert "address, change, end, format, kind, list, maximum, minimum, page, sort, start" in told


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("/api/wormhole/v1/recent?pagesize=3", "pageSize"),
        ("/api/publications?sinse=1", "since"),
        ("/wormhole/api/v1/vaas?pagsize=2", "pageSize"),
    ],
)
def test_a_route_of_the_api_names_the_nearest_too(api, path, nearest) -> None:
    answer = api.get(path, headers=JSON)
    assert answer.status_code == 400
    assert f"unknown parameter; the nearest one is {nearest} (there are " in answer.json()["detail"]


def test_only_a_name_is_a_network(api) -> None:
    """PostgreSQL takes no NUL; the catalog of this server does."""
    asking = {
        route.path
        for route in api.app.routes
        if isinstance(route, APIRoute) and "network" in parameters_of(route)
    }
    assert asking >= {
        "/",
        "/day",
        "/operations",
        "/quality",
        "/quality/changes",
        "/verify",
        "/api/publications",
    }
    for path in asking:
        for name in ("\0", "shimmer\0", "<b>", "a" * 49):
            answer = api.get(path, params={"network": name}, headers=JSON)
            assert (answer.status_code, path) == (400, path)
            assert answer.json()["detail"].startswith("network: ")
    assert api.get("/", params={"network": ""}, headers=JSON).json() == api.get("/", headers=JSON).json()
    for run in ("\0", "a\nb"):
        answer = api.get("/operations", params={"run": run}, headers=JSON)
        assert (answer.status_code, answer.json()["detail"][:5]) == (400, "run: ")
