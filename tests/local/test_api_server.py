"""The background server of ``make up``: it answers, a second start finds it, and it ends."""

from __future__ import annotations

import socket

import httpx
import pytest

from permalake.config import load_settings
from permalake.errors import ConfigError, PermalakeError
from permalake.local import api_server, config_of_make
from permalake.local.services.daemon import LOOPBACK, free_port
from support import lakes


@pytest.fixture
def environment(config, tmp_path, monkeypatch):
    """The folder of a server whose settings lie in the present folder, as users may write it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERMALAKE_CONFIG", config.name)
    monkeypatch.setenv("PERMALAKE_LAKE__WAREHOUSE", "lake")
    monkeypatch.setenv("PERMALAKE_SERVE__PORT", str(free_port()))
    monkeypatch.setenv("PERMALAKE_HOME", "home")
    yield tmp_path / "serve"
    api_server.down(tmp_path / "serve")


def test_it_answers_until_it_is_stopped(environment, tmp_path, monkeypatch) -> None:
    settings = lakes.settings_of(tmp_path / "lake")
    lakes.build(settings, lakes.OpenLake(settings), lakes.DAY1, 1, 3, "first")
    address = api_server.up(environment)
    assert httpx.get(f"{address}/shimmer/health").status_code == 200
    monkeypatch.setenv("PERMALAKE_SERVE__PORT", str(free_port()))
    assert api_server.up(environment) == address, "a server that runs keeps its port"
    assert api_server.down(environment)
    assert not api_server.down(environment)
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{address}/health")


def test_without_a_lake_the_error_names_the_log(environment) -> None:
    with pytest.raises(PermalakeError, match=r"serve ended at once; see .*serve\.log"):
        api_server.up(environment)


def test_a_taken_port_is_named_with_the_setting_that_chooses_another(environment) -> None:
    port = load_settings(config_of_make()).serve.port
    with socket.socket() as taken:
        taken.bind((LOOPBACK, port))
        taken.listen()
        with pytest.raises(PermalakeError, match=rf"port {port} is in use.*PERMALAKE_SERVE__PORT"):
            api_server.up(environment)


def test_it_serves_the_lake_that_the_variable_names(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_CONFIG", str(tmp_path / "other.toml"))
    with pytest.raises(ConfigError, match=r"other\.toml: no such configuration file"):
        api_server.up(tmp_path / "serve")
