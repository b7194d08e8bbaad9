"""Networks that are followed live."""

from __future__ import annotations

import pytest

from support.live_network import LiveNetwork


@pytest.fixture
def follow(spark, tmp_path, monkeypatch):
    """Makes a network that is followed live, whose node runs until the test ends."""
    servers = []

    def make(protocol="stardust", **more):
        network = LiveNetwork(spark, protocol, tmp_path, monkeypatch, **more)
        servers.append(network.node.__enter__())
        return network

    yield make
    for server in servers:
        server.__exit__()
