"""Names say what they hold and lead to one place; signatures of tests are whole."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict

from permalake.paths import ROOT

VAGUE = {"found", "told", "tell", "own", "wanted", "known", "judged", "one"}
"""Words that say nothing of a value; a name is a noun of what it holds."""
ALLOWED = {
    ("api/export.py", "tell"): "a method of Python's files",
    ("pipeline/line_files.py", "tell"): "a method of Python's files",
}


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


def test_names_say_what_they_hold() -> None:
    found = set()
    for file in sorted((ROOT / "include" / "permalake").rglob("*.py")):
        path = str(file.relative_to(ROOT / "include" / "permalake"))
        for token in tokenize.generate_tokens(io.StringIO(file.read_text("utf-8")).readline):
            word = token.string.lower()
            if token.type == tokenize.NAME and word in VAGUE and (path, word) not in ALLOWED:
                found.add(f"{path}:{token.start[0]}: {token.string}")
    assert sorted(found) == []
