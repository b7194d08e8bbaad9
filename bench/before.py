"""The same days built by an earlier commit and by this one, in turn, in one run.

``python -m bench.before [COMMIT] [MESSAGES] [VAAS]``: installs the commit beside this one, with the libraries
and jars that it pins, and builds each day in an empty lake of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench import iota_build, wormhole_build
from bench.machine import Usage, watch
from bench.simulated import COMMAND
from bench.steps import watch_steps
from permalake.paths import ROOT

BASELINE = "336d36a"


class Installed(NamedTuple):
    """A version of Permalake: its command line, and the variables by which it runs."""

    command: str
    environ: dict[str, str]


Built = Callable[[Path, Installed], tuple[Usage, dict[str, float]]]
NOW = Installed(COMMAND, {})


def run(commit: str = BASELINE, messages: int = 1_000_000, vaas: int = 20_000) -> list[dict]:
    """Seconds of each day now, beside those of the earlier commit."""
    days: dict[str, Built] = {
        f"Stardust day of {messages:,} messages": _iota("stardust", messages),
        f"Chrysalis day of {messages:,} messages": _iota("chrysalis", messages),
        f"Wormhole day of {vaas:,} VAAs": _wormhole(vaas),
        "bundled Shimmer day, repeated with --force": _bundled,
    }
    figures = []
    with checkout(commit) as earlier:
        for name, build in days.items():
            (then, steps_then), (now, steps_now) = (_in_a_lake(build, version) for version in (earlier, NOW))
            figures.append(
                {
                    "name": f"{name}, since {commit}",
                    "unit": "s (less is better)",
                    "ours": round(now.seconds, 1),
                    "peer": round(then.seconds, 1),
                    "peer_name": f"commit {commit}",
                    "ratio": round(then.seconds / now.seconds, 3),
                    "cpu_seconds": round(now.cpu_seconds, 1),
                    "peer_cpu_seconds": round(then.cpu_seconds, 1),
                    "peak_mib": now.peak_bytes >> 20,
                    "peer_peak_mib": then.peak_bytes >> 20,
                }
            )
            figures += _by_step(f"{name}, since {commit}", steps_now, steps_then)
    return figures


def _by_step(day: str, now: dict[str, float], then: dict[str, float]) -> Iterator[dict]:
    """Yield the processor seconds of each step that took one; what one version lacks as a step is 0 there."""
    for step in sorted(now.keys() | then.keys(), key=[*now, *then].index):
        ours, peer = round(now.get(step, 0.0), 1), round(then.get(step, 0.0), 1)
        if max(ours, peer) >= 1:
            yield {
                "name": f"{day}: {step}",
                "unit": "CPU s (less is better)",
                "ours": ours,
                "peer": peer,
                "peer_name": "the earlier commit",
                **({"ratio": round(peer / ours, 3)} if ours and peer else {}),
            }


@contextmanager
def checkout(commit: str) -> Iterator[Installed]:
    """An earlier commit as ``make install`` makes it, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="bench-before-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "--detach", str(tree), commit], check=True)
        environ = {"PERMALAKE_HOME": str(tree / ".permalake")}
        try:
            subprocess.run(["make", "-C", str(tree), "install"], env=os.environ | environ, check=True)
            yield Installed(str(tree / ".venv" / "bin" / "permalake"), environ)
        finally:
            subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(tree)], check=True)


def _in_a_lake(build: Built, version: Installed) -> tuple[Usage, dict[str, float]]:
    with tempfile.TemporaryDirectory(prefix="bench-lake-") as folder:
        return build(Path(folder), version)


def _iota(protocol: str, messages: int) -> Built:
    def build(lake: Path, version: Installed) -> tuple[Usage, dict[str, float]]:
        source = iota_build.archive(messages, protocol)
        command = [version.command, "run", "iota", "--date", iota_build.DAY]
        settings = iota_build.environment(lake, source, protocol) | version.environ
        return watch_steps(command, settings, lake / "warehouse")

    return build


def _wormhole(vaas: int) -> Built:
    def build(lake: Path, version: Installed) -> tuple[Usage, dict[str, float]]:
        source = wormhole_build.documents(vaas)
        command = [version.command, "run", "wormhole", "--date", wormhole_build.DAY]
        settings = wormhole_build.environment(lake, source) | version.environ
        return watch_steps(command, settings, lake / "warehouse")

    return build


def _bundled(lake: Path, version: Installed) -> tuple[Usage, dict[str, float]]:
    command = [version.command, "run", "iota", "--date", "2022-09-28"]
    settings = {**os.environ, "PERMALAKE_LAKE__WAREHOUSE": str(lake / "warehouse")} | version.environ
    watch(command, settings)
    return watch_steps([*command, "--force"], settings, lake / "warehouse")


if __name__ == "__main__":
    given = sys.argv[1:]
    print(json.dumps(run(*given[:1], *map(int, given[1:])), indent=1))
