"""Names that a newcomer searches for lead to one place."""

from __future__ import annotations

import ast
from collections import defaultdict

from permalake.paths import ROOT


def test_no_two_classes_share_a_name():
    found = defaultdict(list)
    for file in sorted((ROOT / "include" / "permalake").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(file.relative_to(ROOT)))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
