"""One JSON line per event of a run, for whoever started it and wants to show how far it is."""

from __future__ import annotations

import json
import os
from typing import Any

VARIABLE = "PERMALAKE_PROGRESS_FD"


def emit(event: str, **facts: Any) -> None:
    """Write an event to the pipe of the process that watches this run; nothing when nobody watches."""
    if descriptor := os.environ.get(VARIABLE):
        line = json.dumps({"event": event, **facts}, default=str)
        os.write(int(descriptor), line.encode() + b"\n")
