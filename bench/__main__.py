"""The benchmarks: ``make bench`` runs all, ``python -m bench NAME…`` some, ``--list`` names them.

Every module of this folder with a function ``run`` is a benchmark. Each runs in a process of its own and
returns its figures: what was measured, our value, a peer's from the same run, and their ratio (above 1:
ours is the better one). ``bench/results.json`` keeps the last figures of each benchmark with the time and
the machine they were measured on; ``bench/RESULTS.md`` shows them, ``bench/results.svg`` draws the ratios,
and ``docs/scale.md`` says what they mean for whole histories.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench import scale, table
from bench.machine import machine
from bench.picture import draw

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"


def names() -> list[str]:
    """Benchmarks of this folder: modules that define ``run``."""
    return sorted(file.stem for file in HERE.glob("*.py") if "\ndef run(" in file.read_text("utf-8"))


def measured(name: str) -> list[dict]:
    """Figures of one benchmark, run in a process of its own; its log goes to standard error."""
    code = f"import json; from bench import {name}; print(json.dumps({name}.run()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"bench {name}: failed with exit code {done.returncode}; see its output above")
    figures = json.loads(done.stdout.splitlines()[-1])
    return figures if isinstance(figures, list) else [figures]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run; all when none is named")
    parser.add_argument("--list", action="store_true", help="list the benchmarks")
    given = parser.parse_args()
    known = names()
    if given.list:
        print("\n".join(known))
        return
    if unknown := set(given.names) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    for name in given.names or known:
        print(f"bench {name} …", file=sys.stderr, flush=True)
        figures = measured(name)
        results[name] = {
            "measured_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "machine": machine(),
            "figures": figures,
        }
        RESULTS.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n", "utf-8")
        for figure in figures:
            print(json.dumps(figure))
    draw(results, HERE / "results.svg")
    table.write(results, HERE / "RESULTS.md")
    scale.PAGE.write_text(scale.page(results), "utf-8")


if __name__ == "__main__":
    main()
