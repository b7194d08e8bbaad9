"""``permalake live``: a Spark submit that follows a network, and its lines on standard output."""

from __future__ import annotations

import os
import re
import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path

from permalake.config import used
from permalake.domains import domain_of
from permalake.errors import ConfigError, error_of
from permalake.lake.owner import owning
from permalake.local.run import LOGS, interruptible
from permalake.pipeline import alerts
from permalake.pipeline.live import LiveOrder, submission
from permalake.sanitize import LONGEST_MESSAGE, shown
from permalake.spark import submit

_LINE = re.compile(rb"\d\d:\d\d:\d\d live [^\n]*\n")
_REASON = re.compile(r"^permalake: (.*)$", re.MULTILINE)


def run_live(
    network: str,
    *,
    once: bool = False,
    seconds: float | None = None,
    config: str | os.PathLike[str] | None = None,
) -> int:
    """Follow a network until it is done or interrupted; the exit code, 0.

    Raises:
        PermalakeError: if the job failed, with its reason and the log file.
    """
    domain = domain_of(network)
    run_id = f"live-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
    log = LOGS / f"{domain.name}_live" / f"{network}_{run_id.removeprefix('live-')}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    lines = _Lines(log)
    with used(config), owning(), interruptible():
        end = submit.run(submission(LiveOrder(network, run_id, once, seconds)), log, lines.show)
        lines.show()
        if not end.code:
            return 0
        reasons = _REASON.findall(end.output)
        reason = shown(reasons[-1], LONGEST_MESSAGE) if reasons else f"the job ended with code {end.code}"
        if end.code != ConfigError.exit_code:
            today = datetime.now(UTC).date().isoformat()
            alerts.send(alerts.stopped(f"{domain.name}_live", run_id, network, today, reason))
    raise error_of(end.code, f"live {network}: {reason}; the log is {log}")


class _Lines:
    """The job's own lines in a log that grows."""

    def __init__(self, log: Path) -> None:
        self._log, self._read = log, 0

    def show(self) -> None:
        """Print what is new."""
        try:
            with self._log.open("rb") as file:
                file.seek(self._read)
                new = file.read()
        except FileNotFoundError:
            return
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in _LINE.findall(whole):
            sys.stdout.write(shown(line.decode("utf-8", "replace").rstrip("\n"), LONGEST_MESSAGE) + "\n")
        sys.stdout.flush()
