"""Figures and charts of an IOTA network's pages."""

from __future__ import annotations

from permalake.contracts.figures import DailyChart, HeadlineFigure

FIGURES = (
    HeadlineFigure("Messages", "daily_extended", "sum(message_count)"),
    HeadlineFigure("Transactions", "daily_extended", "sum(included_transaction_count)"),
    HeadlineFigure("Tokens moved", "daily_activity", "sum(CAST(moved_tokens AS HUGEINT))", "tokens"),
)


def _sums(*columns: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((label, f"CAST(sum({column}) AS DOUBLE)") for label, column in columns)


CHARTS = (
    DailyChart(
        "Messages by payload",
        "daily_activity",
        _sums(
            ("transactions", "transaction_payload_count"),
            ("tagged data", "tagged_data_count"),
            ("milestones", "milestone_payload_count"),
            ("without payload", "no_payload_count"),
        ),
        parts=True,
    ),
    DailyChart(
        "Transactions",
        "daily_activity",
        _sums(("included", "confirmed_count"), ("conflicting", "conflicting_count")),
        parts=True,
    ),
    DailyChart(
        "Conflicts by reason",
        "conflicts_daily",
        tuple(
            (label, f"CAST(coalesce(sum(messages) FILTER ({condition}), 0) AS DOUBLE)")
            for label, condition in (
                ("input spent before", "conflict_reason IN (1, 2)"),
                ("input unknown", "conflict_reason = 3"),
                ("other", "conflict_reason NOT BETWEEN 1 AND 3"),
            )
        ),
        parts=True,
    ),
    DailyChart("Tokens moved", "daily_activity", _sums(("to other addresses", "moved_tokens")), "tokens"),
    DailyChart(
        "Active addresses",
        "daily_analytics",
        _sums(
            ("sent or received", "total_addresses"),
            ("sent", "send_addresses"),
            ("received", "recv_addresses"),
        ),
    ),
    DailyChart(
        "Outputs created by kind",
        "ledger_outputs",
        tuple(
            (kind, f"CAST(coalesce(sum(created_count) FILTER (kind = '{kind}'), 0) AS DOUBLE)")
            for kind in ("basic", "alias", "foundry", "nft", "legacy")
        ),
        parts=True,
    ),
    DailyChart("Unspent outputs", "ledger_totals", _sums(("outputs", "outputs")), running=True),
    DailyChart(
        "Ledger size", "ledger_outputs", _sums(("unspent outputs", "unspent_bytes")), "bytes", running=True
    ),
)
