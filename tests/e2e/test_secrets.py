"""A whole run on PostgreSQL into a secured Cassandra: no secret is in any file that it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pyarrow as pa
import pytest

from permalake.spark import event_log
from permalake.spark.jars import JARS
from permalake.spark.submit import bin_folder, spark_conf
from support import whole_runs
from support.cassandra_rows import held
from support.postgres_server import postgres
from support.secured_cassandra import PASSWORD as CASSANDRA_PASSWORD

pytestmark = pytest.mark.long
PASSWORD = "pgZ7s3cr3tZ7"
SECRETS = {
    "PERMALAKE_PRICES__API_KEY": "pricesZ7s3cr3tZ7",
    "PERMALAKE_ALERTS__SMTP_PASSWORD": "smtpZ7s3cr3tZ7",
    "PERMALAKE_ALERTS__WEBHOOK": "http://127.0.0.1:9/hookZ7s3cr3tZ7",
    "PERMALAKE_CHAINS__2__RPC_URL": "http://127.0.0.1:9/rpcZ7s3cr3tZ7",
}
MARK = b"Z7s3cr3tZ7"
# A day as small as the sample's never asks Spark for a table by its name; larger and other ones do.
READ = """
from permalake.config import load_settings
from permalake.domains import domain_of
from permalake.pipeline.workspace import Workspace
from permalake.spark.session import session

work = Workspace.open(load_settings(), domain_of("shimmer"), "shimmer")
assert work.reader.table(session("read"), "shimmer", "messages").count()
"""


def connection(settings):
    """The Airflow connection by which the run finds the store, with login and TLS."""
    files = {
        "ca_certs": settings.ssl_ca_file,
        "certfile": settings.ssl_cert_file,
        "keyfile": settings.ssl_key_file,
    }
    return json.dumps(
        {
            "conn_type": "cassandra",
            "host": settings.contact_points[0],
            "port": settings.port,
            "login": settings.username,
            "password": CASSANDRA_PASSWORD,
            "extra": {"ssl_options": {name: str(file) for name, file in files.items()}},
        }
    )


def read_by_spark(folder, environment) -> None:
    """A table of the lake, read by Spark with an event log of its own."""
    (folder / "events").mkdir()
    (folder / "read.py").write_text(READ)
    conf = spark_conf() | event_log.conf(folder / "events")
    command = [str(bin_folder() / "spark-submit"), "--master", "local[2]"]
    command += [f"--conf={name}={value}" for name, value in conf.items()]
    done = subprocess.run(
        [*command, str(folder / "read.py")],
        env=environment | dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (folder / "read.log").write_text(done.stdout + done.stderr)


@pytest.fixture(scope="module")
def left(tmp_path_factory, secured_cassandra):
    """The folder of a run with all that it left: home, warehouse, event logs, lineage, Airflow's database."""
    folder = tmp_path_factory.mktemp("secrets")
    config = whole_runs.configuration(folder)
    (folder / "home").mkdir()
    (folder / "home" / "jars").symlink_to(JARS)
    environment = {
        **SECRETS,
        "PERMALAKE_CASSANDRA__CONNECTION": "permanode",
        "AIRFLOW_CONN_PERMANODE": connection(secured_cassandra),
        "PERMALAKE_HOME": str(folder / "home"),
        "PERMALAKE_SPARK_MASTER": "local[2]",
        "PERMALAKE_SPARK_DRIVER_MEMORY": "2g",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": f'{{"type": "file", "log_file_path": "{folder / "lineage"}"}}',
        "AIRFLOW__OPENLINEAGE__DISABLED": "false",
    }

    def status(catalog):
        return subprocess.run(
            [whole_runs.PERMALAKE, "status", "--config", str(config)],
            env={**os.environ, **environment, "PERMALAKE_LAKE__CATALOG": catalog},
            capture_output=True,
            text=True,
            check=False,
        )

    with postgres(PASSWORD, ("lake",)) as server:
        catalog = server.uri("lake", sslmode="require")
        whole_runs.finish_through_airflow(config, **environment, PERMALAKE_LAKE__CATALOG=catalog)
        own = {"PERMALAKE_CONFIG": str(config), "PERMALAKE_LAKE__CATALOG": catalog}
        read_by_spark(folder, {**os.environ, **environment, **own})
        listed, refused = status(catalog), status(server.uri("missing", sslmode="require"))
    gone = status(catalog)
    assert listed.returncode == 0, listed.stderr
    assert "shimmer" in listed.stdout
    assert refused.returncode
    assert gone.returncode
    printed = (listed.stdout, listed.stderr, refused.stderr, gone.stderr)
    (folder / "printed").write_text("\n".join(printed))
    return folder


def content(file):
    """The bytes of a file; Spark compresses its event logs."""
    return pa.input_stream(file, compression="zstd" if file.suffix == ".zstd" else None).read()


def test_what_is_searched_is_there(left) -> None:
    """Event logs that name the catalog, task logs, the metadata database with XComs, lineage, audit pages."""
    events = [content(file) for file in left.rglob("*.zstd")]
    assert any(b"jdbc:postgresql://127.0.0.1" in text and b"sslmode=require" in text for text in events)
    suffixes = {file.suffix for file in left.rglob("*") if file.is_file()}
    assert {".log", ".db", ".html", ".json"} <= suffixes
    assert list(left.glob("home/airflow/logs/*/*/*/attempt=1.log"))
    assert b"return_value" in (left / "home" / "airflow" / "airflow.db").read_bytes()
    assert list(left.glob("lineage*"))
    assert "is not there" in (left / "printed").read_text() or "does not" in (left / "printed").read_text()


def test_the_day_is_in_the_store_that_the_connection_names(left, secured_cassandra) -> None:
    assert "1 days into cassandra" in (left / "run.log").read_text()
    assert {row["milestone_index"] for row in held(secured_cassandra, "shimmer", "milestones")} == {
        17339,
        17340,
    }
    events = [content(file) for file in left.rglob("*.zstd")]
    assert any(b"spark.app.name" in text and b"serve" in text for text in events)


def test_no_file_holds_a_secret(left) -> None:
    files = [file for file in left.rglob("*") if file.is_file() and JARS not in file.resolve().parents]
    found = [str(file.relative_to(left)) for file in files if MARK in content(file)]
    assert found == []
    assert len(files) > 50
