"""The configuration: what is read, what overrides what, and what a faulty key is told."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from permalake.config import load_settings
from permalake.errors import ConfigError
from permalake.paths import ROOT

NETWORK = '[networks.shimmer]\nprotocol = "stardust"\nbech32_hrp = "smr"\npath = "archive"\n'


@pytest.fixture
def toml(tmp_path, monkeypatch):
    monkeypatch.delenv("PERMALAKE_CONFIG", raising=False)

    def write(text: str):
        file = tmp_path / "permalake.toml"
        file.write_text(text)
        return file

    return write


def test_relative_paths_are_taken_from_the_files_folder(toml, tmp_path) -> None:
    settings = load_settings(toml('[lake]\nwarehouse = "lake"\n' + NETWORK))
    assert settings.lake.warehouse == str(tmp_path / "lake")
    assert settings.network("shimmer").path == tmp_path / "archive"
    assert settings.lake.catalog_uri == f"sqlite:///{tmp_path}/lake/catalog.db"


def test_folders_of_exports_are_taken_from_the_files_folder(toml, tmp_path) -> None:
    mirrored = 'source = "permalake"\nurl = "export"\nfallback = ["https://example.org/copy", "other"]\n'
    file = toml(
        f'{NETWORK}{mirrored}publisher_keys = ["key"]\n[wormhole]\n{mirrored}publisher_keys = ["key"]'
    )
    settings = load_settings(file)
    expected = (f"{tmp_path}/export", ("https://example.org/copy", f"{tmp_path}/other"))
    for section in (settings.network("shimmer"), settings.wormhole):
        assert (section.url, section.fallback) == expected
    node = NETWORK + 'source = "node"\nurl = "node:14265"'
    assert load_settings(toml(node)).network("shimmer").url == "node:14265"


def test_environment_overrides_any_key(toml, monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_LAKE__WAREHOUSE", "s3://bucket/lake")
    monkeypatch.setenv("PERMALAKE_NETWORKS__SHIMMER__CHUNK_SIZE", "1000")
    monkeypatch.setenv("PERMALAKE_CHAINS__2__RPC_URL", "http://127.0.0.1:8545")
    settings = load_settings(toml(NETWORK))
    assert settings.lake.warehouse == "s3://bucket/lake"
    assert settings.network("shimmer").chunk_size == 1000
    assert settings.chains[2].rpc_url.get_secret_value() == "http://127.0.0.1:8545"


@pytest.mark.parametrize("variable", ["ALERTS__MAIL_TO", "CASSANDRA__CONTACT_POINTS", "LAKE"])
def test_a_variable_that_is_not_json_is_named(toml, monkeypatch, variable) -> None:
    monkeypatch.setenv(f"PERMALAKE_{variable}", "ops@example.org")
    with pytest.raises(ConfigError, match=f"^PERMALAKE_{variable}: not JSON; write a list as "):
        load_settings(toml(NETWORK))


def test_a_file_that_cannot_be_read_is_named(toml, monkeypatch) -> None:
    file = toml(NETWORK)

    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_text", refused)
    with pytest.raises(ConfigError, match=r"permalake\.toml: cannot be read: Permission denied$"):
        load_settings(file)


def test_config_variable_names_the_file(toml, monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_CONFIG", str(toml(NETWORK)))
    assert load_settings().namespaces == ("shimmer",)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[lake]\nwarehose = 'x'", "lake.warehose: unknown key"),
        ("[nets.a]\n", "nets: unknown key"),
        (NETWORK + "chunk_size = 'many'", "networks.shimmer.chunk_size"),
        (NETWORK.replace("stardust", "coordicide"), "networks.shimmer.protocol"),
        (
            '[networks.a]\nprotocol = "stardust"\nbech32_hrp = "smr"\n',
            "networks.a: source 'archive_rest' needs path",
        ),
        (
            NETWORK + 'source = "permalake"\nurl = "https://example.org"',
            "networks.shimmer: source 'permalake' needs url and publisher_keys",
        ),
        (
            '[wormhole]\nsource = "permalake"\npublisher_keys = ["key"]',
            "wormhole: source 'permalake' needs url and publisher_keys",
        ),
        (NETWORK.replace("networks.shimmer", "networks.wormhole"), "networks.wormhole"),
        ("[prices]\nprovider = 'oracle'", "prices.provider"),
        ("[prices]\napi_key = 'k'", "PERMALAKE_PRICES__API_KEY"),
        ("[alerts]\nsmtp_host = 'mail.example.org'", "alerts: give smtp_host and mail_to, or neither"),
        ("[alerts]\nmail_to = ['ops@example.org']", "alerts: give smtp_host and mail_to, or neither"),
        ("[lake", "not valid TOML"),
    ],
)
def test_a_fault_names_its_key_on_one_line(toml, text, named) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(toml(text))
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_variables_are_faults(toml, monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_LAKES__WAREHOUSE", "x")
    with pytest.raises(ConfigError, match="PERMALAKE_LAKES__WAREHOUSE"):
        load_settings(toml(NETWORK))


def test_secrets_do_not_show(toml, monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_PRICES__API_KEY", "hush-hush")
    settings = load_settings(toml(NETWORK))
    assert settings.prices.api_key is not None
    assert settings.prices.api_key.get_secret_value() == "hush-hush"
    assert "hush-hush" not in repr(settings)


def test_a_network_that_is_not_configured(toml) -> None:
    with pytest.raises(ConfigError, match=r"networks\.mainnet: not configured \(configured: shimmer\)"):
        load_settings(toml(NETWORK)).network("mainnet")


def test_a_missing_file_is_named(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml: no such configuration file"):
        load_settings(tmp_path / "nowhere.toml")


def test_the_default_warehouse_moves_with_the_home(tmp_path) -> None:
    code = "from permalake.config import load_settings; print(load_settings().lake.catalog_uri)"
    bundled = {name: value for name, value in os.environ.items() if not name.startswith("PERMALAKE_")}
    for folder in (ROOT, tmp_path):  # with the bundled configuration, and without any
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder,
            env={**bundled, "PERMALAKE_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == f"sqlite:///{tmp_path}/home/warehouse/catalog.db"
