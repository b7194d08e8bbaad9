"""``permalake statement``: what an address gained and lost, in order of time."""

from __future__ import annotations

import re
import sys
from datetime import date, datetime
from typing import Annotated

import typer

from permalake.cli.output import FORMAT_HELP, Format, Screen
from permalake.cli.query import QueryOrder, print_answer
from permalake.config import Settings, load_settings
from permalake.errors import ConfigError
from permalake.query_process import DEFAULT_LIMITS

_ADDRESS = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_WORMHOLE = "wormhole"
_BALANCES = """
    SELECT ms_timestamp AS "time", milestone_index, transaction_id, amount, balance, counterparties,
        amount_base, balance_base, since_milestone
    FROM {network}.account_statement WHERE address = '{address}' AND date BETWEEN '{first}' AND '{last}'
    ORDER BY milestone_index, cause
"""
_SENT = """
    SELECT timestamp AS "time", row_key, '{side}' AS side, emitter_chain_name, target_chain_name, symbol,
        {sign}amount AS amount, {sign}notional_usd AS notional_usd, reason AS no_value_because,
        {other} AS counterparty, origin_chain_name, origin_address
    FROM wormhole.priced_transfers
    WHERE {own} = '{address}' AND date BETWEEN '{first}' AND '{last}'
"""


def command(  # noqa: PLR0917
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="bech32, or a chain's own form.")],
    network: Annotated[
        str | None, typer.Option(metavar="N", help="Network; without it, by the address's form.")
    ] = None,
    first: Annotated[
        datetime | None,
        typer.Option(
            "--from", formats=["%Y-%m-%d"], metavar="D", help="First day; without it, the first one."
        ),
    ] = None,
    last: Annotated[
        datetime | None,
        typer.Option("--to", formats=["%Y-%m-%d"], metavar="D2", help="Last day; without it, the last one."),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help=FORMAT_HELP)] = "csv",
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Print the account statement of an address: signed amounts, balance, counterparties, times in UTC.

    IOTA: amounts in coins, each balance that after the milestone. Where the lake begins in the middle, a
    balance is at least the one that is told, since since_milestone. Wormhole: token transfers that the
    address sent (below zero) or that name it as receiver, with their value in USD at the time.

    Examples:
      permalake statement smr1qzyg…

      permalake statement 0x98f3c9e6… --from 2023-01-01 --to 2023-12-31 --format sheet
    """
    if not _ADDRESS.fullmatch(address):
        raise ConfigError(f"{address}: not an address")
    if first and last and last < first:
        raise ConfigError("--to is the last day; it comes before --from")
    settings = load_settings(config)
    name = network or _network_of(address, settings)
    days = {
        "first": first.date() if first else date.min,
        "last": last.date() if last else date.max,
        "address": address,
    }
    print_answer(
        QueryOrder(settings, _statement(name, days), None, DEFAULT_LIMITS, form, Screen.of(sys.stdout))
    )


def _network_of(address: str, settings: Settings) -> str:
    """Return the network whose prefix the address has; Wormhole's chains have all the others."""
    prefix = address.rpartition("1")[0]
    named = [name for name, network in settings.networks.items() if network.bech32_hrp == prefix]
    if len(named) > 1:
        raise ConfigError(
            f"{address}: several networks have its prefix; choose with --network: {', '.join(named)}"
        )
    return named[0] if named else _WORMHOLE


def _statement(network: str, values: dict[str, object]) -> str:
    if network != _WORMHOLE:
        quoted = '"' + network.replace('"', '""') + '"'
        return _BALANCES.format(network=quoted, **values)
    # Hex may be written in any case; base58 may not.
    given = str(values["address"])
    is_hex = given.startswith("0x")
    values = {**values, "address": given.lower() if is_hex else given}
    sides = {"sent": ("-", "sender_address", "receiver_address")}
    sides["received"] = ("", "receiver_address", "sender_address")
    parts = (
        _SENT.format(side=side, sign=sign, own=f"lower({own})" if is_hex else own, other=other, **values)
        for side, (sign, own, other) in sides.items()
    )
    return f'{" UNION ALL ".join(parts)} ORDER BY "time", row_key, side'
