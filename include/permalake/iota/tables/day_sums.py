"""Sums of decoded rows that a day's analytics need and no base table holds; in Arrow, inside Spark's tasks.

Each group of milestones gives rows of its own, so that whoever reads them adds them up by their keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.cursor import I64
from permalake.arrays.elements import Elements
from permalake.iota.codec.outputs import TREASURY
from permalake.iota.cone.source_records import InclusionState
from permalake.iota.contracts.ledger_changes import CONDITIONS, KEY_BYTES, KEY_WEIGHT, METADATA_BYTES, SIDES
from permalake.iota.tables.decoded_columns import DecodedRange, DecodedRows, spread
from permalake.iota.tables.output_tables import kind_names
from permalake.iota.tables.transaction_activity import sums

_TREASURY_BYTES = 9
_HOLDS = {
    "timelock": "timelock_time",
    "expiration": "expiration_time",
    "storage_deposit_return": "storage_return_amount",
}
_BEFORE_DELIMITER = re.compile(r"[^:;,/|_.#@+=~\-\s]+", re.ASCII)

TAG_SUMS = pa.schema(
    [
        ("date", pa.date32()),
        ("tag", pa.string()),
        ("text", pa.string()),
        ("family", pa.string()),
        ("messages", pa.int64()),
        ("included_transactions", pa.int64()),
        ("transferred_tokens", pa.int64()),
    ]
)
LEDGER_SUMS = pa.schema(
    [
        ("date", pa.date32()),
        ("kind", pa.string()),
        ("side", pa.string()),
        ("count", pa.int64()),
        ("amount", pa.int64()),
        ("bytes", pa.int64()),
        *((f"{name}_{measure}", pa.int64()) for name in CONDITIONS for measure in ("count", "amount")),
        ("returned", pa.int64()),
        ("deposit", pa.int64()),
    ]
)
BALANCE_CORRECTIONS = pa.schema([("date", pa.date32()), ("address", pa.string()), ("change", pa.int64())])

SUMS = {
    "tag_sums": TAG_SUMS,
    "ledger_sums": LEDGER_SUMS,
    "balance_corrections": BALANCE_CORRECTIONS,
}
"""Schemas of the sums by name."""


def day_sums(rows: DecodedRange, v_byte_cost: int | None) -> Iterator[tuple[str, pa.Table]]:
    """Yield the sums of whole milestones, by name (:data:`SUMS`); those without rows are left out.

    ``v_byte_cost``: rent per weighted byte in base tokens (TIP-19); ``deposit`` is null without it.
    """
    made = {
        "tag_sums": tag_sums(rows.blocks),
        "ledger_sums": ledger_sums(rows.included, rows.receipts, v_byte_cost),
        "balance_corrections": balance_corrections(rows.included, rows.receipts),
    }
    for name, produced in made.items():
        if produced.num_rows:
            yield name, produced


def tag_sums(blocks: DecodedRows) -> pa.Table:
    """Return messages, included transactions and their outputs' tokens by date and tag (hex).

    ``text`` is the tag as text, null where its bytes are no UTF-8 or hold control characters; ``family`` the
    text before its first delimiter, empty without text.
    """
    tagged = blocks.where(pc.is_valid(blocks["tag"]))
    included = pc.fill_null(pc.equal(tagged["inclusion_state"], int(InclusionState.INCLUDED)), False)
    created = tagged.elements("outputs")
    tokens = sums(created.row, created["amount"].to_numpy(), len(tagged))
    rows = pa.table(
        {
            "date": tagged["date"],
            "tag": tagged["tag"],
            "included_transactions": included.cast(pa.int64()),
            "transferred_tokens": np.where(included.to_numpy(zero_copy_only=False), tokens, 0),
        }
    )
    added = rows.group_by(["date", "tag"], use_threads=False).aggregate(
        [([], "count_all"), ("included_transactions", "sum"), ("transferred_tokens", "sum")]
    )
    texts = [tag_text(tag) for tag in added["tag"].to_pylist()]
    families = [tag_family(text) for text in texts]
    columns = [added["date"], added["tag"], pa.array(texts, pa.string()), pa.array(families, pa.string())]
    counted = ("count_all", "included_transactions_sum", "transferred_tokens_sum")
    return pa.table([*columns, *(added[name] for name in counted)], schema=TAG_SUMS)


def tag_text(tag: str) -> str | None:
    """Return the text that a tag (hex) spells; None where it is no UTF-8 or holds control characters."""
    try:
        text = bytes.fromhex(tag).decode()
    except UnicodeDecodeError:
        return None
    return None if any(char < " " or char == "\x7f" for char in text) else text


def tag_family(text: str | None) -> str:
    """Return the text before the first delimiter, or white space."""
    match = _BEFORE_DELIMITER.match(text or "")
    return match[0] if match else ""


def ledger_sums(included: DecodedRows, receipts: DecodedRows, v_byte_cost: int | None) -> pa.Table:
    """Return what transactions and receipts create and consume, by date, kind of output and side."""
    parts = [
        _outputs(included, included.elements(column), side)
        for column, side in zip(("outputs", "consumed"), SIDES, strict=True)
    ]
    return ledger_sums_of(pa.concat_tables([*parts, *_of_receipts(receipts)]), v_byte_cost)


def ledger_sums_of(moves: pa.Table, v_byte_cost: int | None) -> pa.Table:
    """Return the sums of outputs by kind and side.

    ``moves`` are outputs with ``date``, ``kind``, ``side``, ``amount``, ``length`` (bytes) and the fields of
    unlock conditions. An output weighs its id as key, its bytes and its metadata as data (TIP-19). Its
    storage deposit is the rent for that weight, at most its amount.
    """
    weight = pc.add(moves["length"], KEY_WEIGHT * KEY_BYTES + METADATA_BYTES)
    rent = pc.multiply(weight, pa.scalar(v_byte_cost, pa.int64()))
    deposit = pc.if_else(pc.is_valid(rent), pc.min_element_wise(rent, moves["amount"]), None)
    columns = {name: moves[name] for name in ("date", "kind", "side", "amount")}
    columns |= {"bytes": moves["length"], "deposit": deposit.cast(pa.int64())}
    for condition, field in _HOLDS.items():
        holds = pc.greater(moves[field], 0)
        columns[f"{condition}_count"] = holds.cast(pa.int64())
        columns[f"{condition}_amount"] = pc.if_else(holds, moves["amount"], 0)
    columns["returned"] = moves["storage_return_amount"]
    keys = ("date", "kind", "side")
    measures = [name for name in LEDGER_SUMS.names if name not in (*keys, "count")]
    added = (
        pa.table(columns)
        .group_by(list(keys), use_threads=False)
        .aggregate([([], "count_all"), *((name, "sum") for name in measures)])
    )
    renamed = {"count": "count_all"} | {name: f"{name}_sum" for name in measures}
    return pa.table([added[renamed.get(name, name)] for name in LEDGER_SUMS.names], schema=LEDGER_SUMS)


def balance_corrections(included: DecodedRows, receipts: DecodedRows) -> pa.Table:
    """Return changes of balances that ``address_analytics`` lacks.

    An expired output belonged to its first owner, whoever unlocked it; receipts pay without a transaction.
    """
    spent = included.elements("consumed")
    spent = spent.where(pc.is_valid(spent["owner"]).to_numpy(zero_copy_only=False))
    funds = Elements(pc.struct_field(receipts["receipt"], "funds"))
    amount = spent["amount"]
    changes = (
        (included, spent, spent["address"], amount),
        (included, spent, spent["owner"], pc.negate(amount)),
        (receipts, funds, funds["address"], funds["amount"]),
    )
    parts = [
        pa.table([*spread({"date": rows["date"]}, at.row).values(), address, change], BALANCE_CORRECTIONS)
        for rows, at, address, change in changes
    ]
    return pa.concat_tables(parts)


def _outputs(rows: DecodedRows, outputs: Elements, side: str) -> pa.Table:
    fields = ("kind", "amount", "length", *_HOLDS.values())
    columns = {name: outputs[name] for name in fields}
    return _moves(rows["date"], outputs.row, side, columns)


def _of_receipts(receipts: DecodedRows) -> Iterator[pa.Table]:
    """Yield the funds that receipts create, and the treasury before and after."""
    receipt = receipts["receipt"]
    funds = Elements(pc.struct_field(receipt, "funds"))
    columns = {
        "kind": funds["kind"],
        "amount": funds["amount"],
        "length": pc.binary_length(funds["data"]),
    }
    yield _moves(receipts["date"], funds.row, SIDES[0], columns)
    left = pc.struct_field(receipt, "treasury_output")
    deposits = sums(funds.row, funds["amount"].to_numpy(), len(receipts))
    every = np.arange(len(receipts))
    for side, amount in zip(SIDES, (left, pc.add(left, pa.array(deposits))), strict=True):
        treasury = {
            "kind": pa.repeat(pa.scalar(TREASURY, pa.int8()), len(receipts)),
            "amount": amount,
            "length": pa.repeat(_TREASURY_BYTES, len(receipts)),
        }
        yield _moves(receipts["date"], every, side, treasury)


def _moves(date: pa.Array, row: I64, side: str, outputs: dict[str, pa.Array]) -> pa.Table:
    nothing = pa.repeat(pa.scalar(0, pa.int64()), len(row))
    numbers = {name: outputs.get(name, nothing).cast(pa.int64()) for name in ("amount", "length")}
    numbers |= {name: outputs.get(name, nothing).cast(pa.int64()) for name in _HOLDS.values()}
    named = spread({"date": date}, row) | {
        "kind": kind_names(outputs["kind"]),
        "side": pa.repeat(side, len(row)),
    }
    return pa.table(named | numbers)
