"""Lakes behind the pages, and a browser."""

from __future__ import annotations

import pytest

from permalake.api.app import create_app
from permalake.config import Settings
from permalake.transparency import keys
from support import synthetic_lake
from support.browser import browser as started
from support.lakes import OpenLake
from support.live_api import live_api
from support.served_wormhole import publish_world, wormhole_settings
from support.signed_lakes import NAME, at_home, sign
from support.site_pages import pages_of


@pytest.fixture(scope="session")
def application(tmp_path_factory):
    """The pages over both synthetic tangles and Wormhole's world, hostile names included."""
    folder = tmp_path_factory.mktemp("site")
    wormhole = wormhole_settings(folder)
    tangles = synthetic_lake.settings_of(folder / "lake")
    networks = {name: one.model_dump() for name, one in tangles.networks.items() if name != "cut"}
    settings = Settings(
        lake=wormhole.lake.model_dump(),
        networks=networks,
        wormhole=wormhole.wormhole.model_dump(),
        serve={"timeout": 60, "sql_seconds": 60},
    )  # type: ignore[arg-type]
    synthetic_lake.build(settings, networks)
    publish_world(settings)
    with pytest.MonkeyPatch.context() as patch:
        at_home(patch, folder / "home")
        keys.create_key(NAME)
        sign(settings, OpenLake(settings))
    return create_app(settings)


@pytest.fixture(scope="session")
def site(application):
    """The address of the pages."""
    with live_api(application) as address:
        yield address


@pytest.fixture(scope="session")
def pages(site):
    """The path of a page of each kind."""
    found = pages_of(site)
    # Chrysalis has the same pages; its messages have proofs of another kind.
    alike = [name for name in found if name.endswith("-iota") and not name.startswith(("message", "address"))]
    return {name: path for name, path in found.items() if name not in alike}


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium."""
    with started() as page:
        yield page
