"""What a check says that it does not cover is what manifests leave out."""

from __future__ import annotations

import pytest

from permalake.contracts import Table
from permalake.iota.contracts import IOTA_TABLES
from permalake.paths import ROOT
from permalake.transparency.proofs import ProvenRow
from permalake.transparency.report import NOT_COVERED, REST, UNSIGNED, basis, report_proof
from permalake.wormhole.contracts import WORMHOLE_TABLES


def test_a_report_names_every_table_that_no_manifest_covers() -> None:
    tables: list[Table] = [*IOTA_TABLES.values(), *WORMHOLE_TABLES.values()]
    assert {table.name for table in tables if table.commit == "side"} == set(UNSIGNED)
    for name in UNSIGNED:
        assert any(name in line for line in NOT_COVERED)


def test_a_report_on_a_proof_says_that_a_later_correction_is_not_covered() -> None:
    """A proof of a statement that was replaced goes on to hold under any later checkpoint."""
    manifest = {"network": "shimmer", "date": "2022-09-28", "tables": {}, "verified": {"rules": []}}
    words = list(report_proof(ProvenRow("example.org/log", 7, "key", manifest, None, {})))
    assert "whether the publisher has replaced this statement since" in "\n".join(words[words.index(REST) :])


@pytest.mark.parametrize(
    ("threshold", "thresholds", "needed"),
    [(None, [7], "7 of its 1"), (None, [None], "1 of its 1"), (2, [7, None], "2 to 7 of its 2")],
)
def test_a_report_says_how_many_keys_must_sign(threshold, thresholds, needed) -> None:
    keys = [{"key": "07", "start": 0, "end": 0, "threshold": each} for each in thresholds]
    [line] = basis({"coordinator": {"threshold": threshold, "keys": keys}})
    assert f"{needed} keys must sign" in line


def test_the_page_on_trust_says_what_becomes_of_each_in_a_mirror() -> None:
    text = (ROOT / "docs" / "trust.md").read_text()
    assert [name for name in UNSIGNED if f"\n| `{name}` |" not in text] == []
