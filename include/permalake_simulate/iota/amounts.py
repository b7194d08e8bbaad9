"""Amounts of the outputs of a synthetic transaction."""

from __future__ import annotations

from random import Random

# Less is dust on Chrysalis; on Stardust it covers the storage deposit of any output made here.
LEAST = 1_000_000


def split(rng: Random, total: int, count: int) -> list[int]:
    """Return ``count`` amounts of at least ``LEAST`` that add up to ``total``; the first gets the rest."""
    amounts = []
    for left in range(count - 1, 0, -1):
        most = total - left * LEAST
        amounts.append(LEAST + int((most - LEAST) * rng.random() ** 3) if most > LEAST else LEAST)
        total -= amounts[-1]
    return [total, *amounts]
