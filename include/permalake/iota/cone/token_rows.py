"""Native tokens of the decoded frame: holdings of outputs, amounts that foundries mint, and metadata."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from permalake.arrays.decimal_text import to_decimal_text
from permalake.arrays.hexa import to_hex
from permalake.iota.codec.outputs import FOUNDRY, NFT, Addresses, Outputs
from permalake.iota.codec.token_metadata import NftMetadata, TokenMetadata, nft_metadata, token_metadata
from permalake.iota.cone.arrow_lists import (
    Lists,
    address_texts,
    binary_array,
    list_array,
    scatter,
    spread,
    struct_array,
)
from permalake.iota.cone.batch import MilestoneBatch
from permalake.iota.cone.decoded import NFT_METADATA, SCHEME, TOKEN, TOKEN_METADATA
from permalake.iota.cone.ledger_proof import SpentOutputs, output_ids, owners
from permalake.iota.cone.rules import ConeRules


def native_tokens(
    lists: Lists, batch: MilestoneBatch, ledger: SpentOutputs, rules: ConeRules
) -> pa.ListArray | None:
    """Return the native tokens that each row's transaction created and consumed; None if there are none.

    Those of transactions that are not included count for nothing, and are left out.
    """
    transactions, spent = batch.decoded.transactions, ledger.outputs
    parts, made = transactions.outputs, transactions.output
    created = np.flatnonzero((np.diff(made.native_token_offset) > 0) & ledger.included[parts.transaction])
    matched = np.flatnonzero(ledger.consumed >= 0)
    matched = matched[np.diff(spent.native_token_offset)[ledger.consumed[matched]] > 0]
    rows = ledger.consumed[matched]
    if not len(created) and not len(rows):
        return None
    ids = output_ids(transactions.transaction_id[parts.transaction[created]], parts.idx[created])
    held = (
        _TokenHolders(made, owners(made), created, ids, parts.transaction[created], is_spent=False),
        _TokenHolders(
            spent,
            ledger.owner,
            rows,
            ledger.output_id[rows],
            transactions.inputs.transaction[matched],
            is_spent=True,
        ),
    )
    per_output = [_tokens(list_of_tokens, rules.bech32_hrp) for list_of_tokens in held]
    transaction = np.concatenate([owner for owner, _ in per_output])
    order = np.argsort(transaction, kind="stable")
    count, at = lists.of(transaction[order])
    tokens = pa.concat_arrays([values for _, values in per_output]).take(pa.array(order[at]))
    return list_array(count, tokens, absent=count == 0)


class _TokenHolders(NamedTuple):
    """Outputs with native tokens: ``rows`` of ``outputs``, by whom they are held, with id and transaction."""

    outputs: Outputs
    holder: Addresses
    rows: np.ndarray
    output_id: np.ndarray
    transaction: np.ndarray
    is_spent: bool


def _tokens(held: _TokenHolders, hrp: str) -> tuple[np.ndarray, pa.StructArray]:
    """Return the transaction of each token that the outputs hold, and the tokens."""
    outputs, rows = held.outputs, held.rows
    count = np.diff(outputs.native_token_offset)[rows]
    token, of = spread(outputs.native_token_offset[rows], count), np.repeat(np.arange(len(rows)), count)
    place = pa.array(of)
    columns = {
        "is_spent": pa.array(np.full(len(of), held.is_spent)),
        "output_id": binary_array(held.output_id).take(place),
        "address": address_texts(held.holder, rows, hrp).take(place),
        "token_id": to_hex(outputs.native_token_id[token]),
        "amount": _decimal(outputs.native_token_amount[token]),
    }
    return held.transaction[of], struct_array(TOKEN, columns)


def token_schemes(batch: MilestoneBatch, ledger: SpentOutputs, rows: np.ndarray) -> pa.StructArray:
    """Return the token scheme of created foundries, among ``rows`` of the outputs, null for others.

    What a transaction minted and melted is the difference to the state of the foundry that it consumed.
    """
    transactions, outputs = batch.decoded.transactions, batch.decoded.transactions.output
    foundries = np.flatnonzero(outputs.kind[rows] == FOUNDRY)
    if not len(foundries):
        return pa.nulls(len(rows), SCHEME)
    foundry_rows = rows[foundries]
    transaction = transactions.outputs.transaction[foundry_rows]
    columns = {
        "minted": _decimal(outputs.minted[foundry_rows]),
        "melted": _decimal(outputs.melted[foundry_rows]),
        "maximum": _decimal(outputs.maximum[foundry_rows]),
    }
    before = _states_before(batch, ledger)
    keys = [
        (int(t), chain.tobytes())
        for t, chain in zip(transaction, outputs.chain_id[foundry_rows], strict=True)
    ]
    for name in ("minted", "melted"):
        earlier = [before.get(key, {}).get(name, 0) for key in keys]
        now = map(_integer, getattr(outputs, name)[foundry_rows])
        changes = [str(after - then) for after, then in zip(now, earlier, strict=True)]
        columns[f"newly_{name}"] = pa.array(changes, pa.string())
    return scatter(foundries, struct_array(SCHEME, columns), len(rows))


def _states_before(batch: MilestoneBatch, ledger: SpentOutputs) -> dict[tuple[int, bytes], dict[str, int]]:
    """Return what consumed foundries had minted and melted, by transaction and foundry id."""
    spent = ledger.outputs
    matched = np.flatnonzero(ledger.consumed >= 0)
    matched = matched[spent.kind[ledger.consumed[matched]] == FOUNDRY]
    rows = ledger.consumed[matched]
    transaction = batch.decoded.transactions.inputs.transaction[matched]
    return {
        (int(spender), spent.chain_id[row].tobytes()): {
            "minted": _integer(spent.minted[row]),
            "melted": _integer(spent.melted[row]),
        }
        for spender, row in zip(transaction, rows, strict=True)
    }


def described(outputs: Outputs, rows: np.ndarray) -> dict[str, pa.Array]:
    """Return the immutable metadata of NFTs and foundries among ``rows``, null for others."""
    nfts = np.flatnonzero(outputs.kind[rows] == NFT)
    foundries = np.flatnonzero(outputs.kind[rows] == FOUNDRY)
    of_nfts = [nft_metadata(raw) for raw in _immutable(outputs, rows[nfts])]
    of_tokens = [token_metadata(raw) for raw in _immutable(outputs, rows[foundries])]
    return {
        "nft": scatter(nfts, _structs(NFT_METADATA, of_nfts), len(rows)),
        "token": scatter(foundries, _structs(TOKEN_METADATA, of_tokens), len(rows)),
    }


def _immutable(outputs: Outputs, rows: np.ndarray) -> list[bytes]:
    starts, lengths = outputs.immutable_metadata_start[rows], outputs.immutable_metadata_length[rows]
    return [
        outputs.data[start : start + length].tobytes() for start, length in zip(starts, lengths, strict=True)
    ]


def _structs(kind: pa.StructType, metadata: list[NftMetadata] | list[TokenMetadata]) -> pa.StructArray:
    return pa.array([described_token._asdict() for described_token in metadata], kind)


def _decimal(words: np.ndarray) -> pa.StringArray:
    """Return the decimal text of little-endian words, u8[k, 32]."""
    return to_decimal_text(words[:, ::-1])


def _integer(word: np.ndarray) -> int:
    return int.from_bytes(word.tobytes(), "little")
