"""Jars are used only with the digest that the repository lists."""

from __future__ import annotations

import os
import shutil

import pytest

from permalake.errors import PermalakeError
from permalake.spark import jars
from support.postgres_server import COORDINATES

POSTGRES = next(one for one in jars.COORDINATES if "postgresql" in one)
EVERY = {*jars.EVERY, *COORDINATES.values()}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of jars that holds the real PostgreSQL driver."""
    name = jars.jar_name(POSTGRES)
    shutil.copyfile(jars.JARS / name, tmp_path / name)
    monkeypatch.setattr(jars, "JARS", tmp_path)
    return tmp_path


def test_every_jar_has_a_digest() -> None:
    assert jars.digests().keys() == {jars.jar_name(one) for one in EVERY}


def test_a_jar_with_its_digest_is_accepted(folder) -> None:
    assert jars.resolve([POSTGRES]) == []


@pytest.mark.parametrize("use", [jars.resolve, jars.class_path], ids=["set-up", "submit"])
def test_a_changed_jar_is_refused_with_one_line(folder, use) -> None:
    jar = folder / jars.jar_name(POSTGRES)
    assert use([POSTGRES]) in ([], str(jar))
    kept = jar.stat()
    content = bytearray(jar.read_bytes())
    content[len(content) // 2] ^= 1
    jar.write_bytes(content)
    os.utime(jar, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    with pytest.raises(PermalakeError) as refused:
        use([POSTGRES])
    message = str(refused.value)
    assert "\n" not in message
    assert message.startswith(f"{jar.name} has the SHA-256 digest ")
    assert message.endswith(f"delete {jar} and run `make install`")


def test_a_fetched_jar_with_another_digest_does_not_appear(folder, monkeypatch, tmp_path) -> None:
    listed = tmp_path / "listed.sha256"
    name = jars.jar_name(POSTGRES)
    listed.write_text(f"{'0' * 64}  {name}\n")
    jar = (folder / name).rename(tmp_path / "published")

    def deliver(coordinate, scratch, *_):
        shutil.copyfile(jar, scratch / jars.jar_name(coordinate))

    monkeypatch.setattr(jars, "DIGESTS", listed)
    monkeypatch.setattr(jars, "retrieve", deliver)
    with pytest.raises(PermalakeError, match="not 0000"):
        jars.resolve([POSTGRES])
    assert not (folder / name).exists()


def test_a_jar_without_a_digest_is_refused(tmp_path) -> None:
    stranger = tmp_path / "stranger-1.0.jar"
    stranger.write_bytes(b"jar")
    with pytest.raises(PermalakeError, match="has no digest in jars"):
        jars.verify(stranger)
