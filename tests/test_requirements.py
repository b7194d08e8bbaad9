"""requirements.in is enough to read the lake; the lock holds every file of requirements."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from importlib.metadata import distribution, packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from permalake.paths import ROOT
from permalake.spark import jars
from support import lakes

FILES = tuple(file.name for file in ROOT.glob("requirements*.in"))

# A module of a package that is not listed is not there. The client of the test itself needs httpx2.
READER = """
import sys

absent = set(sys.argv[1].split(","))

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from permalake.cli.main import main

try:
    main(sys.argv[2:])
except SystemExit as end:
    if end.code:
        raise
from fastapi.testclient import TestClient
from permalake.api.app import create_app
from permalake.config import load_settings

with TestClient(create_app(load_settings())) as client:
    for route in ("/health", "/", "/shimmer", "/metrics", "/docs"):
        print(route, client.get(route).status_code)
"""


def requirements(file: str) -> list[Requirement]:
    lines = (ROOT / file).read_text("utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith(("#", "-"))]


def needed(file: str) -> set[str]:
    """The packages that a file asks for, and all that those need, by canonical name."""
    names: set[str] = set()
    waiting = [(one.name, extra) for one in requirements(file) for extra in ("", *one.extras)]
    seen = set(waiting)
    while waiting:
        name, extra = waiting.pop()
        names.add(canonicalize_name(name))
        for text in distribution(name).requires or ():
            need = Requirement(text)
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                further = {(need.name, other) for other in ("", *need.extras)} - seen
                seen |= further
                waiting += further
    return names


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    """A lake with a published day."""
    folder = tmp_path_factory.mktemp("read") / "warehouse"
    settings = lakes.settings_of(folder)
    lake = lakes.OpenLake(settings)
    attempt = lake.begin(lakes.NETWORK, lakes.DAY1, lakes.DAY1, "run")
    lakes.stage_day(settings, attempt, lakes.DAY1, 1, 5)
    lake.builds.publish(lakes.pass_audit(attempt))
    lake.leave()
    return folder


def test_a_lake_is_queried_and_served_by_what_requirements_in_lists(warehouse, tmp_path) -> None:
    kept = needed("requirements.in") | {"permalake"} | needed_by_the_test_client()
    absent = [
        module
        for module, owners in packages_distributions().items()
        if kept.isdisjoint(canonicalize_name(owner) for owner in owners)
    ]
    assert {"airflow", "pyspark", "great_expectations", "ray"} <= set(absent)
    query = ["query", "select count(*) as n from shimmer.messages", "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-c", READER, ",".join(absent), *query],
        env={**os.environ, "PERMALAKE_LAKE__WAREHOUSE": str(warehouse), "PERMALAKE_HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer, *routes = done.stdout.splitlines()
    assert answer.replace(" ", "") == '[{"n":5}]'
    assert [route.split()[1] for route in routes] == ["200"] * 5, routes


def needed_by_the_test_client() -> set[str]:
    """Starlette's test client, which no server loads, asks for one package more."""
    return {"httpx2", "httpcore2"}


def test_the_lock_has_every_requirement_with_its_digests() -> None:
    lock = (ROOT / "requirements.txt").read_text("utf-8")
    for file in FILES:
        for one in requirements(file):
            name = re.escape(canonicalize_name(one.name))
            entry = re.search(rf"^{name}(\[.*\])?==.*\n    --hash=sha256:", lock, re.MULTILINE)
            assert entry, one


@pytest.fixture(scope="module")
def outdated():
    """``tools/outdated.py``, which is no module of a package."""
    return runpy.run_path(str(ROOT / "tools" / "outdated.py"))


def test_what_keeps_a_package_back_is_what_installed_packages_say(outdated) -> None:
    against = outdated["bounds"]({"pyspark": "4.2.0", "fastapi": "0.137.0", "pytest": "9.9.9"})
    assert against.keys() == {"pyspark", "fastapi"}
    assert [reason.split()[0] for reason in against["pyspark"]] == ["great_expectations"]
    assert [reason.split()[0] for reason in against["fastapi"]] == ["apache-airflow-core"]
    assert outdated["pins"]()["pyspark"] == "requirements-airflow.in"


def test_a_jar_that_is_held_is_a_jar_of_ours(outdated) -> None:
    assert outdated["HELD_JARS"].keys() <= set(jars.EVERY)
