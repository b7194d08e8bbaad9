"""Great Expectations is imported without the back ends that no audit uses, and nobody else misses them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from permalake.audit.lean_import import DEFERRED, OPTIONAL, lean_import

IMPORTED = """
import sys
from permalake.pipeline.steps.audit import RUNNER
assert RUNNER.result().Auditor
left_out = {"altair.vegalite", "google.cloud.secretmanager", "pyspark.ml", "scipy.stats.distributions"}
assert not left_out & sys.modules.keys(), left_out & sys.modules.keys()

import altair, google.cloud.secretmanager, pyspark.ml, scipy.stats
assert altair.Chart and google.cloud.secretmanager.SecretManagerServiceClient and pyspark.ml.Pipeline
assert round(scipy.stats.norm.cdf(0), 3) == 0.5
"""


def test_an_audit_leaves_them_out_and_others_import_them_later() -> None:
    command = [sys.executable, "-c", IMPORTED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_names_are_those_of_installed_modules() -> None:
    find = "import importlib.util, sys; assert all(map(importlib.util.find_spec, sys.argv[1:]))"
    names = sorted(OPTIONAL | DEFERRED)
    done = subprocess.run([sys.executable, "-c", find, *names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_failing_import_leaves_the_import_system_as_it_was() -> None:
    before = list(sys.meta_path)
    with pytest.raises(ModuleNotFoundError), lean_import():
        import a_module_that_nobody_wrote  # noqa: F401
    assert sys.meta_path == before
