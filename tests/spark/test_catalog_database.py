"""What Spark is told of the catalog database, and that no secret shows in settings, errors or lineage."""

from __future__ import annotations

import pytest

from permalake.config import Settings
from permalake.domains import domain_of
from permalake.errors import ConfigError
from permalake.iota.day import IOTA
from permalake.spark.catalog_database import catalog_conf, catalog_url

SECRET = "s3cr3t"


def settings_with(catalog):
    return Settings(lake={"warehouse": "/lake", "catalog": catalog})


def test_options_of_the_uri_reach_the_driver_and_the_password_does_not() -> None:
    conf = catalog_conf(
        settings_with(
            f"postgresql://me:{SECRET}%40@db:5433/cat?sslmode=verify-full&sslrootcert=/my%20ca.crt"
            "&connect_timeout=5&application_name=a%26b&target_session_attrs=read-write&keepalives=1"
        ),
        "c",
    )
    uri, _, options = conf["spark.sql.catalog.c.uri"].partition("?")
    assert uri == "jdbc:postgresql://db:5433/cat"
    assert set(options.split("&")) == {
        "sslmode=verify-full",
        "sslrootcert=%2Fmy%20ca.crt",
        "connectTimeout=5",
        "ApplicationName=a%26b",
        "targetServerType=primary",
        "tcpKeepAlive=true",
    }
    assert conf["spark.sql.catalog.c.jdbc.user"] == "me"
    assert SECRET not in str(conf)
    assert catalog_conf(settings_with("postgresql://[::1]/cat"), "c")["spark.sql.catalog.c.uri"] == (
        "jdbc:postgresql://[::1]:5432/cat"
    )


@pytest.mark.parametrize(
    ("catalog", "text"),
    [
        (f"postgresql://me:{SECRET}@db/cat?sslcrl=/x", "does not know the option sslcrl; remove it"),
        (f"postgresql://me@db/cat?password={SECRET}", "does not know the option password; remove it"),
        (f"postgresql://me:a@{SECRET}@db/cat", "more than one @; write it as postgresql://USER:PASSWORD@"),
        (f"postgresql:/me:{SECRET}@db/cat", "not a database URI"),
        (f"postgresql://me:x/y@db:{SECRET}/cat", "not a database URI"),
        (f"mysql://me:{SECRET}@db/cat", "mysql is not supported; use sqlite or postgresql"),
        (f"{SECRET}", "not a database URI"),
    ],
)
def test_errors_about_the_uri_do_not_quote_it(catalog, text) -> None:
    with pytest.raises(ConfigError) as error:
        catalog_conf(settings_with(catalog), "c")
    assert str(error.value).startswith("lake.catalog: ")
    assert text in str(error.value)
    assert SECRET not in str(error.value)
    assert "\n" not in str(error.value)


def test_no_secret_shows_in_settings() -> None:
    settings = Settings(
        lake={"warehouse": "/lake", "catalog": f"postgresql://me:{SECRET}@db/cat"},
        networks={
            "shimmer": {
                "protocol": "stardust",
                "bech32_hrp": "smr",
                "source": "node",
                "url": f"https://me:{SECRET}@node.example/{SECRET}?key={SECRET}",
            }
        },
        wormhole={"source": "wormholescan", "url": f"https://{SECRET}@scan.example/{SECRET}"},
        prices={"provider": "coingecko", "url": f"https://x/{SECRET}", "api_key": SECRET},
        chains={2: {"rpc_url": f"https://rpc.example/v3/{SECRET}"}},
        alerts={"webhook": f"https://hooks.example/{SECRET}", "smtp_password": SECRET},
    )
    assert SECRET not in repr(settings)
    assert SECRET not in str(settings)
    for section in (settings.lake, settings.chains[2], settings.alerts):
        assert SECRET not in section.model_dump_json()
    for network in ("shimmer", "wormhole"):
        assert SECRET not in str(domain_of(network).inputs(settings, network).dataset)
    assert IOTA.inputs(settings, "shimmer").dataset == ("https://node.example", "shimmer")
    assert catalog_url(settings).password == SECRET


def test_a_fingerprint_follows_an_rpc_address() -> None:
    one, other = (Settings(chains={2: {"rpc_url": f"https://rpc.example/{key}"}}).chains[2] for key in "ab")
    assert one.model_dump_json() != other.model_dump_json()


def test_an_rpc_address_that_is_none_is_refused_without_quoting_it() -> None:
    with pytest.raises(ValueError, match="http:// or https://") as error:
        Settings(chains={2: {"rpc_url": f"ftp://{SECRET}"}})
    assert SECRET not in str(error.value.errors(include_input=False))  # type: ignore[attr-defined]
