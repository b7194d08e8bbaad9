"""The catalogue is complete: a suite per table, a name and a sentence per expectation. No Spark."""

import re
from collections import Counter

import pytest

from permalake import paths
from permalake.audit.catalogue import audited, describe, suite_of, suites_of
from permalake.audit.suite import contract_rules
from permalake.domains import domain_of
from permalake.errors import PermalakeError
from permalake.iota.contracts import IOTA_TABLES
from permalake.wormhole.contracts import WORMHOLE_TABLES

NETWORKS = {"shimmer": IOTA_TABLES, "wormhole": WORMHOLE_TABLES}
EVERY = [table for tables in NETWORKS.values() for table in audited(tables.values())]
WORDS = {
    *("and", "or", "not", "is", "null", "in", "between", "case", "when", "then", "else", "end", "as"),
    *("distinct", "from", "cast", "int", "decimal", "string", "timestamp", "date", "ubigint"),
}
"""Words of a predicate that are no columns: SQL, and its types."""
RANGE_OF_ONE_COLUMN = (
    r"\w+ (>=|<=|>|<|=|<>) -?\d+|\w+ BETWEEN -?\d+ AND -?\d+|\w+ (NOT )?IN .*|\w+ IS NOT NULL"
    r"|regexp_matches\(\w+, .*\)"
)


@pytest.mark.parametrize("network", NETWORKS)
def test_every_table_is_described(network) -> None:
    described = describe(NETWORKS[network].values(), domain_of(network).laws())
    assert list(described) == [name for name in NETWORKS[network] if name != "quarantine"]
    for table, expectations in described.items():
        names = [one.name for one in expectations]
        assert len(names) == len(set(names)), table
        assert {"columns", "types", "key_unique", "date_within_range"} <= set(names)
        assert all(one.text.endswith(".") or one.name.endswith("_well_formed") for one in expectations)
        assert all(one.severity in {"critical", "warning"} for one in expectations)
    assert {law.name for law in domain_of(network).laws()} <= {
        one.name for all_ in described.values() for one in all_
    }


@pytest.mark.parametrize("network", NETWORKS)
def test_laws_have_unique_names_and_report_under_audited_tables(network) -> None:
    laws = domain_of(network).laws()
    assert max(Counter(law.name for law in laws).values()) == 1
    assert {law.table for law in laws} <= {table.name for table in audited(NETWORKS[network].values())}


@pytest.mark.parametrize("domain", ["iota", "wormhole"])
def test_there_is_one_suite_per_table_and_no_other(domain) -> None:
    assert set(suites_of(domain)) == {table.name for table in EVERY if table.group == domain}


def test_a_table_without_suite_is_an_error() -> None:
    with pytest.raises(PermalakeError, match="quarantine has no suite"):
        suite_of(IOTA_TABLES["quarantine"])


@pytest.mark.parametrize("table", EVERY, ids=lambda table: table.name)
def test_predicates_name_columns_of_the_contract_only(table) -> None:
    for rule in suite_of(table).rules:
        plain = re.sub(r"'[^']*'", "", rule.predicate)
        words = re.findall(r"[A-Za-z_][A-Za-z0-9_]*(?![A-Za-z0-9_]*\()", plain)
        assert {word for word in words if word.lower() not in WORDS} <= set(table.names), rule.name


@pytest.mark.parametrize("table", EVERY, ids=lambda table: table.name)
def test_no_rule_restates_the_contract(table) -> None:
    """Nulls, value sets, ranges and patterns of one column belong to the contract."""
    own = suite_of(table).rules
    derived = contract_rules(table)
    assert not {rule.predicate for rule in own} & {rule.predicate for rule in derived}
    assert not {rule.name for rule in own} & {rule.name for rule in derived}
    for rule in own:
        assert not re.fullmatch(RANGE_OF_ONE_COLUMN, rule.predicate), rule.name


def test_no_predicate_stands_twice_outside_of_common() -> None:
    # What common.py defines is shared: a Rule object, or text of a function of it.
    sources = {file: file.read_text("utf-8") for file in paths.EXPECTATIONS.glob("*/*.py")}
    written = Counter(
        text
        for source in sources.values()
        for text in re.findall(r'rule\(\s*"\w+",\s*((?:f?"[^"]*"\s*)+)', source)
    )
    assert written
    assert [text for text, count in written.items() if count > 1] == []
    names = Counter(name for source in sources.values() for name in re.findall(r'rule\(\s*"(\w+)"', source))
    assert [name for name, count in names.items() if count > 1] == []
