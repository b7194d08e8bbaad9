"""What the settings leave out of a store, from real Airflow connections, and which of the two counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Never
from urllib.parse import parse_qs

import pytest
from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService
from airflow.providers.apache.cassandra.hooks.cassandra import CassandraHook
from airflow.providers.google.common.hooks.base_google import GoogleBaseHook
from google.auth.credentials import with_scopes_if_required
from google.auth.transport.requests import Request

from permalake.config import load_settings
from permalake.errors import ConfigError
from permalake.iota.day import IOTA
from permalake.lake.owner import OWNER, is_gone
from permalake.orchestrate.connections import store_variables, variables
from permalake.orchestrate.live_dag import LiveStep
from permalake.spark.submit import SubmitEnd
from permalake.stores.bigtable_client import client, credentials
from permalake.wormhole.day import WORMHOLE
from support.secret_manager_server import secret_manager

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


def test_cassandra_is_found_by_its_connection_alone(stores) -> None:
    stores('[cassandra]\nconnection = "main"', main=CASSANDRA)
    found = resolved(IOTA).cassandra
    assert found.contact_points == ("one", "two")
    assert (found.port, found.username) == (9142, "writer")
    assert found.password.get_secret_value() == "hush-hush"
    files = [str(found.ssl_ca_file), str(found.ssl_cert_file), str(found.ssl_key_file)]
    assert files == list(TLS["ssl_options"].values())


def test_a_connection_means_what_the_providers_hook_makes_of_it(stores) -> None:
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


def test_what_the_settings_have_counts(stores, monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_CASSANDRA__USERNAME", "other")
    monkeypatch.setenv("PERMALAKE_CASSANDRA__PASSWORD", "other's")
    stores('[cassandra]\nconnection = "main"\nport = 9999\nssl_ca_file = "/my/ca.pem"', main=CASSANDRA)
    found = resolved(IOTA).cassandra
    assert found.contact_points == ("one", "two")
    assert (found.port, found.username) == (9999, "other")
    assert found.password.get_secret_value() == "other's"
    assert (str(found.ssl_ca_file), found.ssl_cert_file) == ("/my/ca.pem", None)


def test_the_environment_is_as_it_was_afterwards(stores) -> Never:
    stores('[cassandra]\nconnection = "main"', main=CASSANDRA)
    before = dict(os.environ)
    with suppress(RuntimeError), store_variables(IOTA):
        assert os.environ["PERMALAKE_CASSANDRA__PASSWORD"] == "hush-hush"
        raise RuntimeError
    assert dict(os.environ) == before


def test_settings_without_an_airflow_connection_do(stores) -> None:
    stores('[cassandra]\nconnection = "absent"\ncontact_points = ["here"]')
    assert variables(load_settings(), IOTA) == {}


@pytest.mark.parametrize(
    ("sections", "connection", "told"),
    [
        (
            '[cassandra]\nconnection = "absent"',
            {},
            "Airflow has no connection absent; set AIRFLOW_CONN_ABSENT",
        ),
        ('[cassandra]\nconnection = "main"', {"conn_type": "http"}, "main is of type http, not cassandra"),
        (
            '[cassandra]\nconnection = "main"',
            {"conn_type": "cassandra", "extra": {"ssl_options": {"certfile": "/x"}}},
            "main has ssl_options without ca_certs",
        ),
    ],
)
def test_a_connection_that_will_not_do_is_a_line(stores, sections, connection, told) -> None:
    stores(sections, main=connection)
    with pytest.raises(ConfigError, match=r"^cassandra\.connection: ") as error:
        variables(load_settings(), IOTA)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_the_forms_of_both_stores_are_there() -> None:
    forms = {form.connection_type: form for form in HookMetaService.hook_meta_data()}
    assert {"cassandra", "google_cloud_platform"} <= forms.keys()
    fields = forms["google_cloud_platform"].extra_fields
    assert {"project", "key_secret_name", "credential_config_file", "impersonation_chain"} <= fields.keys()


BIGTABLE = '[bigtable]\ntable = "events"'


def google(stores, **extra):
    """The settings that a Google connection gives."""
    given = {"instance": "events", **extra}
    stores(BIGTABLE, google_cloud_default={"conn_type": "google_cloud_platform", "extra": given})
    return resolved(WORMHOLE).bigtable


@pytest.mark.parametrize("form", ["dictionary", "text", "path"])
def test_bigtable_comes_from_the_default_google_connection(stores, key, tmp_path, form) -> None:
    file = tmp_path / "key.json"
    file.write_text(json.dumps(key))
    given = {
        "dictionary": {"keyfile_dict": key},
        "text": {"keyfile_dict": json.dumps(key)},
        "path": {"key_path": str(file)},
    }[form]
    found = google(stores, project="warehouse", **given)
    assert (found.project, found.instance) == ("warehouse", "events")
    opened = client(found)
    assert opened.project == "warehouse"
    assert opened._credentials.service_account_email == KEY["client_email"]


def test_a_key_tells_the_project_that_the_connection_leaves_out(stores, key) -> None:
    assert google(stores, keyfile_dict={**key, "project_id": "of-the-key"}).project == "of-the-key"


def test_googles_own_variable_counts_in_place_of_the_key(stores, key, monkeypatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/etc/key.json")
    extra = {"extra__google_cloud_platform__project": "old form", "keyfile_dict": key}
    found = google(stores, **extra)
    assert (found.project, found.credentials) == ("old form", None)


@pytest.mark.parametrize("key_is", ["of the connection", "of the machine"])
def test_accounts_are_impersonated_as_the_hook_does(stores, key, tmp_path, monkeypatch, key_is) -> None:
    chain = "first@a.iam.gserviceaccount.com, last@b-project.iam.gserviceaccount.com"
    given = {"impersonation_chain": chain}
    if key_is == "of the connection":
        given["keyfile_dict"] = key
    else:
        (tmp_path / "key.json").write_text(json.dumps(key))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    found = google(stores, **given)
    assert found.project == "b-project"
    opened, hooks = credentials(found), GoogleBaseHook("google_cloud_default").get_credentials()
    assert opened.service_account_email == hooks.service_account_email  # type: ignore[attr-defined]
    for name in ("_delegates", "_target_scopes"):
        assert list(getattr(opened, name)) == list(getattr(hooks, name))
    assert opened._source_credentials.service_account_email == KEY["client_email"]


class Exchange(BaseHTTPRequestHandler):
    """A token service: it gives a token for the one that a federation has."""

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        token = {"access_token": f"for {form['subject_token'][0]}", "issued_token_type": "token"}
        body = json.dumps({**token, "token_type": "Bearer", "expires_in": 3600}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def exchange():
    """The address of a token service."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Exchange)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("form", ["path", "text"])
def test_a_federation_exchanges_its_token(stores, exchange, tmp_path, form) -> None:
    (tmp_path / "token").write_text("the-cluster")
    federation = {
        "type": "external_account",
        "audience": "//iam.googleapis.com/locations/global/workforcePools/pool/providers/cluster",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": exchange,
        "credential_source": {"file": str(tmp_path / "token")},
    }
    (tmp_path / "federation.json").write_text(json.dumps(federation))
    forms = {"path": str(tmp_path / "federation.json"), "text": json.dumps(federation)}
    found = google(stores, project="warehouse", credential_config_file=forms[form])
    opened = with_scopes_if_required(credentials(found), ["cloud-platform"])
    opened.refresh(Request())
    assert opened.token == "for the-cluster"


SECRET = """
import json
from permalake.config import load_settings
from permalake.orchestrate.connections import store_variables
from permalake.wormhole.day import WORMHOLE

with store_variables(WORMHOLE):
    found = load_settings().bigtable
key = json.loads(found.credentials.get_secret_value())
print(json.dumps([found.project, found.instance, key["client_email"]]))
"""


def test_connection_and_key_lie_in_secret_manager(config, key, tmp_path) -> None:
    config.write_text(f"{config.read_text()}\n{BIGTABLE}\n")
    extra = {"instance": "events", "key_secret_name": "writer", "key_secret_project_id": "vault"}
    connection = {"conn_type": "google_cloud_platform", "extra": {**extra, "project": "warehouse"}}
    secrets = {
        "vault/airflow-connections-google_cloud_default": json.dumps(connection),
        "vault/writer": json.dumps(key),
    }
    machine = {**key, "client_email": "machine@vault.iam.gserviceaccount.com", "project_id": "vault"}
    backend = {
        "AIRFLOW__SECRETS__BACKEND": (
            "airflow.providers.google.cloud.secrets.secret_manager.CloudSecretManagerBackend"
        ),
        "AIRFLOW__SECRETS__BACKEND_KWARGS": json.dumps({"project_id": "vault"}),
    }
    with secret_manager(tmp_path, secrets, machine) as variables_of_google:
        done = subprocess.run(
            [sys.executable, "-c", SECRET],
            env={**os.environ, "PERMALAKE_CONFIG": str(config), **backend, **variables_of_google},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == ["warehouse", "events", KEY["client_email"]]
    assert key["private_key"][:80] not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ({"key_path": "/absent.json"}, "google_cloud_default: /absent.json cannot be read"),
        ({"keyfile_dict": "{"}, "Invalid key JSON"),
        ({"keyfile_dict": KEY, "key_path": "/absent.json"}, "mutually exclusive"),
        ({"idp_issuer_url": "https://idp"}, "idp_issuer_url, which is not supported"),
    ],
)
def test_a_google_connection_that_will_not_do_is_a_line(stores, extra, told) -> None:
    with pytest.raises(ConfigError, match=r"^bigtable\.connection: ") as error:
        google(stores, **extra)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_settings_alone_impersonate_too(stores, key, monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_BIGTABLE__CREDENTIALS", json.dumps(key))
    chain = 'impersonation_chain = ["last@b.iam.gserviceaccount.com"]'
    stores(f'{BIGTABLE}\nproject = "p"\ninstance = "i"\n{chain}')
    opened = credentials(load_settings().bigtable)
    assert opened.service_account_email == "last@b.iam.gserviceaccount.com"
    assert opened._source_credentials.service_account_email == KEY["client_email"]


def test_a_wrong_key_is_refused_and_not_shown(stores, monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_BIGTABLE__CREDENTIALS", '{"private_key": "hush-hush"}')
    stores(f'{BIGTABLE}\nproject = "p"\ninstance = "i"')
    with pytest.raises(ConfigError, match=r"^bigtable\.credentials: ") as error:
        client(resolved(WORMHOLE).bigtable)
    assert "hush" not in str(error.value)
    assert error.value.__suppress_context__


@pytest.mark.parametrize(
    ("domain", "sections", "connections"),
    [
        (IOTA, '[cassandra]\nconnection = "main"', {"main": CASSANDRA}),
        (
            WORMHOLE,
            BIGTABLE,
            {
                "google_cloud_default": {
                    "conn_type": "google_cloud_platform",
                    "extra": {"project": "berlin", "instance": "events"},
                }
            },
        ),
    ],
)
def test_the_live_dag_hands_them_to_its_job_too(stores, monkeypatch, domain, sections, connections) -> None:
    monkeypatch.setenv("PERMALAKE_NETWORKS__SHIMMER__SOURCE", "node")
    monkeypatch.setenv("PERMALAKE_NETWORKS__SHIMMER__URL", "http://127.0.0.1:9")
    stores(sections, **connections)
    handed = []

    def submit(_step, _submission, _context):
        handed.append(load_settings())
        assert not is_gone(os.environ[OWNER])
        return SubmitEnd(0)

    monkeypatch.setattr(LiveStep, "submit", submit)
    LiveStep(domain=domain, task_id="follow").execute({"params": {"network": None}, "run_id": "live"})
    [settings] = handed
    assert OWNER not in os.environ
    assert (settings.cassandra.contact_points, settings.bigtable.project) in (
        (("one", "two"), None),
        ((), "berlin"),
    )


def test_nothing_is_asked_for_a_store_of_the_other_domain(stores) -> None:
    stores('[cassandra]\nconnection = "absent"')
    assert variables(load_settings(), WORMHOLE) == {}
