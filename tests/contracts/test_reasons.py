"""The codes of reasons: each has a section in the runbook, and is one that the code gives."""

from __future__ import annotations

import ast
import re
from datetime import date
from typing import get_args

import pytest

from permalake.contracts.reason_codes import (
    RUNBOOK,
    ConeReason,
    DayReason,
    MessageReason,
    ValueReason,
    failure_codes,
    gap_code,
)
from permalake.contracts.reasons import REASONS, TITLES
from permalake.paths import ROOT
from permalake.pipeline.execution import died
from permalake.spark.submit import SubmitEnd
from permalake.wormhole.sources.guardian import Gap, missing

CODES = {*get_args(ConeReason), *get_args(MessageReason), *get_args(ValueReason), *get_args(DayReason)}
PACKAGE = ROOT / "include" / "permalake"


def test_the_runbook_has_a_section_for_every_code_and_no_other() -> None:
    text = (ROOT / RUNBOOK).read_text("utf-8")
    sections = re.findall(r"^### (.*)\n\n(.+)\n\n(.+)$", text, re.MULTILINE)
    assert {code for code, _, _ in sections} == CODES
    assert len(sections) == len(re.findall(r"^###", text, re.MULTILINE)) == len(CODES)
    assert all(len(meaning) > 20 and len(remedy) > 20 for _, meaning, remedy in sections)


def test_registry_and_chapters_have_every_code_once() -> None:
    assert set(REASONS) == CODES
    assert sorted(code for codes in TITLES.values() for code in codes) == sorted(CODES)


def _literals(folder: str) -> set[str]:
    found = set()
    for file in (PACKAGE / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


@pytest.mark.parametrize(
    ("folder", "codes"), [("iota/cone", ConeReason), ("wormhole", MessageReason), ("wormhole", ValueReason)]
)
def test_no_code_is_one_that_nothing_gives(folder: str, codes: object) -> None:
    """That nothing gives another one is what the types say."""
    assert set(get_args(codes)) - _literals(folder) == set()


def test_a_line_of_a_failure_names_its_codes() -> None:
    assert failure_codes("milestone 7: parent_missing: block 0a refers to 0b") == ("parent_missing",)
    assert failure_codes("not published: 2022-09-28: milestone 7: applied_root: its included") == (
        "applied_root",
    )
    assert failure_codes("audit of shimmer 2022-09-28 failed: messages: key_unique") == ("audit_failed",)
    assert failure_codes(died(SubmitEnd(137, "")).failure) == ("submit_ended",)
    assert failure_codes("the bridge is late, its token denied") == ("step_failed",)


def test_a_line_of_a_gap_names_its_code() -> None:
    day = date(2022, 9, 28)
    gaps = [Gap(day, 2, f"{number:064x}", 5, 5 + number) for number in range(30)]
    assert {gap_code(line) for line in missing(gaps)[day]} == {"sequences_missing"}
    assert gap_code("gaps are unknown: shimmer.date_cache: damaged") == "gaps_unknown"
    assert gap_code("milestones overlap 2022-09-27") == "milestones_overlap"
