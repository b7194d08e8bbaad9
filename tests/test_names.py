"""Names that a newcomer searches for lead to one place; signatures of tests are whole."""

from __future__ import annotations

import ast
from collections import defaultdict

from permalake.paths import ROOT


def test_no_two_classes_share_a_name() -> None:
    found = defaultdict(list)
    for file in sorted((ROOT / "include" / "permalake").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(file.relative_to(ROOT)))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_every_test_function_says_that_it_returns_nothing() -> None:
    """The type checker passes over functions without any annotation."""
    bare = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        if "node_modules" not in file.parts
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and node.returns is None
    ]
    assert bare == []
