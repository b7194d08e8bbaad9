"""Cells of the v1 table: every observation at its own time, and nothing that nobody observed."""

from __future__ import annotations

import json

from permalake.wormhole.events.families import SIGNATURES, VAA_STATE
from permalake.wormhole.events.signature_cells import TimedSignature, message_cells

NOON = 1_710_072_000_000_000
SECOND = 1_000_000
SIGNERS = [TimedSignature(index, f"{index:040x}", f"{index:0130x}", NOON) for index in (0, 2, 3)]


def seen(index: int, seconds: float) -> TimedSignature:
    return TimedSignature(index, f"{index:040x}", f"{index:0130x}", NOON + int(seconds * SECOND))


def cells(observed: list[TimedSignature]) -> tuple[dict[int, float], dict[float, list[int]]]:
    """Seconds after noon by guardian, and indices in the state by seconds after noon."""
    made = list(message_cells(4, NOON, SIGNERS, observed))
    signatures = {int(one.qualifier, 16): one for one in made if one.family == SIGNATURES}
    assert all(one.value == f"{index:0130x}" for index, one in signatures.items())
    states = [one for one in made if one.family == VAA_STATE]
    assert {one.qualifier for one in states} == {"Signatures:4"}
    assert len({one.micros for one in states}) == len(states), "cells of one column and time hide each other"
    lists = {(one.micros - NOON) / SECOND: json.loads(one.value) for one in states}
    assert all(one["signature"] == f"{one['index']:0130x}" for state in lists.values() for one in state)
    return (
        {index: (one.micros - NOON) / SECOND for index, one in signatures.items()},
        {second: [one["index"] for one in state] for second, state in lists.items()},
    )


def test_every_observation_has_its_time_whether_its_guardian_signed_the_vaa_or_not() -> None:
    observed = [seen(3, 4), seen(1, 2.5), seen(0, 1), seen(4, 9), seen(2, 3)]
    signatures, states = cells(observed)
    assert signatures == {0: 1, 1: 2.5, 2: 3, 3: 4, 4: 9}
    assert states == {1: [0], 2.5: [0, 1], 3: [0, 1, 2], 4: [0, 1, 2, 3], 9: [0, 1, 2, 3, 4]}


def test_without_observations_there_is_the_vaa_s_list_at_its_time_and_no_history() -> None:
    assert cells([]) == ({0: 0, 2: 0, 3: 0}, {0: [0, 2, 3]})


def test_a_signer_that_nobody_observed_is_at_the_vaa_s_time_and_its_list_comes_last() -> None:
    assert cells([seen(3, 1), seen(1, 2)]) == ({3: 1, 1: 2, 0: 0, 2: 0}, {1: [3], 2: [0, 2, 3]})
    # Clocks differ: observations may carry an earlier time than the block.
    assert cells([seen(3, -2)]) == ({3: -2, 0: 0, 2: 0}, {-2: [3], 0: [0, 2, 3]})


def test_observations_of_one_time_have_no_order() -> None:
    _, states = cells([seen(3, 1), seen(0, 1), seen(2, 2)])
    assert states == {1: [0, 3], 2: [0, 3, 2]}
