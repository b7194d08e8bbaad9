"""Days whose warehouse lies on a real server of S3 or GCS have the rows of a disk's; they are maintained."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager

import pytest

from permalake.config import load_settings
from permalake.domains import open_reader
from permalake.paths import SAMPLE
from permalake.spark import jars
from support import gcs_server, s3_server
from support.whole_runs import PERMALAKE, assert_same, configuration, finish, rows


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


def test_days_are_built_read_and_maintained(remote, undisturbed):
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


def call(*arguments):
    done = subprocess.run([PERMALAKE, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
