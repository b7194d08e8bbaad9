"""The supply is conserved: a good ledger keeps its laws, and a token too many or too few fails the audit."""

import datetime as dt

from permalake.iota.codec import chrysalis
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.day import IOTA
from support.audit_days import scope, violations

SUPPLY = {
    *("supply_is_conserved", "supply_of_milestones", "treasury_pays_receipts"),
    *("treasury_goes_on", "treasury_in_line", "supply_of_the_ledger"),
}
DAYS = [dt.date(2021, 5, 10) + dt.timedelta(n) for n in range(6)]
MADE = ("fund", "sent", "remainder")  # a day's legacy outputs


def ledger():
    """Six days of a synthetic Chrysalis ledger, one milestone each: a receipt that moves 10 out of the
    treasury, and a transfer of 100."""
    rows = {name: [] for name in IOTA_TABLES}
    for milestone, day in enumerate(DAYS, 1):
        here = {"milestone_index": milestone, "date": day}
        before, ours, spender = f"{milestone - 1:02x}" * 32, f"{milestone:02x}" * 32, f"a{milestone}" * 32
        rows["date_cache"].append({"date": day, "start_ms": milestone, "end_ms": milestone})
        left = 1000 - 10 * milestone
        rows["treasury_outputs"].append({**here, "output_id": ours, "amount": left})
        for output_id, amount in ((f"{ours}0000", 10), (f"{spender}0000", 60), (f"{spender}0100", 40)):
            rows["legacy_outputs"].append({**here, "output_id": output_id, "amount": amount})
        treasury = {"output_id": before, "kind": "treasury", "amount": left + 10}
        spent = {"output_id": f"f{milestone}" * 32 + "0000", "kind": "legacy", "amount": 100}
        rows["consumed_outputs"] += [{**here, **treasury}, {**here, **spent, "transaction_id": spender}]
        # The last day stands for one whose whole history is known.
        known = (chrysalis.SUPPLY, None) if day == DAYS[-1] else (0, 1)
        for kind, amount in (("treasury", -10 * milestone), ("legacy", 10 * milestone + known[0])):
            ends = {"kind": kind, "unspent_count": 1, "unspent_amount": amount, "since_milestone": known[1]}
            rows["ledger_outputs"].append({**ends, "date": day})
    return {
        name: [{column: row.get(column) for column in IOTA_TABLES[name].names} for row in of_table]
        for name, of_table in rows.items()
    }


def violated(rows):
    laws = [law for law in IOTA.laws() if law.name in SUPPLY]
    assert {law.name for law in laws} == SUPPLY
    found = violations(laws, scope(rows))
    return {(row["law"], dt.date.fromisoformat(row["date"]), row["place"]) for row in found}


def test_a_sound_ledger_conserves_the_supply() -> None:
    assert violated(ledger()) == set()


def test_a_day_after_a_withheld_one_with_a_receipt_is_sound() -> None:
    rows = {name: [row for row in made if row["date"] != DAYS[2]] for name, made in ledger().items()}
    assert violated(rows) == set()


def test_a_token_too_many_or_too_few_fails_where_it_is() -> None:
    rows = ledger()
    legacy, treasury, consumed = (rows[f"{kind}_outputs"] for kind in ("legacy", "treasury", "consumed"))
    legacy[MADE.index("sent")]["amount"] += 1
    consumed[3]["amount"] -= 1  # day 2
    treasury[2]["amount"] += 1
    legacy[9 + MADE.index("fund")]["amount"] += 1  # day 4
    consumed[8]["output_id"] = "00" * 32  # day 5
    consumed[10]["amount"] += 7  # day 6: its own sums hold, but it spends more than day 5 has left
    treasury[5]["amount"] += 7
    rows["ledger_outputs"][2]["unspent_amount"] += 1  # day 2
    rows["ledger_outputs"][11]["unspent_amount"] -= 1  # day 6
    wrong = {
        1: [("supply_is_conserved", f"transaction {'a1' * 32}"), ("supply_of_milestones", "milestone 1")],
        2: [
            *(("supply_is_conserved", f"transaction {'a2' * 32}"), ("supply_of_milestones", "milestone 2")),
            ("supply_of_the_ledger", "supply"),
        ],
        3: [("treasury_pays_receipts", "milestone 3"), ("supply_of_milestones", "milestone 3")],
        4: [
            *(("treasury_pays_receipts", "milestone 4"), ("supply_of_milestones", "milestone 4")),
            ("treasury_goes_on", f"treasury {'03' * 32}"),
        ],
        5: [("treasury_in_line", "milestone 5")],
        6: [("treasury_goes_on", f"treasury {'05' * 32}"), ("supply_of_the_ledger", "supply")],
    }
    assert violated(rows) == {
        (law, DAYS[day - 1], place) for day, places in wrong.items() for law, place in places
    }
