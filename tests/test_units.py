"""Modules that share a server run in one process."""

from __future__ import annotations

from permalake.paths import ROOT
from support.units import TOGETHER, unit


def test_what_runs_together_exists_and_is_in_one_unit() -> None:
    members = [member for unit in TOGETHER.values() for member in unit]
    assert [member for member in members if not (ROOT / "tests" / member).exists()] == []
    assert len(set(members)) == len(members)


def test_a_module_is_its_own_unit_or_that_of_its_folder() -> None:
    assert unit("tests/wormhole/rest/test_pages.py") == "wormhole rest"
    assert unit("tests/stores/test_serve.py") == unit("tests/iota/rest/test_core_v1.py") == "cassandra"
    assert unit("tests/web/test_html.py") == "tests/web/test_html.py"
