"""When a process began, by which it is told from a later one with its number."""

from __future__ import annotations

import psutil


def start_of(process: psutil.Process) -> str:
    """Return when a process began, in seconds, as a number that stays when somebody sets the clock."""
    # Linux counts from its boot; psutil adds the time of the boot, which follows the clock.
    return f"{process.create_time() - (psutil.boot_time() if psutil.LINUX else 0):.2f}"
