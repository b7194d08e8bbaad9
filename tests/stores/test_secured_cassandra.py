"""A login and TLS towards a real Cassandra that refuses everybody without them, from driver and Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from permalake.contracts.cql import StoreTable, create_keyspace
from permalake.errors import ConfigError, PermalakeError
from permalake.stores import cassandra, cassandra_tls
from support.cassandra_rows import held
from support.secured_cassandra import PASSWORD, USER, Authority, with_values

TABLE = StoreTable(
    "blocks", "Blocks by id.", {"id": "text", "milestone": "int"}, ("id",), (("milestone", "ASC"),)
)
KEYSPACE = "secured"


@pytest.fixture(scope="module")
def settings(secured_cassandra):
    return secured_cassandra


def refusal(settings):
    with pytest.raises(PermalakeError) as caught, cassandra.session(settings):
        pass
    assert "\n" not in str(caught.value)
    assert PASSWORD not in str(caught.value)
    return caught.value


def test_rows_are_written_read_and_deleted_by_connector_and_driver(settings, spark) -> None:
    statements = [create_keyspace(KEYSPACE, settings.local_dc, 1), *TABLE.ddl(KEYSPACE)]
    cassandra.ensure(settings, statements, [(KEYSPACE, TABLE)])
    frame = spark.createDataFrame([("a", 1), ("b", 2), ("c", 3)], TABLE.spark)
    cassandra.write(frame, settings, KEYSPACE, TABLE, 1_000)
    assert sorted(row["id"] for row in held(settings, KEYSPACE, "blocks")) == ["a", "b", "c"]
    found = cassandra.lookup(frame.where("id = 'b'"), settings, KEYSPACE, TABLE).collect()
    assert [tuple(row) for row in found] == [("b", 2)]
    assert cassandra.delete(frame.where("id <> 'b'"), settings, KEYSPACE, TABLE, 1_001) == 2
    assert [row["id"] for row in held(settings, KEYSPACE, "blocks")] == ["b"]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"password": "wrong"}, f"refuses the login {USER}"),
        ({"username": None, "password": None}, "refuses a session without a login"),
    ],
)
def test_a_refused_login_is_final_and_says_which(settings, values, told) -> None:
    error = refusal(with_values(settings, **values))
    assert isinstance(error, ConfigError)
    assert told in str(error)
    assert "PERMALAKE_CASSANDRA__PASSWORD" in str(error)


@pytest.mark.parametrize(
    "without",
    [("ssl_ca_file", "ssl_cert_file", "ssl_key_file"), ("ssl_cert_file", "ssl_key_file")],
    ids=["TLS", "a certificate"],
)
def test_nobody_gets_in_without(settings, without) -> None:
    assert "does not answer" in str(refusal(with_values(settings, **dict.fromkeys(without))))


def test_a_server_of_another_authority_is_not_trusted(settings, tmp_path) -> None:
    stranger = Authority("cluster").pem(tmp_path / "stranger.pem")
    error = refusal(with_values(settings, ssl_ca_file=stranger))
    assert "certificate verify failed" in str(error).lower()


def test_the_connector_does_not_trust_it_either(settings, spark, tmp_path) -> None:
    stranger = Authority("cluster").pem(tmp_path / "other.pem")
    frame = spark.createDataFrame([("z", 1)], TABLE.spark)
    with pytest.raises(Exception, match=r"Failed to open native connection"):
        cassandra.write(frame, with_values(settings, ssl_ca_file=stranger), KEYSPACE, TABLE, 2_000)
    assert "z" not in [row["id"] for row in held(settings, KEYSPACE, "blocks")]


def test_a_file_that_is_no_certificate_names_its_key(settings, tmp_path) -> None:
    (tmp_path / "empty.pem").write_text("nothing\n")
    for file in (tmp_path / "empty.pem", tmp_path / "absent.pem"):
        wrong = with_values(settings, ssl_ca_file=file)
        told = f"cassandra.ssl_ca_file: {file} cannot be used"
        assert str(refusal(wrong)).startswith(told)
        with pytest.raises(ConfigError, match=told):
            cassandra_tls.connector_options(wrong)


def test_files_made_for_java_are_readable_by_their_user_alone(settings) -> None:
    options = cassandra_tls.connector_options(settings)
    for store in ("trustStore", "keyStore"):
        file = Path(options[f"spark.cassandra.connection.ssl.{store}.path"])
        assert file.stat().st_mode & 0o777 == 0o600
