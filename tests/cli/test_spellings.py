"""What a query that found nothing is told of its words."""

from __future__ import annotations

from permalake.cli.spellings import spelled_otherwise


def test_a_word_in_another_case_is_named() -> None:
    sql = "SELECT * FROM wormhole.chains WHERE name = 'Solana' OR name IN ('ethereum', 'Solana')"
    assert spelled_otherwise(sql) == ["no rows: the lake writes 'solana', not 'Solana'"]
    assert spelled_otherwise("SELECT 1 WHERE status = 'Completed'") == [
        "no rows: the lake writes 'completed', not 'Completed'"
    ]


def test_other_words_are_left_alone() -> None:
    assert spelled_otherwise("SELECT 'my tag', 'solana', ''") == []
