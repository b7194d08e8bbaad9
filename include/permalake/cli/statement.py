"""``permalake statement``: what an address gained and lost, in order of time."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from permalake.cli.output import FORMAT_HELP, Format, Screen
from permalake.cli.query import QueryOrder, answered, print_answer
from permalake.config import Settings, load_settings
from permalake.contracts.sql_text import identifier
from permalake.errors import ConfigError
from permalake.query_process import DEFAULT_LIMITS

_ADDRESS = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_WORMHOLE = "wormhole"
_BALANCES = """
    SELECT * FROM {network}.account_statement
    WHERE address = '{address}' AND date BETWEEN '{first}' AND '{last}'
    ORDER BY milestone_index, cause
"""
_SENT = """
    SELECT timestamp AS "time", row_key, transaction_id, '{side}' AS side, emitter_chain_name,
        target_chain_name, symbol, {sign}amount AS amount, {sign}notional_usd AS notional_usd,
        reason AS no_value_because, {other} AS counterparty, origin_chain_name, origin_address
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
    """Print the account statement of an address: signed amounts, balance, counterparties, times in UTC.

    IOTA: the rows of the view account_statement, amounts in coins, native tokens beside them, each balance
    that after the milestone. Where the lake begins in the middle, a
    balance is at least the one that is told, since since_milestone. Wormhole: token transfers that the
    address sent (below zero) or that name it as receiver, with their value in USD at the time.

    Examples:
      permalake statement smr1qzyg…

      permalake statement smr1qzyg… --html statement.html --proofs statement.zip

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
    order = QueryOrder(settings, _statement(name, days), None, DEFAULT_LIMITS, form, Screen.of(sys.stdout))
    if html is None and proofs is None:
        print_answer(order)
        return
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

    def ask(sql: str) -> list[dict[str, Any]]:
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
        return _BALANCES.format(network=identifier(network), **values)
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
