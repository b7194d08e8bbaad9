"""docs/verify.py as a module: it was written from docs/digests.md, and shares no code with what it checks."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from permalake.paths import ROOT


def second_verifier() -> ModuleType:
    """The module."""
    spec = importlib.util.spec_from_file_location("second_verifier", ROOT / "docs" / "verify.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
