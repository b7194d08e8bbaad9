"""Write the generated docs; ``--check`` compares them.

These are ``docs/tables``, ``docs/dags.md``, ``docs/runbooks/reasons.md`` and ``include/cql``.
"""

from __future__ import annotations

import argparse
import sys
from functools import lru_cache
from pathlib import Path

from permalake.audit.catalogue import Described, describe
from permalake.cli.tables import ALL_TABLES, ALL_VIEWS
from permalake.contracts import Table
from permalake.contracts.reason_codes import RUNBOOK
from permalake.contracts.reasons import runbook
from permalake.contracts.views import LakeView
from permalake.domains import DOMAINS
from permalake.paths import ROOT

_NOTICE = "<!-- Generated from the table contracts by `make docs`; changes belong there. -->"
_NAMESPACES = {"iota": "one per IOTA network", "wormhole": "`wormhole`", "all": "every namespace"}

_COMMITS = {
    "side": "Side table: committed on its own, not with the day",
    "carried": "Carried table: built by the step `carry` from published days, in order",
    "head": "Table of the live head alone, the namespace `NETWORK_live`; no day has it",
}


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def table_page(table: Table | LakeView) -> str:
    """Return the Markdown page of one table or view."""
    lines = [_NOTICE, f"# {table.name}", "", table.doc, "", f"- Namespace: {_NAMESPACES[table.group]}"]
    if isinstance(table, LakeView):
        lines += [f"- A view of {_tables_below(table)}, for `permalake query`"]
        lines += [f"- {table.note}"]
    else:
        lines += [f"- Key: {', '.join(f'`{k}`' for k in table.key)}", "- Partition: `date`"]
    if isinstance(table, Table):
        order = ", ".join(f"`{name}`" for name in table.order)
        lines += [f"- Order in files: {order}; row groups of {table.row_group_bytes >> 20} MiB"]
    if isinstance(table, Table) and table.lookups:
        lines += [f"- Single rows are looked up by {', '.join(f'`{name}`' for name in table.lookups)}"]
    if isinstance(table, Table) and table.time_column:
        lines += [f"- Time: `{table.time_column}`; `date` is its UTC date"]
    if isinstance(table, Table) and table.first_value:
        clocks = ", ".join(f"`{name}`" for name in table.first_value)
        lines += [f"- Keeps its first value when a day is rebuilt: {clocks}"]
    if isinstance(table, Table) and table.commit in _COMMITS:
        lines += [f"- {_COMMITS[table.commit]}"]
    lines += ["", "| column | type | null | meaning | rule |", "| --- | --- | --- | --- | --- |"]
    for column in table.columns:
        null = "" if column.required else "yes"
        demand = f"`{_cell(column.rule)}`" if column.rule else ""
        lines.append(f"| {column.name} | {column.type} | {null} | {_cell(column.doc)} | {demand} |")
    if isinstance(table, Table):
        lines += _expectations(table)
    return "\n".join(lines) + "\n"


def _tables_below(view: LakeView) -> str:
    """Return the tables that a view reads; one of every namespace reads another table in each domain."""
    same = (other for domain in DOMAINS for other in domain.views if other.name == view.name)
    return " or ".join(", ".join(f"`{name}`" for name in other.tables) for other in same)


def _expectations(table: Table) -> list[str]:
    """Return the lines on what the audit expects beyond keys and columns: nothing of the quarantine."""
    expected = [
        expectation for expectation in expectations().get(table.name, ()) if expectation.origin != "contract"
    ]
    if not expected:
        return []
    lines = ["", "## Expectations", "", "| expectation | of | severity | what is expected |"]
    lines += ["| --- | --- | --- | --- |"]
    for expectation in expected:
        softer = f"; warning on {', '.join(expectation.warns_on)}" if expectation.warns_on else ""
        severity = f"{expectation.severity}{softer}"
        lines.append(
            f"| {expectation.name} | {expectation.origin} | {severity} | {_cell(expectation.text)} |"
        )
    return lines


@lru_cache
def expectations() -> dict[str, list[Described]]:
    """Return every expectation of both domains, by table."""
    described: dict[str, list[Described]] = {}
    for domain in DOMAINS:
        described |= describe(domain.tables.values(), domain.laws())
    return described


def _described() -> tuple[Table | LakeView, ...]:
    return *ALL_TABLES.values(), *ALL_VIEWS.values()


def index_page() -> str:
    """Return the Markdown index of all tables."""
    lines = [_NOTICE, "# The tables", ""]
    titles = {"iota": "IOTA, per network", "wormhole": "Wormhole", "all": "Every namespace"}
    for group, title in titles.items():
        lines += [f"## {title}", "", "| table | meaning |", "| --- | --- |"]
        for table in _described():
            if table.group == group:
                lines.append(f"| [{table.name}]({table.name}.md) | {_cell(table.doc)} |")
        lines.append("")
    return "\n".join(lines)


def dags_page() -> str:
    """Return the Markdown page of the DAGs, from their own documentation."""
    from permalake.local.describe import describe_dags

    return describe_dags()


def cql(protocol: str) -> str:
    """Return the CQL that creates a network's tables; the store executes the same statements."""
    from permalake.iota.permanode.chrysalis_schema import schema

    notice = (
        "-- Generated from the store contracts by `make docs`; changes belong there.\n"
        f"-- A {protocol} network named `network`; docs/stores.md says what was mended and why.\n\n"
    )
    return notice + ";\n\n".join(schema("network", protocol, "datacenter1", 1)) + ";\n"


def pages() -> dict[Path, str]:
    """Return every generated page by its path."""
    tables = ROOT / "docs" / "tables"
    generated = {tables / f"{table.name}.md": table_page(table) for table in _described()}
    generated[tables / "README.md"] = index_page()
    generated[ROOT / "docs" / "dags.md"] = dags_page()
    generated[ROOT / RUNBOOK] = runbook()
    for protocol in ("chrysalis", "stardust"):
        generated[ROOT / "include" / "cql" / f"{protocol}.cql"] = cql(protocol)
    return generated


def main(argv: list[str] | None = None) -> int:
    """Write the pages, or with ``--check`` name those that differ and return 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    check = parser.parse_args(argv).check
    stale = []
    for path, text in pages().items():
        if path.is_file() and path.read_text("utf-8") == text:
            continue
        stale.append(path.relative_to(ROOT))
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    if check and stale:
        sys.stderr.write(f"permalake: {', '.join(map(str, stale))} out of date; run `make docs`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
