"""Data Docs: a static page per audit and an index of them, readable without a network.

Great Expectations' own site loads style sheets from a CDN. Its raw results lie beside each page.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from permalake import paths
from permalake.audit.findings import AuditReport, Finding, shorten

PAGES = Path(__file__).parent / "pages"
_SUMMARY = "summary.json"
_ROWS_SHOWN = 20
_LISTED = 500


def root() -> Path:
    """Return the folder of all Data Docs; its ``index.html`` lists them."""
    return paths.HOME / "audit"


def folder(network: str, attempt: str) -> Path:
    """Return the folder of an attempt's audit."""
    return root() / network / attempt


def write(report: AuditReport, target: Path, *, title: str, run_id: str) -> Path:
    """Write the page of an audit into ``target``, update the index, and return the page."""
    import great_expectations

    judged_at = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    page = target / "index.html"
    text = _render(
        "audit.html",
        title=title,
        run_id=run_id,
        report=report,
        tables=_by_table(report.findings),
        judged_at=judged_at,
        version=great_expectations.__version__,
        most=_ROWS_SHOWN,
    )
    summary = {
        "title": title,
        "judged_at": judged_at,
        "days": len(report.days),
        "passed": len(report.passed),
        "expectations": len(report.findings),
        "warnings": len(report.warnings),
        "warned": {day.isoformat(): report.warned(day) for day in report.days},
        "failures": [finding.line() for finding in report.failed],
    }
    results = target / "results"
    results.mkdir(parents=True, exist_ok=True)
    files = sorted(file.relative_to(results).as_posix() for file in results.glob("*/*.json"))
    _replace(results / "index.html", _render("results.html", title=title, files=files))
    _replace(page, text)
    _replace(target / _SUMMARY, json.dumps(summary))
    _replace(root() / "index.html", _render("index.html", audits=_audits()))
    return page


def outdated(keep: Collection[str], before: datetime) -> list[Path]:
    """Return the folders of audits written before a moment, except those of attempts in ``keep``."""
    old = []
    for file in sorted(root().glob(f"*/*/{_SUMMARY}")):
        with suppress(FileNotFoundError):  # somebody else removes audits, too
            if file.parent.name not in keep and file.stat().st_mtime < before.timestamp():
                old.append(file.parent)
    return old


def remove(folders: Iterable[Path]) -> None:
    """Delete audits and update the index."""
    for gone in folders:
        shutil.rmtree(gone, ignore_errors=True)
    _replace(root() / "index.html", _render("index.html", audits=_audits()))


def _audits() -> list[dict[str, Any]]:
    """Return the summaries of all audits, newest first."""
    audits = []
    for file in root().glob(f"*/*/{_SUMMARY}"):
        with suppress(FileNotFoundError):  # removed since
            page = f"{file.parent.relative_to(root())}/index.html"
            audits.append(json.loads(file.read_text("utf-8")) | {"page": page})
    return sorted(audits, key=lambda audit: str(audit["judged_at"]), reverse=True)[:_LISTED]


def _by_table(findings: tuple[Finding, ...]) -> dict[str, list[Finding]]:
    ordered = sorted(findings, key=lambda finding: finding.table)
    return {table: list(group) for table, group in groupby(ordered, key=lambda finding: finding.table)}


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(style=_style(), **values)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(PAGES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["shorten"] = shorten
    return made


@lru_cache(maxsize=1)
def _style() -> Any:
    from markupsafe import Markup

    return Markup((PAGES / "style.css").read_text("utf-8"))  # noqa: S704


def _replace(file: Path, text: str) -> None:
    """Replace a file atomically: other audits write the index too."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.write_text(text, "utf-8")
    draft.replace(file)
