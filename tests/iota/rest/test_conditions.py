"""Unlock conditions in words."""

from __future__ import annotations

import pytest

from permalake.iota.rest.conditions import conditions_in_words
from permalake.web.numbers import CoinUnit

# The examples of TIP-11 and TIP-31: the same 32 bytes as an Ed25519, an alias and an NFT address.
HEX = "0xefdc112efe262b304bcf379b26c31bad029f616ee3ec4aa6345a366e4c9e43a3"
PERSON = {"type": 0, "pubKeyHash": HEX}
ALIAS = {"type": 8, "aliasId": HEX}
SMR = CoinUnit("SMR", 6)
AT = 1_660_000_000
WHEN = "2022-08-08 23:06:40 UTC"


def words(*conditions):
    return conditions_in_words({"type": 3, "unlockConditions": list(conditions)}, "smr", SMR)


@pytest.fixture
def key():
    """The address in words, from the first sentence of the simplest output."""
    [told] = words({"type": 0, "address": PERSON})
    assert told.endswith(" may unlock it.")
    return told.split()[0]


def test_an_owner(key) -> None:
    assert key.startswith("smr1qrhacyfwlcnzkvzteumekfkrrwks98mpdm37cj4xx3drvmjvnep6x")


def test_an_expiration_names_both_owners_and_the_time(key) -> None:
    alias = words({"type": 4, "address": ALIAS})[0].split()[0]
    told = words({"type": 0, "address": PERSON}, {"type": 3, "returnAddress": ALIAS, "unixTime": AT})
    assert told == [f"Before {WHEN} {key} may unlock it, from then on {alias} alone."]


def test_a_timelock_and_a_storage_deposit(key) -> None:
    told = words(
        {"type": 0, "address": PERSON},
        {"type": 2, "unixTime": AT},
        {"type": 1, "returnAddress": PERSON, "amount": "1000000"},
    )
    assert told[1:] == [
        f"Nobody may before {WHEN}.",
        f"Who receives it has to return 1.000000 SMR to {key}.",
    ]


def test_the_roles_of_an_alias_and_a_foundry(key) -> None:
    assert words({"type": 4, "address": PERSON}, {"type": 5, "address": PERSON}) == [
        f"{key} may change its state.",
        f"{key} may appoint who controls it, or destroy it.",
    ]
    [told] = words({"type": 6, "address": ALIAS})
    assert told.startswith("smr1pr")
    assert told.endswith(" alone may change it.")


def test_a_chrysalis_output_and_the_treasury() -> None:
    address = {"type": 0, "address": HEX.removeprefix("0x")}
    [told] = conditions_in_words({"type": 0, "address": address, "amount": 1}, "iota", SMR)
    # TIP-11 states this text for these bytes.
    assert told == "iota1qrhacyfwlcnzkvzteumekfkrrwks98mpdm37cj4xx3drvmjvnep6xqgyzyx may spend it."
    assert conditions_in_words({"type": 2, "amount": "1"}, "smr", SMR) == []
