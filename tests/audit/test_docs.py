"""The page of an audit works as files in a folder: every link leads to one."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from permalake.audit import docs
from permalake.audit.findings import AuditReport

DAY = date(2022, 9, 28)


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The page of an audit whose results lie beside it, as the auditor writes them."""
    monkeypatch.setattr(docs, "root", lambda: tmp_path)
    folder = docs.folder("shimmer", "attempt")
    for table in ("messages", "tags"):
        (folder / "results" / table).mkdir(parents=True)
        (folder / "results" / table / f"{DAY}_{DAY}.json").write_text("{}")
    return docs.write(AuditReport((DAY,), ()), folder, title="shimmer 2022-09-28", run_id="run")


def links(page):
    """The files to which a page links."""
    return [page.parent / target for target in re.findall(r'href="([^"]+)"', page.read_text())]


def test_the_raw_results_are_listed_as_files(page) -> None:
    assert all(target.is_file() for target in links(page))
    [results] = [target for target in links(page) if target.parent.name == "results"]
    listed = {target.relative_to(results.parent).as_posix() for target in links(results)}
    assert listed >= {f"messages/{DAY}_{DAY}.json", f"tags/{DAY}_{DAY}.json"}
    assert all(target.is_file() for target in links(results))


def test_an_audit_that_somebody_removes_meanwhile_is_left_out(page, monkeypatch) -> None:
    gone = page.parent.parent / "gone" / "summary.json"
    gone.parent.mkdir()
    gone.write_text("{}")
    read = Path.read_text

    def removed(file, *encoding):
        if file == gone:
            raise FileNotFoundError(file)
        return read(file, *encoding)

    monkeypatch.setattr(Path, "read_text", removed)
    docs.remove([])
    index = read(docs.root() / "index.html")
    assert "attempt/index.html" in index
    assert "gone" not in index
