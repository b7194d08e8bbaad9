"""Kill a mirror anywhere with SIGKILL, call it again: it goes on, and ends equal to its publisher in digests.

``make long`` tries every point; a fixed seed chooses one else.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from permalake.config import load_settings
from permalake.lake.relocate import relocate
from permalake.paths import JARS
from permalake.transparency import keys, signing
from support.fault_watch import POINTS, Watch, family, kill, wait_for
from support.lakes import OpenLake, settings_of
from support.length import LONG
from support.publishers import digests
from support.signed_lakes import NAME, at_home, export, public_key, sign
from support.web_server import web_server
from support.whole_runs import DAY, PERMALAKE, rows

SEED = 20261127
LANDED = "_landing/permalake/shimmer"


def _landing_begun(watch: Watch) -> bool:
    return next((watch.warehouse / LANDED).glob("*/*.parquet"), None) is not None


MIRROR_POINTS: dict[str, Callable[[Watch], bool]] = {
    "the publisher's first file landed": _landing_begun,
    "all of the publisher's files landed": lambda watch: (
        watch.warehouse / LANDED / DAY / "day.json"
    ).exists(),
    **POINTS,
}
CHOSEN = list(MIRROR_POINTS) if LONG else sorted(random.Random(SEED).sample(list(MIRROR_POINTS), 1))


def _signed_export(patch: pytest.MonkeyPatch, settings, folder: Path, name: str) -> dict:
    """Sign and export a lake with a new key; return the digests of its tables."""
    at_home(patch, folder / f"keys of {name.rpartition('/')[2]}")
    keys.create_key(name)
    lake = OpenLake(settings)
    sign(settings, lake)
    export(settings, lake, folder / "export")
    return digests(folder / "export", public_key())


@pytest.fixture(scope="module")
def publisher(undisturbed_settings, tmp_path_factory):
    """The bundled day, exported by who holds a copy of the undisturbed lake."""
    folder = tmp_path_factory.mktemp("publisher")
    shutil.copytree(undisturbed_settings.parent / "warehouse", folder / "warehouse")
    # Who runs the tests may have a key, and the undisturbed run signed with it.
    shutil.rmtree(folder / "warehouse" / signing.FOLDER, ignore_errors=True)
    settings = settings_of(folder / "warehouse")
    relocate(settings, as_copy=True)
    with pytest.MonkeyPatch.context() as patch:
        signed = _signed_export(patch, settings, folder, NAME)
        key = str(public_key())
    with web_server(folder / "export") as (url, asked):
        yield SimpleNamespace(url=url, asked=asked, key=key, signed=signed)


class Mirror:
    """A machine with a home and a lake of its own, which mirrors a publisher by the command line."""

    def __init__(self, folder: Path, publisher: SimpleNamespace, config: Path) -> None:
        self.config = config
        self.warehouse = config.parent / "warehouse"
        self._command = [PERMALAKE, "mirror", publisher.url, "--key", publisher.key]
        (folder / "home").mkdir()
        (folder / "home" / "jars").symlink_to(JARS)
        own = {"PERMALAKE_HOME": str(folder / "home"), "PERMALAKE_CONFIG": str(config)}
        self._environment = {**os.environ, **own}

    def start(self) -> psutil.Popen:
        with (self.config.parent / "run.log").open("ab") as log:
            return psutil.Popen(self._command, env=self._environment, stdout=log, stderr=log)

    def told(self) -> str:
        return (self.config.parent / "run.log").read_text()


@pytest.mark.long
@pytest.mark.parametrize("point", CHOSEN)
def test_a_killed_mirror_called_again_has_the_digests_of_its_publisher(
    point, publisher, undisturbed, lake_of_its_own, tmp_path, monkeypatch
) -> None:
    mirror = Mirror(tmp_path, publisher, lake_of_its_own())
    watch = Watch(mirror.warehouse)
    process = mirror.start()
    assert wait_for(MIRROR_POINTS[point], watch, process), mirror.told()
    kill(family(process.pid))
    has_landed = (mirror.warehouse / LANDED / DAY / "day.json").exists()
    assert has_landed or point == "the publisher's first file landed"
    publisher.asked.clear()

    assert mirror.start().wait(timeout=900) == 0, mirror.told()
    if has_landed:
        assert not [path for path in publisher.asked if path.startswith("/data/")], "fetched twice"
    held = rows(mirror.config, "shimmer")
    assert held["messages"].equals(undisturbed["messages"])
    settings = load_settings(mirror.config)
    signed = _signed_export(monkeypatch, settings, tmp_path, "example.org/mirror")
    assert signed == publisher.signed
    assert len(signed) > 15
    publisher.asked.clear()
    assert mirror.start().wait(timeout=600) == 0, mirror.told()
    assert "shimmer: 1 day, all copied" in mirror.told()
