"""Publishers with lake and export in a bucket of a real server of S3, checked and mirrored."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import timedelta

import pytest

from permalake.config import load_settings
from permalake.lake.relocate import relocate
from permalake.paths import JARS
from support import s3_server
from support.lakes import DAY1, DAY2, DAY3, OpenLake, build, settings_of
from support.signed_lakes import NAME
from support.whole_runs import PERMALAKE, configuration, rows

pytestmark = pytest.mark.long


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """The location of a bucket, which this process and those that it starts find, and its files on disk."""
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    folder = tmp_path / "server"
    folder.mkdir()
    with s3_server.s3_server(folder) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield f"s3://{s3_server.BUCKET}", folder / "buckets" / s3_server.BUCKET


@pytest.fixture
def call(tmp_path):
    """Calls the command line with a configuration and a home of its own; gives exit code, output, errors."""

    def call(config, *arguments):
        home = config.parent / "home"
        if not home.exists():
            home.mkdir()
            (home / "jars").symlink_to(JARS)
        own = {"PERMALAKE_HOME": str(home), "PERMALAKE_CONFIG": str(config)}
        done = subprocess.run(
            [PERMALAKE, *map(str, arguments)],
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return call


def written(folder, warehouse):
    """A configuration file with a lake at a location, whose catalog is on this machine."""
    folder.mkdir()
    file = folder / "permalake.toml"
    file.write_text(f'[lake]\nwarehouse = "{warehouse}"\ncatalog = "sqlite:///{folder}/catalog.db"\n')
    return file


def test_a_lake_in_a_bucket_is_signed_there_exported_and_checked(bucket, call, tmp_path) -> None:
    location, files = bucket
    config = written(tmp_path / "publisher", f"{location}/warehouse")
    settings = load_settings(config)
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 300, "first")
    build(settings, lake, DAY2, 2, 40, "second")
    code, key, told = call(config, "keys", "create", "--name", NAME)
    assert code == 0, told
    export = f"{location}/export"
    assert call(config, "export", export)[0] == 0
    build(settings, lake, DAY1, 1, 700, "corrected")
    code, said, told = call(config, "export", export)
    assert code == 0, told
    assert f"{export}: 2 days; 2 files written" in said

    reader = written(tmp_path / "reader", tmp_path / "nothing")
    for where, arguments in ((config, ()), (reader, (export, "--key", key.strip()))):
        code, said, told = call(where, "verify", *arguments)
        assert code == 0, told
        assert "shimmer: 2 days, 744 rows" in said
    assert "no day of the log" in call(reader, "verify", export, "--date", DAY3 + timedelta(1))[2]
    [damaged] = files.glob(f"export/data/shimmer/messages/{DAY2}-*.parquet")
    damaged.write_bytes(damaged.read_bytes()[:-9])
    code, _, told = call(reader, "verify", export)
    assert code == 1
    assert f"{export}/data/shimmer/messages/{DAY2}-" in told
    assert told.count("\n") == 1, "whether the server's own sum of the object finds it, or ours"
    damaged.unlink()
    assert "is missing" in call(reader, "verify", export)[2]


def test_a_day_is_mirrored_from_a_bucket(bucket, call, undisturbed, undisturbed_settings, tmp_path) -> None:
    location, _ = bucket
    shutil.copytree(undisturbed_settings.parent / "warehouse", tmp_path / "copied")
    relocate(settings_of(tmp_path / "copied"), as_copy=True)
    publisher = tmp_path / "publisher" / "permalake.toml"
    publisher.parent.mkdir()
    publisher.write_text(f'[lake]\nwarehouse = "{tmp_path}/copied"\n')
    code, key, told = call(publisher, "keys", "create", "--name", NAME)
    assert code == 0, told
    code, _, told = call(publisher, "export", f"{location}/export")
    assert code == 0, told

    mirror = configuration(tmp_path / "mirror")
    code, _, told = call(mirror, "mirror", f"{location}/export", "--key", key.strip())
    assert code == 0, told
    assert rows(mirror, "shimmer")["messages"].equals(undisturbed["messages"])
    code, said, told = call(mirror, "mirror", f"{location}/export")
    assert (code, said.splitlines()[-1]) == (0, "shimmer: 1 day, all copied"), told
