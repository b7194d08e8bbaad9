"""Unlock conditions of outputs in words (TIP-18 on Stardust, TIP-7 on Chrysalis)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from permalake.iota.codec.bech32 import encode_addresses
from permalake.iota.codec.json_stardust import ADDRESS_NAMES
from permalake.iota.codec.unlock_conditions import (
    ADDRESS,
    EXPIRATION,
    GOVERNOR,
    IMMUTABLE_ALIAS,
    STATE_CONTROLLER,
    STORAGE_RETURN,
    TIMELOCK,
)
from permalake.web.numbers import CoinUnit, coins

Json = dict[str, Any]


def bech32_of(kind: int, value: str, hrp: str) -> str:
    """Return the bech32 text of an address type and its 32 bytes in hex."""
    raw = np.frombuffer(bytes.fromhex(value.removeprefix("0x")), np.uint8).reshape(1, 32)
    encoded: str = encode_addresses(hrp, np.array([kind], np.int16), raw)[0].as_py()
    return encoded


def conditions_in_words(output: Json, hrp: str, coin: CoinUnit) -> list[str]:
    """Return who may unlock an output and when, a sentence each.

    ``output``: its JSON as nodes answer it; without conditions for the treasury. ``coin``: of its amounts.
    """
    if "unlockConditions" not in output:
        address = output.get("address")
        return [f"{_text(address, hrp)} may spend it."] if address else []
    conditions = {condition["type"]: condition for condition in output["unlockConditions"]}
    return [*_owner(conditions, hrp), *_limits(conditions, hrp, coin), *_roles(conditions, hrp)]


def _text(address: Json, hrp: str) -> str:
    # Chrysalis has one name for the hex of an address, Stardust one for each type.
    value = address.get("address") or address[ADDRESS_NAMES[address["type"]]]
    return bech32_of(address["type"], value, hrp)


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _owner(conditions: dict[int, Json], hrp: str) -> list[str]:
    if ADDRESS not in conditions:
        return []
    owner = _text(conditions[ADDRESS]["address"], hrp)
    if EXPIRATION not in conditions:
        return [f"{owner} may unlock it."]
    expiry = conditions[EXPIRATION]
    back = _text(expiry["returnAddress"], hrp)
    return [f"Before {_time(expiry['unixTime'])} {owner} may unlock it, from then on {back} alone."]


def _limits(conditions: dict[int, Json], hrp: str, coin: CoinUnit) -> list[str]:
    limits = []
    if TIMELOCK in conditions:
        limits.append(f"Nobody may before {_time(conditions[TIMELOCK]['unixTime'])}.")
    if STORAGE_RETURN in conditions:
        back = conditions[STORAGE_RETURN]
        amount = coins(back["amount"], coin)
        limits.append(f"Who receives it has to return {amount} to {_text(back['returnAddress'], hrp)}.")
    return limits


def _roles(conditions: dict[int, Json], hrp: str) -> list[str]:
    roles = (
        (STATE_CONTROLLER, "may change its state."),
        (GOVERNOR, "may appoint who controls it, or destroy it."),
        (IMMUTABLE_ALIAS, "alone may change it."),
    )
    return [f"{_text(conditions[kind]['address'], hrp)} {what}" for kind, what in roles if kind in conditions]
