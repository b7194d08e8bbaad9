"""What the settings leave out of a store, from real Airflow connections, and which of the two counts."""

from __future__ import annotations

import json
import os
from contextlib import suppress

import pytest
from airflow.providers.apache.cassandra.hooks.cassandra import CassandraHook

from permalake.config import load_settings
from permalake.errors import ConfigError
from permalake.iota.day import IOTA
from permalake.orchestrate.connections import store_variables, variables
from permalake.stores.bigtable_client import client
from permalake.wormhole.day import WORMHOLE

LOGIN = {"login": "writer", "password": "hush-hush"}
TLS = {"ssl_options": {"ca_certs": "/etc/ca.pem", "certfile": "/etc/own.pem", "keyfile": "/etc/own.key"}}
CASSANDRA = {"conn_type": "cassandra", "host": "one, two", "port": 9142, **LOGIN, "extra": TLS}
KEY = {
    "type": "service_account",
    "client_email": "writer@project.iam.gserviceaccount.com",
    "token_uri": "http://127.0.0.1:9/token",
}


@pytest.fixture
def stores(config, monkeypatch):
    """Sections of the configuration and connections by id, as a test writes them."""
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)

    def write(sections, **connections):
        config.write_text(f"{config.read_text()}\n{sections}\n")
        for name, connection in connections.items():
            monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(connection))

    return write


def resolved(domain):
    with store_variables(domain):
        return load_settings()


@pytest.fixture(scope="module")
def key():
    """The JSON of a service account's key, with a key of its own."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = rsa.generate_private_key(65537, 2048)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return {**KEY, "private_key": pem.decode()}


def test_cassandra_is_found_by_its_connection_alone(stores):
    stores('[cassandra]\nconnection = "main"', main=CASSANDRA)
    found = resolved(IOTA).cassandra
    assert found.contact_points == ("one", "two")
    assert (found.port, found.username) == (9142, "writer")
    assert found.password.get_secret_value() == "hush-hush"
    files = [str(found.ssl_ca_file), str(found.ssl_cert_file), str(found.ssl_key_file)]
    assert files == list(TLS["ssl_options"].values())


def test_a_connection_means_what_the_providers_hook_makes_of_it(stores):
    policy = {"load_balancing_policy": "DCAwareRoundRobinPolicy"}
    extra = {**policy, "load_balancing_policy_args": {"local_dc": "berlin"}}
    stores('[cassandra]\nconnection = "main"', main={**CASSANDRA, "host": "10.0.0.1", "extra": extra})
    found, cluster = resolved(IOTA).cassandra, CassandraHook("main").cluster
    assert list(found.contact_points) == cluster.contact_points
    assert found.port == cluster.port
    assert (found.username, found.password.get_secret_value()) == (
        cluster.auth_provider.username,
        cluster.auth_provider.password,
    )
    assert found.local_dc == cluster.load_balancing_policy.local_dc == "berlin"
    cluster.shutdown()


def test_what_the_settings_have_counts(stores, monkeypatch):
    monkeypatch.setenv("PERMALAKE_CASSANDRA__USERNAME", "other")
    monkeypatch.setenv("PERMALAKE_CASSANDRA__PASSWORD", "other's")
    stores('[cassandra]\nconnection = "main"\nport = 9999\nssl_ca_file = "/my/ca.pem"', main=CASSANDRA)
    found = resolved(IOTA).cassandra
    assert found.contact_points == ("one", "two")
    assert (found.port, found.username) == (9999, "other")
    assert found.password.get_secret_value() == "other's"
    assert (str(found.ssl_ca_file), found.ssl_cert_file) == ("/my/ca.pem", None)


def test_the_environment_is_as_it_was_afterwards(stores):
    stores('[cassandra]\nconnection = "main"', main=CASSANDRA)
    before = dict(os.environ)
    with suppress(RuntimeError), store_variables(IOTA):
        assert os.environ["PERMALAKE_CASSANDRA__PASSWORD"] == "hush-hush"
        raise RuntimeError
    assert dict(os.environ) == before


def test_settings_without_an_airflow_connection_do(stores):
    stores('[cassandra]\nconnection = "absent"\ncontact_points = ["here"]')
    assert variables(load_settings(), IOTA) == {}


@pytest.mark.parametrize(
    ("sections", "connection", "told"),
    [
        ('[cassandra]\nconnection = "absent"', {}, "Airflow has no connection absent; create it"),
        ('[cassandra]\nconnection = "main"', {"conn_type": "http"}, "main is of type http, not cassandra"),
        (
            '[cassandra]\nconnection = "main"',
            {"conn_type": "cassandra", "extra": {"ssl_options": {"certfile": "/x"}}},
            "main has ssl_options without ca_certs",
        ),
    ],
)
def test_a_connection_that_will_not_do_is_a_line(stores, sections, connection, told):
    stores(sections, main=connection)
    with pytest.raises(ConfigError, match=r"^cassandra\.connection: ") as error:
        variables(load_settings(), IOTA)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


BIGTABLE = '[bigtable]\ntable = "events"'


@pytest.mark.parametrize("form", ["dictionary", "text", "path"])
def test_bigtable_comes_from_the_default_google_connection(stores, key, tmp_path, form):
    file = tmp_path / "key.json"
    file.write_text(json.dumps(key))
    given = {
        "dictionary": {"keyfile_dict": key},
        "text": {"keyfile_dict": json.dumps(key)},
        "path": {"key_path": str(file)},
    }[form]
    extra = {"project": "warehouse", "instance": "events", **given}
    stores(BIGTABLE, google_cloud_default={"conn_type": "google_cloud_platform", "extra": extra})
    found = resolved(WORMHOLE).bigtable
    assert (found.project, found.instance) == ("warehouse", "events")
    opened = client(found)
    assert opened.project == "warehouse"
    assert opened._credentials.service_account_email == KEY["client_email"]


def test_googles_own_variable_counts_as_a_setting(stores, key, monkeypatch):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/etc/key.json")
    extra = {"extra__google_cloud_platform__project": "old form", "instance": "events", "keyfile_dict": key}
    stores(BIGTABLE, google_cloud_default={"conn_type": "google_cloud_platform", "extra": extra})
    found = resolved(WORMHOLE).bigtable
    assert (found.project, found.credentials) == ("old form", None)


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ({"key_secret_name": "vault"}, "key_secret_name, which is not supported"),
        ({"key_path": "/absent.json"}, "key_path /absent.json, which cannot be read"),
    ],
)
def test_a_key_that_cannot_be_had_is_a_line(stores, extra, told):
    stores(BIGTABLE, google_cloud_default={"conn_type": "google_cloud_platform", "extra": extra})
    with pytest.raises(ConfigError, match=told):
        variables(load_settings(), WORMHOLE)


def test_a_wrong_key_is_refused_and_not_shown(stores, monkeypatch):
    monkeypatch.setenv("PERMALAKE_BIGTABLE__CREDENTIALS", '{"private_key": "hush-hush"}')
    stores(f'{BIGTABLE}\nproject = "p"\ninstance = "i"')
    with pytest.raises(ConfigError, match=r"^bigtable\.credentials: ") as error:
        client(resolved(WORMHOLE).bigtable)
    assert "hush" not in str(error.value)
    assert error.value.__suppress_context__


def test_nothing_is_asked_for_a_store_of_the_other_domain(stores):
    stores('[cassandra]\nconnection = "absent"')
    assert variables(load_settings(), WORMHOLE) == {}
