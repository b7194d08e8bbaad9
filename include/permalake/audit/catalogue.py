"""All expectations: the suites and laws of ``expectations/``, with the basics of the contracts."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from permalake import paths
from permalake.audit.laws import Law
from permalake.audit.suite import CRITICAL, Severity, Suite, basics
from permalake.contracts import Table, tables_of
from permalake.errors import PermalakeError
from permalake.wormhole.contracts.tables import NAMESPACE


@dataclass(frozen=True, slots=True)
class Described:
    """An expectation, for people to read."""

    table: str
    name: str
    text: str
    severity: Severity
    origin: str
    """``contract``, ``suite`` or ``law``."""


def suite_of(table: str) -> Suite:
    """The suite of ``expectations/{table}.py``."""
    return _suite(_module(table))


def laws_of(network: str) -> tuple[Law, ...]:
    """The laws of a lake namespace."""
    modules = ("laws_wormhole",) if network == NAMESPACE else ("laws_iota", "laws_iota_metrics")
    return tuple(law for name in modules for law in _module(name).LAWS)


def describe(network: str) -> dict[str, list[Described]]:
    """Every expectation of a namespace, by table."""
    described = {name: _of_table(table) for name, table in tables_of(network).items()}
    for law in laws_of(network):
        described[law.table].append(Described(law.table, law.name, law.text, law.severity, "law"))
    return described


def _of_table(table: Table) -> list[Described]:
    key = ", ".join(table.key)
    own = suite_of(table.name).rules
    return [
        Described(
            table.name, "columns", "Columns are those of the contract, in order.", CRITICAL, "contract"
        ),
        Described(table.name, "types", "Columns have the types of the contract.", CRITICAL, "contract"),
        Described(table.name, "key_unique", f"({key}) identifies a row.", CRITICAL, "contract"),
        *(Described(table.name, one.name, one.text, one.severity, "contract") for one in basics(table)),
        *(Described(table.name, one.name, one.text, one.severity, "suite") for one in own),
    ]


def _suite(module: ModuleType) -> Suite:
    found: Suite = module.SUITE
    return found


@lru_cache(maxsize=64)
def _load(file: Path, changed: int) -> ModuleType:  # noqa: ARG001
    spec = importlib.util.spec_from_file_location(f"expectations.{file.stem}", file)
    if spec is None or spec.loader is None:
        raise PermalakeError(f"{file} is no Python file; restore it")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _module(name: str) -> ModuleType:
    file = paths.EXPECTATIONS / f"{name}.py"
    if not file.is_file():
        raise PermalakeError(f"{file} is missing: every table has its suite; restore or write it")
    return _load(file, file.stat().st_mtime_ns)
