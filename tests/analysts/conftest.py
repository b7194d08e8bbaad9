"""A small lake of both products: the synthetic Stardust tangle and the synthetic Wormhole."""

from __future__ import annotations

import pytest

from permalake.python_api import Lake
from support import served_lakes
from support.served_wormhole import publish_world, wormhole_settings


@pytest.fixture(scope="session")
def both_settings(tmp_path_factory):
    """The configuration of the lake, as a file and as settings."""
    folder = tmp_path_factory.mktemp("analysts")
    wormhole = wormhole_settings(folder)
    networks = {"shimmer": served_lakes.settings_of(folder).networks["shimmer"]}
    settings = wormhole.model_copy(update={"networks": networks})
    served_lakes.write(settings, ["stardust"])
    publish_world(settings)
    return settings


@pytest.fixture(scope="session")
def both(both_settings):
    """The lake, opened."""
    return Lake(both_settings)
