"""Options of milestones: receipts (TIP-17) and protocol parameters (TIP-29)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from permalake.iota.codec.byte_reader import ByteReader, ascending, demand
from permalake.iota.codec.faults import Fault
from permalake.iota.codec.outputs import ED25519, MAX_AMOUNT, TREASURY, Protocol

MAX_FUNDS = 127
MIN_DEPOSIT = 1_000_000
MAX_PARAMETERS = 8192
TREASURY_TRANSACTION = 4
TREASURY_INPUT = 1
RECEIPT_OPTION, PARAMETERS_OPTION = 0, 1
HASH_WIDTH, FUNDS_WIDTH = 49, 49 + 33 + 8


@dataclass(frozen=True)
class MigratedFunds:
    """Funds that a receipt mints: legacy bundle (49 bytes), Ed25519 address (32 bytes), base tokens."""

    tail_transaction_hash: bytes
    address_kind: int
    address: bytes
    deposit: int


@dataclass(frozen=True)
class Receipt:
    """A receipt: migrated funds, and the treasury output (by its milestone id) that pays for them."""

    migrated_at: int
    final: bool
    funds: tuple[MigratedFunds, ...]
    treasury_input: bytes
    treasury_output: int

    def outputs(self, protocol: Protocol) -> list[bytes]:
        """Return the raw outputs that it creates: single on Chrysalis (TIP-17), basic on Stardust."""
        raw = []
        for fund in self.funds:
            amount, owner = fund.deposit.to_bytes(8, "little"), bytes([fund.address_kind]) + fund.address
            # A basic output: no native tokens, one unlock condition (address), no features.
            stardust = b"\3" + amount + b"\0\1\0" + owner + b"\0"
            raw.append(b"\0" + owner + amount if protocol == "chrysalis" else stardust)
        return raw


@dataclass(frozen=True)
class ProtocolParameters:
    """Announced protocol parameters, in force from milestone ``target_index`` on."""

    target_index: int
    version: int
    parameters: bytes


def read_options(reader: ByteReader, index: int) -> tuple[Receipt | None, ProtocolParameters | None]:
    """Read the options of Stardust milestone ``index``."""
    receipt, parameters, previous = None, None, -1
    for _ in range(reader.uint(1)):
        kind = reader.uint(1)
        demand(kind in (RECEIPT_OPTION, PARAMETERS_OPTION), Fault.OPTION_KIND)
        demand(kind > previous, Fault.OPTION_ORDER)
        previous = kind
        if kind == RECEIPT_OPTION:
            receipt = read_receipt(reader)
            continue
        target, version, length = struct.unpack("<IBH", reader.take(7))
        demand(target > index and length <= MAX_PARAMETERS, Fault.PARAMETERS)
        parameters = ProtocolParameters(target, version, reader.take(length))
    return receipt, parameters


def read_receipt(reader: ByteReader) -> Receipt:
    """Read a receipt after its type."""
    migrated_at, final = reader.uint(4), reader.uint(1)
    demand(final <= 1, Fault.FLAG)
    count = reader.uint(2)
    demand(1 <= count <= MAX_FUNDS, Fault.RECEIPT_FUNDS)
    entries = reader.pieces(count, FUNDS_WIDTH)
    demand(ascending(entries), Fault.RECEIPT_ORDER)
    demand(len({entry[:HASH_WIDTH] for entry in entries}) == count, Fault.RECEIPT_DUPLICATE)
    funds = tuple(_funds(entry) for entry in entries)
    treasury = ByteReader(reader.take(reader.uint(4)))
    demand(bool(treasury.data), Fault.RECEIPT_TREASURY)
    demand(treasury.uint(4) == TREASURY_TRANSACTION, Fault.RECEIPT_TREASURY)
    demand(treasury.uint(1) == TREASURY_INPUT, Fault.TREASURY_KIND)
    spent = treasury.take(32)
    demand(treasury.uint(1) == TREASURY, Fault.TREASURY_KIND)
    amount = treasury.uint(8)
    demand(amount <= MAX_AMOUNT, Fault.OUTPUT_AMOUNT)
    treasury.finish(Fault.PAYLOAD_LENGTH)
    return Receipt(migrated_at, bool(final), funds, spent, amount)


def _funds(entry: bytes) -> MigratedFunds:
    deposit = int.from_bytes(entry[82:], "little")
    demand(entry[49] == ED25519, Fault.ADDRESS_KIND)
    demand(MIN_DEPOSIT <= deposit <= MAX_AMOUNT, Fault.RECEIPT_DEPOSIT)
    return MigratedFunds(entry[:HASH_WIDTH], entry[49], entry[50:82], deposit)
