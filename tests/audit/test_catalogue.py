"""Every table has its suite, and every expectation a name and a sentence. No Spark."""

import pytest

from permalake import paths
from permalake.audit.catalogue import describe, laws_of, suite_of
from permalake.contracts import IOTA_TABLES, WORMHOLE_TABLES

NETWORKS = {"shimmer": IOTA_TABLES, "wormhole": WORMHOLE_TABLES}


@pytest.mark.parametrize("network", NETWORKS)
def test_every_table_is_described(network):
    described = describe(network)
    assert list(described) == list(NETWORKS[network])
    for table, expectations in described.items():
        names = [one.name for one in expectations]
        assert len(names) == len(set(names)), table
        assert {"columns", "types", "key_unique"} <= set(names)
        assert all(one.text.strip() and one.severity in {"critical", "warning"} for one in expectations)
    assert {law.name for law in laws_of(network)} <= {one.name for all_ in described.values() for one in all_}


def test_there_is_one_suite_per_table_and_no_other_file():
    files = {file.stem for file in paths.EXPECTATIONS.glob("*.py")}
    laws = {"laws_iota", "laws_iota_metrics", "laws_wormhole"}
    assert files == set(IOTA_TABLES) | set(WORMHOLE_TABLES) | laws
    assert all(suite_of(name).table == name for name in files - laws)
