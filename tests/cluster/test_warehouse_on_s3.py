"""Days whose warehouse lies on a real S3-compatible server have the rows of a disk's; they are maintained."""

from __future__ import annotations

import subprocess

import pytest

from permalake.config import load_settings
from permalake.domains import open_reader
from permalake.paths import SAMPLE
from permalake.spark import jars
from support.s3_server import BUCKET, s3_server
from support.whole_runs import PERMALAKE, assert_same, configuration, finish, rows


@pytest.fixture
def on_s3(tmp_path, monkeypatch):
    """A configuration with the warehouse on the server, for this process and those it starts."""
    jars.resolve(jars.S3_COORDINATES)
    with s3_server(tmp_path / "s3") as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
        config = configuration(tmp_path / "lake")
        monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
        monkeypatch.setenv("PERMALAKE_LAKE__WAREHOUSE", f"s3://{BUCKET}/warehouse")
        monkeypatch.setenv("PERMALAKE_LAKE__CATALOG", f"sqlite:///{tmp_path}/catalog.db")
        monkeypatch.setenv("PERMALAKE_WORMHOLE__PATH", str(SAMPLE / "wormhole"))
        yield config, tmp_path / "s3" / "buckets" / BUCKET


def test_days_on_s3_are_built_read_and_maintained(on_s3, undisturbed):
    config, bucket = on_s3
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
