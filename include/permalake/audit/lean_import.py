"""Import of Great Expectations without the libraries of back ends that an audit never uses.

It imports every optional library that is installed, and two of charts and statistics: half of its 2.5 s of
processor time.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from threading import get_ident
from types import ModuleType

OPTIONAL = frozenset(
    {
        "google.cloud.bigquery",
        "google.cloud.secretmanager",
        "google.cloud.storage",
        "google.oauth2.service_account",
        "pyspark.ml",
        "pyspark.sql.connect",
        "sqlalchemy_bigquery",
    }
)
"""Modules that Great Expectations does without where they are not installed."""
DEFERRED = frozenset({"altair", "scipy.stats"})
"""Modules that it insists on, for expectations and charts that no suite has."""


@contextmanager
def lean_import() -> Iterator[None]:
    """Let this thread import nothing of :data:`OPTIONAL`, and :data:`DEFERRED` when it is first used.

    Modules that are imported already stay, and other threads import what they ask for. What the block imports
    lives as long as the process, so it is not searched for garbage meanwhile.
    """
    finder = _LeanFinder(get_ident())
    is_collecting = gc.isenabled()
    sys.meta_path.insert(0, finder)
    gc.disable()
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        if is_collecting:
            gc.enable()


class _LeanFinder(MetaPathFinder):
    """Finds the modules of :data:`DEFERRED` alone, and refuses those of :data:`OPTIONAL`."""

    def __init__(self, thread: int) -> None:
        self._thread = thread

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if get_ident() != self._thread:
            return None
        if fullname in OPTIONAL:
            raise ModuleNotFoundError(f"{fullname} is left out", name=fullname)
        if fullname not in DEFERRED:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec
