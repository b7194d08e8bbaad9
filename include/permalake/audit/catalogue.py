"""All expectations of a domain: contracts, the suites of ``expectations/``, laws."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType

from permalake import paths
from permalake.audit.laws import Law
from permalake.audit.suite import CRITICAL, Severity, Suite, contract_rules
from permalake.contracts import QUARANTINE, Table
from permalake.errors import PermalakeError

_PACKAGE = "expectations"


@dataclass(frozen=True, slots=True)
class Described:
    """An expectation as documentation: ``origin`` is ``contract``, ``suite`` or ``law``."""

    table: str
    name: str
    text: str
    severity: Severity
    origin: str
    warns_on: tuple[str, ...] = ()


def audited(tables: Iterable[Table]) -> list[Table]:
    """Return the tables that an audit reads: all but the quarantine."""
    return [table for table in tables if table.name != QUARANTINE.name]


def suite_of(table: Table) -> Suite:
    """Return the suite of a table, from ``expectations/{domain}/``.

    Raises:
        PermalakeError: The table has no suite.
    """
    try:
        return suites_of(table.group)[table.name]
    except KeyError:
        raise PermalakeError(
            f"{table.name} has no suite in {paths.EXPECTATIONS / table.group}; add one to SUITES of a topic"
        ) from None


@lru_cache
def suites_of(domain: str) -> dict[str, Suite]:
    """Return the suites of a domain by table: ``SUITES`` of every module in ``expectations/{domain}/``.

    Raises:
        PermalakeError: A table has two suites.
    """
    suites: dict[str, Suite] = {}
    for file in sorted((paths.EXPECTATIONS / domain).glob("[!_]*.py")):
        for table_suite in _module(f"{domain}.{file.stem}").SUITES:
            if table_suite.table in suites:
                raise PermalakeError(f"{file}: {table_suite.table} has another suite; merge the two")
            suites[table_suite.table] = table_suite
    return suites


def describe(tables: Iterable[Table], laws: Iterable[Law]) -> dict[str, list[Described]]:
    """Return every expectation of audited tables, by table."""
    described = {table.name: _of_table(table) for table in audited(tables)}
    for law in laws:
        described[law.table].append(
            Described(law.table, law.name, law.text, law.severity, "law", law.warns_on)
        )
    return described


def _of_table(table: Table) -> list[Described]:
    def contract(name: str, text: str) -> Described:
        return Described(table.name, name, text, CRITICAL, "contract")

    return [
        contract("columns", "Columns are those of the contract, in order."),
        contract("types", "Columns have the types of the contract."),
        contract("key_unique", f"({', '.join(table.key)}) identifies a row."),
        contract("date_within_range", "date is one of the audited days."),
        *(contract(rule.name, rule.text) for rule in contract_rules(table)),
        *(
            Described(table.name, rule.name, rule.text, rule.severity, "suite")
            for rule in suite_of(table).rules
        ),
    ]


def _module(name: str) -> ModuleType:
    """Import a module of the folder ``expectations``, which need not be on the import path."""
    if _PACKAGE not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            _PACKAGE,
            paths.EXPECTATIONS / "__init__.py",
            submodule_search_locations=[str(paths.EXPECTATIONS)],
        )
        if spec is None or spec.loader is None or not paths.EXPECTATIONS.is_dir():
            raise PermalakeError(f"{paths.EXPECTATIONS} is missing; restore it from the repository")
        package = importlib.util.module_from_spec(spec)
        sys.modules[_PACKAGE] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"{_PACKAGE}.{name}")
