"""Lakes on a real server of S3 or GCS have the rows of a disk's; they are maintained, and moved there."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager

import pytest
from pyarrow.fs import copy_files

from permalake.config import load_settings
from permalake.config.lake import LakeSettings
from permalake.domains import open_reader
from permalake.lake.relocate import relocate
from permalake.net.object_storage import filesystem, inner_path
from permalake.paths import SAMPLE
from permalake.spark import jars
from support import gcs_server, s3_server
from support.lakes import DAY1, DAY2, OpenLake, build, state
from support.whole_runs import PERMALAKE, assert_same, configuration, finish, rows

pytestmark = pytest.mark.long


@contextmanager
def s3(folder):
    jars.resolve(jars.S3_COORDINATES)
    with s3_server.s3_server(folder) as variables:
        yield f"s3://{s3_server.BUCKET}", variables, folder / "buckets" / s3_server.BUCKET


@contextmanager
def gs(folder):
    jars.resolve(jars.GS_COORDINATES)
    with gcs_server.gcs_server(folder) as (variables, proxy):
        yield f"gs://{gcs_server.BUCKET}", variables, folder / "buckets" / gcs_server.BUCKET
        # Java found the account's key by its variable, and asked for a token with it.
        assert "Bearer a-token" in proxy.authorized


@pytest.fixture(params=[s3, gs], ids=["s3", "gs"])
def remote(request, tmp_path, monkeypatch):
    """A configuration with the warehouse on the server, for this process and those it starts."""
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    (tmp_path / "server").mkdir()
    with request.param(tmp_path / "server") as (bucket, variables, files):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        config = configuration(tmp_path / "lake")
        monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
        monkeypatch.setenv("PERMALAKE_LAKE__WAREHOUSE", f"{bucket}/warehouse")
        monkeypatch.setenv("PERMALAKE_LAKE__CATALOG", f"sqlite:///{tmp_path}/catalog.db")
        monkeypatch.setenv("PERMALAKE_WORMHOLE__PATH", str(SAMPLE / "wormhole"))
        yield config, files


def test_days_are_built_read_and_maintained(remote, undisturbed) -> None:
    config, bucket = remote
    finish(config)
    assert_same(rows(config, "shimmer"), undisturbed)

    for told in ("1 day", "published and unchanged"):
        assert told in call("run", "wormhole", "--date", "2024-07-04").splitlines()[-1]
    (day,) = open_reader(load_settings(config)).status("wormhole")
    assert day.published
    assert day.rows["message_publication"] == 3
    assert list(bucket.glob("warehouse/_landing/*/*")), "what was seen of the input is noted there"
    assert not (config.parent / "warehouse").exists()

    call("maintain")
    assert_same(rows(config, "shimmer"), undisturbed)


@pytest.mark.parametrize("remote", [s3], ids=["s3"], indirect=True)
def test_a_lake_moves_from_a_disk_to_a_bucket_and_back(remote, tmp_path) -> None:
    """Files are copied as they are; relocating builds the catalog of the bucket from them."""
    bucket = f"{load_settings().lake.warehouse}"
    disk = on_disk(tmp_path / "disk")
    build(disk, OpenLake(disk), DAY1, 1, 5, "a")
    build(disk, OpenLake(disk), DAY2, 2, 7, "b")
    copied = [file for file in (tmp_path / "disk").rglob("*") if file.is_file() and file.name != "catalog.db"]
    for file in copied:
        place = f"{bucket}/{file.relative_to(tmp_path / 'disk')}"
        filesystem(place).create_dir(inner_path(place).rpartition("/")[0])
        with filesystem(place).open_output_stream(inner_path(place)) as out:
            out.write(file.read_bytes())
    (tmp_path / "disk").rename(tmp_path / "retired")
    assert call("relocate").startswith("shimmer: ")
    lake = OpenLake(load_settings())
    assert state(lake) == {DAY1: (5, 5), DAY2: (7, 7)}
    assert all(place.startswith(bucket) for place in lake.reader.locations("shimmer").values())

    back = on_disk(tmp_path / "back")
    copy_files(inner_path(bucket), str(tmp_path / "back"), source_filesystem=filesystem(bucket))
    (done,) = relocate(back, as_copy=True)
    assert done.problems == {}
    assert state(OpenLake(back)) == {DAY1: (5, 5), DAY2: (7, 7)}


def on_disk(folder):
    """Return settings with the lake in a folder, whatever the environment says."""
    return load_settings().model_copy(update={"lake": LakeSettings(warehouse=str(folder))})


def call(*arguments):
    done = subprocess.run([PERMALAKE, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
