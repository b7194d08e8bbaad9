"""``permalake statement``: what an address gained and lost, in order of time."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from permalake.cli.output import FORMAT_HELP, Format, Screen
from permalake.cli.query import QueryOrder, answered, print_answer
from permalake.config import Settings, load_settings
from permalake.contracts.rows import Row
from permalake.contracts.sql_text import identifier, literal
from permalake.errors import ConfigError
from permalake.query_process import DEFAULT_LIMITS

_ADDRESS = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_WORMHOLE = "wormhole"
_BALANCES = """
    SELECT * FROM {network}.account_statement
    WHERE address IN ({addresses}) AND date BETWEEN '{first}' AND '{last}'
    ORDER BY milestone_index, cause, address
"""
_SENT = """
    SELECT {named}timestamp AS "time", row_key, transaction_id, '{side}' AS side, emitter_chain_name,
        target_chain_name, symbol, {sign}amount AS amount, {sign}notional_usd AS notional_usd,
        token_price_usd, price_source, reason AS no_value_because,
        {sign}stand_in_notional_usd AS stand_in_notional_usd,
        stand_in_price_usd, stand_in, {other} AS counterparty, origin_chain_name, origin_address
    FROM wormhole.priced_transfers
    WHERE {compared} IN ({addresses}) AND date BETWEEN '{first}' AND '{last}'
"""


def command(  # noqa: PLR0917
    addresses: Annotated[
        list[str],
        typer.Argument(metavar="ADDRESS...", help="bech32, or a chain's own form; several of one network."),
    ],
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
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write it as a page to print.")
    ] = None,
    proofs: Annotated[
        Path | None,
        typer.Option(
            "--proofs",
            metavar="FILE.zip",
            help="Write it with the proof of every message that moved something, and how to check them.",
        ),
    ] = None,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Print the account statement of addresses: signed amounts, balance, counterparties, times in UTC.

    On IOTA networks: the rows of the view account_statement. Amounts are in coins, native tokens have a
    column of their own, and each balance is that after the milestone. If the lake does not start at genesis,
    a balance is a lower bound, valid from since_milestone on.

    On Wormhole: token transfers that the address sent (negative amounts) or received, with their value in USD
    at that time. A value from a stand-in price has a column of its own.

    With several addresses, each row names its address; --html and --proofs take one address.

    Examples:
      permalake statement smr1qzyg…

      permalake statement smr1qzyg… --html statement.html --proofs statement.zip

      permalake statement smr1qzyg… smr1qpnr… --from 2023-01-01 --to 2023-12-31

      permalake statement 0x98f3c9e6… --from 2023-01-01 --to 2023-12-31 --format sheet
    """
    for address in addresses:
        if not _ADDRESS.fullmatch(address):
            raise ConfigError(f"{address}: not an address")
    if first and last and last < first:
        raise ConfigError("--to is the last day; it comes before --from")
    settings = load_settings(config)
    name = network or _only_network(addresses, settings)
    days = {"first": first.date() if first else date.min, "last": last.date() if last else date.max}
    sql = _statement(name, addresses, days)
    order = QueryOrder(settings, sql, None, DEFAULT_LIMITS, form, Screen.of(sys.stdout))
    if html is None and proofs is None:
        print_answer(order)
        return
    if len(addresses) > 1:
        raise ConfigError("--html and --proofs are of one address; call the command for each")
    [address] = addresses
    # Rows and proofs are of one published state.
    _write_files(replace(order, as_of=datetime.now(UTC)), name, (address, first, last), html, proofs)


def _write_files(
    order: QueryOrder,
    network: str,
    asked: tuple[str, datetime | None, datetime | None],
    html: Path | None,
    proofs: Path | None,
) -> None:
    """Write the statement of an address as a page, as an archive with its proofs, or both."""
    from permalake.cli import statement_files, statement_proofs

    def ask(sql: str) -> list[Row]:
        return answered(replace(order, sql=sql))

    rows = ask(f"{order.sql} LIMIT {statement_files.MOST_ROWS + 1}")
    statement_files.check_size(rows)
    address, first, last = asked
    section = None if network == _WORMHOLE else order.settings.network(network)
    ticker = _ticker(order.settings, network)
    statement = statement_files.Statement(network, address, _day(first), _day(last), ticker, rows)
    if html is not None:
        statement_files.write_page(statement, html)
        sys.stderr.write(f"{html}: {len(rows)} rows\n")
    if proofs is not None:
        files = (
            statement_proofs.vaa_proofs(ask, rows)
            if section is None
            else statement_proofs.iota_proofs(ask, network, section, rows)
        )
        readme = statement_proofs.readme(network, address, len(files), section)
        statement_files.write_archive(statement, files, readme, proofs)
        sys.stderr.write(f"{proofs}: {len(rows)} rows, {len(files)} proofs\n")


def _ticker(settings: Settings, network: str) -> str | None:
    """Return the ticker of a network's coin; None on Wormhole."""
    from permalake.domains import domain_of

    coin = None if network == _WORMHOLE else domain_of(network).coin_of(settings, network)
    return coin.ticker if coin else None


def _day(moment: datetime | None) -> str | None:
    return moment.date().isoformat() if moment else None


def _only_network(addresses: Sequence[str], settings: Settings) -> str:
    """Return the network that all addresses are of."""
    names = {_network_of(address, settings) for address in addresses}
    if len(names) > 1:
        raise ConfigError(f"a statement is of one network; these addresses are of {', '.join(sorted(names))}")
    return names.pop()


def _network_of(address: str, settings: Settings) -> str:
    """Return the network whose prefix the address has; Wormhole's chains have all the others."""
    prefix = address.rpartition("1")[0]
    named = [name for name, network in settings.networks.items() if network.bech32_hrp == prefix]
    if len(named) > 1:
        raise ConfigError(
            f"{address}: several networks have its prefix; choose with --network: {', '.join(named)}"
        )
    return named[0] if named else _WORMHOLE


def _statement(network: str, addresses: Sequence[str], days: Mapping[str, date]) -> str:
    if network != _WORMHOLE:
        listed = ", ".join(map(literal, addresses))
        return _BALANCES.format(network=identifier(network), addresses=listed, **days)
    # Hex may be written in any case; base58 may not.
    spelled = [address.lower() if address.startswith("0x") else address for address in addresses]
    sides = {"sent": ("-", "sender_address", "receiver_address")}
    sides["received"] = ("", "receiver_address", "sender_address")
    parts = []
    for side, (sign, own_column, other) in sides.items():
        compared = f"CASE WHEN {own_column} ILIKE '0x%' THEN lower({own_column}) ELSE {own_column} END"
        parts.append(
            _SENT.format(
                named=f"{own_column} AS address, " if len(addresses) > 1 else "",
                side=side,
                sign=sign,
                other=other,
                compared=compared,
                addresses=", ".join(map(literal, spelled)),
                **days,
            )
        )
    return f'{" UNION ALL ".join(parts)} ORDER BY "time", row_key, side'
