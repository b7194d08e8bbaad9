"""For each law of an IOTA day the damage that violates it, on a day of :func:`audit_days.small_network`."""

from __future__ import annotations

from permalake.iota.contracts import IOTA_TABLES
from support.audit_days import find

ID, OTHER_ID, TOKEN = "aa" * 32, "bb" * 32, "cc" * 38


class DamagedDay:
    """A day of rows by table, to be damaged; its milestones are ``first`` and ``first + 1``."""

    def __init__(self, rows, day):
        self.rows = rows
        self.day = day
        self.first = min(row["milestone_index"] for row in rows["milestones"] if row["date"] == day)

    def find(self, table, **where):
        """The day's first row of a table with these values."""
        return find(self.rows, table, date=self.day, **where)

    def change(self, table, **values) -> None:
        """Change the day's first row of a table."""
        self.find(table).update(values)

    def remove(self, table, **where):
        """Remove the day's first row of a table with these values."""
        row = self.find(table, **where)
        self.rows[table].remove(row)
        return row

    def add(self, table, **values) -> None:
        """Add a row to a table; columns without a value are null."""
        here = {"milestone_index": self.first, "inclusion_state": 1, "date": self.day}
        row = here | values
        self.rows[table].append({name: row.get(name) for name in IOTA_TABLES[table].names})

    @property
    def at_first(self) -> str:
        """The place of the first milestone."""
        return f"milestone {self.first}"


def changed(table, place, **values):
    """A case that changes one row; ``place`` may name the first milestone."""

    def damage(day):
        day.change(table, **values)
        return place.format(first=day.first)

    return damage


def no_gaps(day) -> str:
    day.find("milestones", milestone_index=day.first + 1)["milestone_index"] += 4000
    return f"milestones {day.first} to {day.first + 4001}"


def time_goes_on(day) -> str:
    earlier = day.find("milestones")["timestamp"]
    day.find("milestones", milestone_index=day.first + 1)["timestamp"] = earlier
    return f"milestone {day.first + 1}"


def without_row(table):
    def damage(day):
        day.remove(table)
        return day.at_first

    return damage


def roots_match(day) -> str:
    first, second = (day.find("messages", white_flag_index=index) for index in (0, 1))
    first["white_flag_index"], second["white_flag_index"] = 1, 0
    return f"{day.at_first} inclusion root"


def transactions_have_messages(day) -> str:
    day.add("transactions", message_id=ID)
    return f"{ID} {day.at_first} state 1"


def of_unknown_message(table):
    def damage(day):
        day.change(table, message_id=ID)
        return f"{ID} {day.at_first} state 2"

    return damage


def messages_have_parents(day):
    message = day.find("messages")["message_id"]
    day.remove("parents", message_id=message)
    return message


def outputs_of_transactions(day) -> str:
    day.add("transactions", transaction_id=ID, idx=258, variant="output")
    return f"{ID}0201"


def consumed(place):
    def damage(day):
        day.add("consumed_outputs", transaction_id=ID, output_id=f"{OTHER_ID}0100", kind="basic", amount=5)
        return place.format(first=day.first)

    return damage


def supply_of_the_ledger(day) -> str:
    day.add("ledger_outputs", kind="basic", unspent_amount=5, since_milestone=day.first)
    return "supply"


def treasury_pays_receipts(day):
    day.add("treasury_outputs", output_id=f"{day.first:064x}", amount=5)
    return day.at_first


def treasury_goes_on(day) -> str:
    treasury = f"{day.first:064x}"
    day.add("treasury_outputs", output_id=treasury, amount=5)
    day.add("consumed_outputs", output_id=treasury, kind="treasury", amount=6)
    return f"treasury {treasury}"


def treasury_in_line(day) -> str:
    later = {"milestone_index": day.first + 1}
    day.add("treasury_outputs", output_id=f"{day.first:064x}", amount=5)
    day.add("treasury_outputs", output_id=f"{day.first + 1:064x}", amount=5, **later)
    day.add("consumed_outputs", output_id=ID, kind="treasury", amount=5, **later)
    return f"milestone {day.first + 1}"


def bytes_add_up(day):
    day.find("ms_activity")["message_bytes"] += 1
    return day.at_first


def moved_by_address(**tokens):
    def damage(day):
        day.add("address_analytics", **{"address": "smr1a", "sent_tokens": 0, "recv_tokens": 0, **tokens})
        return f"smr1a {day.at_first}"

    return damage


def tokens_are_kept(day) -> str:
    """One more than 2**200 is created than is consumed: only the last of 61 digits tells."""
    for is_spent, amount in ((1, 2**200), (0, 2**200 + 1)):
        held = {"transaction_id": ID, "token_id": TOKEN, "amount": str(amount), "is_spent": is_spent}
        day.add("native_tokens", **held)
    return f"transaction {ID} token {TOKEN}"


def tokens(is_spent, place):
    def damage(day):
        held = {"transaction_id": ID, "token_id": TOKEN, "amount": "1", "is_spent": is_spent}
        day.add("native_tokens", output_id=f"{OTHER_ID}0100", **held)
        return place

    return damage


def updated(is_spent, place, **values):
    def damage(day):
        row = {"address": "smr1a", "output_id": f"{OTHER_ID}0100", "amount": 1, "is_spent": is_spent}
        day.add("ledger_updates", **row | values)
        return place.format(first=day.first)

    return damage


def values_are_those_of_the_day(day) -> str:
    return f"used {day.remove('metrics_cache')['value']}"


def day_adds_up(day) -> str:
    day.find("daily_extended")["used_tags"] += 1
    return "used_tags"


def without_day(table):
    def damage(day):
        day.remove(table)
        return table

    return damage


def active_on_the_day(day) -> str:
    day.add("active_addresses", period="day", addresses=5)
    return "addresses"


def outputs_moved(day) -> str:
    day.find("ledger_changes", kind="basic", side="created")["count"] = 1
    return "basic created count"


def changes_belong_to_addresses(day) -> str:
    day.add("balance_changes", address="smr1a", change=1, is_active=0)
    return "change"


def active_addresses_of_the_day(day) -> str:
    day.add("balance_changes", address="smr1a", change=0, is_active=1)
    return "addresses"


def every_kind_every_day(day) -> str:
    day.remove("ledger_changes", kind="nft", side="consumed")
    return "rows"


def changes_are_carried(day) -> str:
    day.add("ledger_outputs", kind="basic", created_count=1)
    return "basic created count"


def not_continued(table, key, value, measures):
    """The first day of a chapter that ends with three outputs though none was created."""

    def damage(day):
        none = {f"{side}_{one}": 0 for side in ("created", "consumed", "unspent") for one in measures}
        day.add(table, **none | {key: value, "unspent_count": 3, "since_milestone": day.first})
        return f"{value} unspent count"

    return damage


def history_is_whole(day) -> str:
    """The day continues a chapter although milestones are missing before it."""
    day.change("ledger_totals", since_milestone=day.first - 2)
    day.find("date_cache")["start_ms"] += 1
    return "history"


def richest_in_order(day) -> str:
    day.add("richest_addresses", rank=2, balance=1)
    return "rank 2"


def hours_add_up(day) -> str:
    day.find("hourly_activity")["moved_tokens"] += 1
    return "moved_tokens"


def conflicts_add_up(day) -> str:
    day.add("conflicts_daily", conflict_reason=4, messages=1)
    return "reason 4"


def conflicts_have_addresses(day) -> str:
    day.add("conflicting_transactions", message_id=ID, conflict_reason=4)
    return f"{ID} reason 4"


def listed_address(rank, place):
    def damage(day):
        day.add("top_addresses", metric="sent_tokens", rank=rank, address="smr1a", value=1)
        return place

    return damage


CASES = {
    "no_gaps": no_gaps,
    "time_goes_on": time_goes_on,
    "milestone_messages_exist": changed("milestones", ID, message_id=ID),
    "rows_have_milestones": changed("messages", "milestone 7", milestone_index=7),
    "ranges_agree": changed("tags", "milestone {first} range 9", ms_range_id=9),
    "range_of_milestone": changed("ms_analytics", "milestone {first}", ms_range_id=1),
    "analytics_of_milestones": without_row("ms_analytics"),
    "activity_of_milestones": without_row("ms_activity"),
    "white_flag_order": changed("messages", "milestone {first}", white_flag_index=5),
    "roots_match": roots_match,
    "transactions_have_messages": transactions_have_messages,
    "tags_have_messages": of_unknown_message("tags"),
    "parents_have_messages": of_unknown_message("parents"),
    "messages_have_parents": messages_have_parents,
    "outputs_of_transactions": outputs_of_transactions,
    "inputs_of_transactions": consumed(f"{OTHER_ID}0100"),
    "supply_is_conserved": consumed(f"transaction {ID}"),
    "supply_of_milestones": consumed("milestone {first}"),
    "supply_of_the_ledger": supply_of_the_ledger,
    "treasury_pays_receipts": treasury_pays_receipts,
    "treasury_goes_on": treasury_goes_on,
    "treasury_in_line": treasury_in_line,
    "tokens_are_kept": tokens_are_kept,
    "tokens_of_outputs": tokens(0, f"{OTHER_ID}0100"),
    "tokens_of_spent_outputs": tokens(1, f"{OTHER_ID}0100 by {ID}"),
    "updates_received_add_up": updated(0, "smr1a milestone {first}", transaction_id=ID),
    "updates_sent_add_up": updated(1, "smr1a milestone {first}", transaction_id=ID),
    "updates_of_receipts": updated(0, f"{OTHER_ID}0100 smr1a"),
    "messages_add_up": changed("ms_analytics", "milestone {first}", message_count=4),
    "transactions_add_up": changed("ms_analytics", "milestone {first}", transaction_count=1),
    "tokens_add_up": changed("ms_analytics", "milestone {first}", transferred_tokens=1),
    "states_add_up": changed("ms_activity", "milestone {first} state 1", confirmed_count=1),
    "bytes_add_up": bytes_add_up,
    "sent_adds_up": moved_by_address(sent_tokens=1),
    "received_adds_up": moved_by_address(recv_tokens=1),
    "first_and_last_milestone": changed("date_cache", "end_ms", end_ms=9999),
    "values_are_those_of_the_day": values_are_those_of_the_day,
    "addresses_add_up": changed("daily_analytics", "send_addresses", send_addresses=1),
    "day_adds_up": day_adds_up,
    "one_row_a_day": without_day("daily_extended"),
    "activity_of_days": changed("daily_activity", "milestones", milestones=9),
    "metrics_of_a_day": without_day("daily_activity"),
    "totals_of_a_day": without_day("ledger_totals"),
    "hours_add_up": hours_add_up,
    "hours_hold_messages": changed("hourly_activity", "hour 5", hour=5),
    "conflicts_add_up": conflicts_add_up,
    "conflicts_have_addresses": conflicts_have_addresses,
    "intervals_add_up": changed("milestone_intervals", "seconds", seconds=7),
    "families_add_up": changed("tag_families", "tags", tags=9),
    "top_addresses_in_order": listed_address(2, "sent_tokens rank 2"),
    "top_addresses_add_up": listed_address(1, "sent_tokens smr1a"),
    "top_tags_in_order": changed("top_tags", "messages rank 7", rank=7),
    "top_tags_add_up": changed("top_tags", "messages 7a00", value=9),
    "active_on_the_day": active_on_the_day,
    "outputs_moved": outputs_moved,
    "every_kind_every_day": every_kind_every_day,
    "changes_belong_to_addresses": changes_belong_to_addresses,
    "active_addresses_of_the_day": active_addresses_of_the_day,
    "changes_are_carried": changes_are_carried,
    "ledger_outputs_go_on": not_continued("ledger_outputs", "kind", "basic", ("count", "amount", "bytes")),
    "unlock_conditions_go_on": not_continued(
        "unlock_conditions", "condition", "timelock", ("count", "amount", "return_amount")
    ),
    "history_is_whole": history_is_whole,
    "ledger_adds_up": changed("ledger_totals", "outputs", outputs=1),
    "distribution_adds_up": changed("ledger_totals", "amount", amount=1),
    "checkpoints_are_whole": changed("ledger_totals", "holders", holders=1),
    "richest_in_order": richest_in_order,
}
