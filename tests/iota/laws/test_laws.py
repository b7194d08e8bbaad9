"""Laws across tables: good days keep them, and each break shows up as that law, where it is broken."""

import datetime as dt

import pytest

from permalake.audit.findings import Finding
from permalake.audit.laws import Law
from permalake.audit.runner import Auditor
from permalake.domains import domain_of
from permalake.iota.contracts import IOTA_TABLES, activity, carried, ledger_changes, metrics, movements
from support.audit_days import DAYS, find, scope, small_network, tangle_rows, violations
from support.law_cases import CASES, DamagedDay, time_goes_on

# The expected rows tell nothing of consumed_outputs and of these tables: tests of their own cover them.
UNTOLD = {
    *(
        law.name
        for law in domain_of("shimmer").laws()
        if law.table
        in {
            table.name
            for module in (metrics, ledger_changes, carried, movements, activity)
            for table in module.TABLES
        }
    ),
    *("inputs_of_transactions", "supply_is_conserved", "supply_of_milestones", "sent_adds_up"),
}
LAWS = [law for law in domain_of("shimmer").laws() if law.name not in UNTOLD]


def found(rows, laws=LAWS):
    return violations(laws, scope(rows))


def damage(rows):
    """Breaks one value at a time, far from each other; returns the (law, place) that each breaks."""
    find(rows, "ms_analytics", milestone_index=249_993)["message_count"] += 1
    find(rows, "ms_analytics", milestone_index=249_995)["transferred_tokens"] -= 5
    find(rows, "messages", milestone_index=250_003, white_flag_index=1)["white_flag_index"] = 99
    first, second = [row for row in rows["messages"] if row["milestone_index"] == 249_997][:2]
    first["white_flag_index"], second["white_flag_index"] = (
        second["white_flag_index"],
        first["white_flag_index"],
    )
    tag = find(rows, "tags", milestone_index=250_002)
    tag["message_id"] = "ab" * 32
    metric = find(rows, "metrics_cache", metric="used")
    rows["metrics_cache"].remove(metric)
    find(rows, "daily_extended")["max_outputs"] += 1
    output = rows["basic_outputs"][0]
    output["ms_range_id"] += 7
    parent = find(rows, "parents", milestone_index=250_004)
    parent["inclusion_state"] = 0 if parent["inclusion_state"] else 1
    find(rows, "date_cache")["end_ms"] += 1
    received = find(rows, "address_analytics", milestone_index=249_996)
    received["recv_tokens"] += 3
    return {
        ("messages_add_up", "milestone 249993"),
        ("tokens_add_up", "milestone 249995"),
        ("day_adds_up", "transferred_tokens"),
        ("white_flag_order", "milestone 250003"),
        ("roots_match", "milestone 249997 inclusion root"),
        ("roots_match", "milestone 250003 inclusion root"),
        ("tags_have_messages", f"{'ab' * 32} milestone 250002 state {tag['inclusion_state']}"),
        ("values_are_those_of_the_day", f"used {metric['value']}"),
        ("day_adds_up", "max_outputs"),
        ("ranges_agree", f"milestone {output['milestone_index']} range {output['ms_range_id']}"),
        (
            "parents_have_messages",
            f"{parent['message_id']} milestone 250004 state {parent['inclusion_state']}",
        ),
        ("first_and_last_milestone", "end_ms"),
        ("received_adds_up", f"{received['address']} milestone 249996"),
    }


def test_good_days_keep_every_law() -> None:
    assert found(tangle_rows()) == []


def test_each_break_is_found_where_it_is_and_no_other() -> None:
    rows = tangle_rows()
    told = damage(rows)
    violations = found(rows)
    # Whether the applied root breaks too depends on what the blocks held that lost their places.
    applied = {("roots_match", f"milestone {index} applied root") for index in (249_997, 250_003)}
    assert {(row["law"], row["place"]) for row in violations} - applied == told
    [counted] = [row for row in violations if row["law"] == "messages_add_up"]
    assert int(counted["found"]) == int(counted["expected"]) + 1
    [size] = [row for row in violations if row["place"] == "max_outputs"]
    assert int(size["found"]) == int(size["expected"]) + 1


def test_every_law_is_violated_by_its_case() -> None:
    """A day per law, each damaged for its law; other laws may be violated by the same damage."""
    laws = domain_of("shimmer").laws()
    assert set(CASES) == {law.name for law in laws}
    days = [DAYS[0] + dt.timedelta(n) for n in range(len(CASES))]
    rows = small_network(days)
    wanted = {
        (name, day, damage(DamagedDay(rows, day)))
        for day, (name, damage) in zip(days, CASES.items(), strict=True)
    }
    violated = {(row["law"], dt.date.fromisoformat(row["date"]), row["place"]) for row in found(rows, laws)}
    assert wanted - violated == set()


def test_a_day_without_damage_keeps_every_law() -> None:
    assert found(small_network(), domain_of("shimmer").laws()) == []


def test_a_whole_history_does_not_go_on_over_missing_milestones() -> None:
    """A ledger that is known from outside has no first milestone (since_milestone)."""
    rows = small_network()
    for total in rows["ledger_totals"]:
        total["since_milestone"] = None
    laws = [law for law in domain_of("shimmer").laws() if law.name == "history_is_whole"]
    assert found(rows, laws) == []
    find(rows, "date_cache", date=DAYS[1])["start_ms"] += 1
    [broken] = found(rows, laws)
    assert (broken["date"], broken["found"]) == (DAYS[1].isoformat(), "whole")


@pytest.mark.parametrize(("protocol", "is_published"), [("chrysalis", True), ("stardust", False)])
def test_time_may_step_back_on_chrysalis(tmp_path, protocol, is_published) -> None:
    """Chrysalis milestones may step back in time: a warning. On Stardust the day stays unpublished."""
    rows = small_network()
    place = time_goes_on(DamagedDay(rows, DAYS[1]))
    for row in rows["tags"]:  # They carry their milestone's time.
        if place == f"milestone {row['milestone_index']}":
            row["ms_timestamp"] = find(rows, "tags", date=DAYS[1])["ms_timestamp"]
    laws = [law for law in domain_of(protocol).laws() if law.table == "milestones"]
    auditor = Auditor(IOTA_TABLES.values(), laws, tmp_path)
    report = auditor.run(scope(rows, protocol=protocol), DAYS, only=["laws"])
    line = f"milestones: time_goes_on: {place} expected later than "
    [finding] = report.warnings if is_published else report.failed
    assert finding.line().startswith(line)
    assert report.passed == (list(DAYS) if is_published else [DAYS[0], DAYS[2]])


def test_a_law_that_cannot_be_computed_is_broken_and_the_others_are_judged() -> None:
    absurd = "SELECT no_such_column FROM milestones"
    fails = "SELECT date, 'here' AS place, 'x' AS expected, error('out of reach') AS found FROM milestones"
    rows = tangle_rows()
    find(rows, "ms_analytics", milestone_index=249_993)["message_count"] += 1
    laws = [
        Law("fails", "milestones", "It fails.", "violations", (fails,)),
        Law("absurd", "milestones", "It is absurd.", "violations", (absurd,)),
        next(law for law in LAWS if law.name == "messages_add_up"),
    ]
    violations = {row["law"]: row for row in found(rows, laws)}
    assert set(violations) == {"fails", "absurd", "messages_add_up"}
    assert violations["fails"]["date"] is violations["absurd"]["date"] is None
    assert "out of reach" in violations["fails"]["found"]


@pytest.mark.parametrize(
    ("severity", "error", "is_failure"),
    [("critical", None, True), ("warning", None, False), ("warning", "lost", True)],
)
def test_an_error_is_critical_whatever_the_severity(severity, error, is_failure) -> None:
    finding = Finding("messages", "rule", "It holds.", severity, ok=False, error=error)
    assert (finding.is_failure, finding.is_warning) == (is_failure, not is_failure)
