"""What takes long to read or make, once for a process, and a copy of it for each caller."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache, wraps
from typing import Any


def copied(make: Callable[..., Any]) -> Callable[..., Any]:
    """Keep what a function gives, and give each caller a copy of its own, which it may change."""

    @cache
    def kept(*given: Any) -> bytes:
        return pickle.dumps(make(*given), pickle.HIGHEST_PROTOCOL)

    @wraps(make)
    def copy(*given: Any) -> Any:
        return pickle.loads(kept(*given))

    return copy
