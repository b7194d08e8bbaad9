"""A warehouse on s3://: every library is told the same place, and none is told of one that is not there."""

from __future__ import annotations

import hashlib

import pytest

from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.net import object_storage
from permalake.spark import jars
from permalake.spark.catalog_database import catalog_conf
from permalake.spark.submit import spark_conf, spark_environment

S3 = "s3://bucket/warehouse"
CATALOG = "postgresql+psycopg2://lake:secret@db/lake"


@pytest.fixture
def on_s3(monkeypatch):
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PERMALAKE_LAKE__WAREHOUSE", "s3://bucket/warehouse")
    monkeypatch.setenv("PERMALAKE_LAKE__CATALOG", CATALOG)
    return Settings()


def test_a_server_of_one_s_own_is_addressed_by_path(on_s3, monkeypatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://s3:7070")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    conf = catalog_conf(on_s3, "one")
    assert conf["spark.sql.catalog.one.io-impl"] == "org.apache.iceberg.aws.s3.S3FileIO"
    assert conf["spark.sql.catalog.one.s3.endpoint"] == "http://s3:7070"
    assert conf["spark.sql.catalog.one.s3.path-style-access"] == "true"
    assert object_storage.file_io() == {"s3.endpoint": "http://s3:7070", "s3.region": "eu-central-1"}
    assert object_storage.hadoop(S3)["spark.hadoop.fs.s3a.path.style.access"] == "true"


def test_amazon_s_own_needs_a_region_only(on_s3) -> None:
    assert object_storage.file_io() == {"s3.region": "us-east-1"}
    assert not any("endpoint" in key and "region" not in key for key in object_storage.hadoop(S3))
    assert not any("endpoint" in key for key in object_storage.spark_catalog(S3))


@pytest.fixture
def stand_ins(monkeypatch, tmp_path):
    """A function that lays an empty file in place of each jar; their digests are listed as right."""
    folder, listed = tmp_path / "jars", tmp_path / "jars.sha256"
    folder.mkdir()
    named = (*jars.COORDINATES, *jars.S3_COORDINATES, *jars.GS_COORDINATES)
    empty = hashlib.sha256(b"").hexdigest()
    listed.write_text("".join(f"{empty}  {jars.jar_name(one)}\n" for one in named), "utf-8")
    monkeypatch.setattr(jars, "JARS", folder)
    monkeypatch.setattr(jars, "DIGESTS", listed)

    def lay(coordinates):
        for coordinate in coordinates:
            (folder / jars.jar_name(coordinate)).touch()

    return lay


def test_a_submit_brings_the_jars_and_their_absence_is_told(on_s3, monkeypatch, stand_ins) -> None:
    stand_ins(jars.COORDINATES)
    with pytest.raises(PermalakeError, match=r"run `python -m permalake\.spark\.jars s3`"):
        spark_conf()
    stand_ins(jars.S3_COORDINATES)
    conf = spark_conf()
    assert conf["spark.hadoop.fs.s3.impl"].endswith("S3AFileSystem")
    assert all(jars.jar_name(one) in conf["spark.driver.extraClassPath"] for one in jars.COORDINATES)
    monkeypatch.setenv("SPARK_DIST_CLASSPATH", "/own.jar")
    behind = spark_environment()["SPARK_DIST_CLASSPATH"].split(":")
    assert behind == ["/own.jar", *(str(jars.JARS / jars.jar_name(one)) for one in jars.S3_COORDINATES)]
    monkeypatch.setenv("PERMALAKE_SPARK_MASTER", "spark://host:7077")
    conf = spark_conf()
    assert all(jars.jar_name(one) in conf["spark.jars"] for one in jars.COORDINATES + jars.S3_COORDINATES)
    assert "spark.driver.extraClassPath" not in conf, "Iceberg finds only what lies beside it"
    assert spark_environment() == {}


def test_a_bucket_of_google_s_is_reached_through_hadoop_with_one_jar(monkeypatch, stand_ins) -> None:
    monkeypatch.setenv("PERMALAKE_LAKE__WAREHOUSE", "gs://bucket/warehouse")
    monkeypatch.setenv("PERMALAKE_LAKE__CATALOG", CATALOG)
    stand_ins(jars.COORDINATES)
    with pytest.raises(PermalakeError, match=r"run `python -m permalake\.spark\.jars gs`"):
        spark_conf()
    stand_ins(jars.GS_COORDINATES)
    conf = spark_conf()
    assert "hadoop-gcp" in spark_environment()["SPARK_DIST_CLASSPATH"]
    assert "aws" not in spark_environment()["SPARK_DIST_CLASSPATH"]
    assert conf["spark.hadoop.fs.gs.impl"].endswith("GoogleHadoopFileSystem")
    assert not any("io-impl" in key or "s3" in key for key in catalog_conf(Settings(), "one"))


def test_an_emulator_of_google_s_is_found_by_its_variable(monkeypatch) -> None:
    assert not any(key.startswith("gcs") for key in object_storage.file_io())
    for given in ("127.0.0.1:4443", "http://127.0.0.1:4443"):
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", given)
        assert object_storage.file_io()["gcs.service.host"] == "http://127.0.0.1:4443"
    assert object_storage.inner_path("gs://bucket/warehouse/a.parquet") == "bucket/warehouse/a.parquet"


def test_jars_that_every_node_has_are_not_sent(monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_SPARK_MASTER", "spark://host:7077")
    sent = spark_conf()["spark.jars"].split(",")
    monkeypatch.setenv("PERMALAKE_JARS_ON_NODES", "true")
    assert spark_conf()["spark.jars"].split(",") == [f"local:{jar}" for jar in sent]


def test_a_disk_knows_nothing_of_it(monkeypatch, tmp_path) -> None:
    settings = Settings(lake={"warehouse": str(tmp_path)})  # type: ignore[arg-type]
    assert not any("s3" in key for key in catalog_conf(settings, "one"))


def test_listings_and_locations_name_a_file_alike() -> None:
    assert object_storage.inner_path("s3://bucket/warehouse/a.parquet") == "bucket/warehouse/a.parquet"
    for location in ("file:///tmp/a.parquet", "/tmp/a.parquet"):
        assert object_storage.inner_path(location) == "/tmp/a.parquet"
