"""What a check says that it does not cover is what manifests leave out."""

from __future__ import annotations

from permalake.contracts import Table
from permalake.iota.contracts import IOTA_TABLES
from permalake.paths import ROOT
from permalake.transparency.proofs import ProvenRow
from permalake.transparency.report import NOT_COVERED, REST, UNSIGNED, report_proof
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


def test_the_page_on_trust_says_what_becomes_of_each_in_a_mirror() -> None:
    text = (ROOT / "docs" / "trust.md").read_text()
    assert [name for name in UNSIGNED if f"\n| `{name}` |" not in text] == []
