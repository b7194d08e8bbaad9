"""The generated pages of tables list what the audit expects."""

import pytest

from permalake.audit.catalogue import suite_of
from permalake.cli.docs import expectations, table_page
from permalake.cli.tables import ALL_TABLES


@pytest.mark.parametrize("table", ALL_TABLES.values(), ids=ALL_TABLES)
def test_the_page_of_a_table_lists_its_rules_and_laws(table) -> None:
    page = table_page(table)
    expected = [one for one in expectations().get(table.name, []) if one.origin != "contract"]
    assert all(f"| {one.name} | {one.origin} | {one.severity}" in page for one in expected)
    assert ("## Expectations" in page) == bool(expected)
    if table.name != "quarantine" and table.commit != "head":
        assert {rule.name for rule in suite_of(table).rules} <= {one.name for one in expected}
