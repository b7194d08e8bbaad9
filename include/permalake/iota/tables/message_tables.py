"""Tables of messages: messages, parents, tags, transactions; from decoded rows in Arrow."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.iota.tables.decoded_columns import DecodedRows, hexed, shaped, spread

_VARIANTS = ("input", "output", "unlock")


def messages(blocks: DecodedRows) -> pa.Table:
    """Return ``messages``, in white-flag order within each milestone."""
    carried_over = (
        "version",
        "milestone_index",
        "white_flag_index",
        "inclusion_state",
        "conflict_reason",
        "date",
    )
    columns = {"message_id": blocks.message_id, "message": blocks["raw"]}
    return shaped("messages", columns | {name: blocks[name] for name in carried_over}, len(blocks))


def parents(blocks: DecodedRows) -> pa.Table:
    """Return ``parents``: one row per distinct (parent, message)."""
    named = blocks.elements("parents")
    code = pc.dictionary_encode(named.values).indices.to_numpy()
    pairs = named.row * (len(code) + 1) + code
    first = np.sort(np.unique(pairs, return_index=True)[1])
    columns = spread({"parent_id": named.values}, first)
    message_columns = {name: blocks[name] for name in ("milestone_index", "inclusion_state", "date")}
    columns |= spread(message_columns | {"message_id": blocks.message_id}, named.row[first])
    columns["parent_id"] = hexed(columns["parent_id"])
    return shaped("parents", columns, len(first))


def tags(blocks: DecodedRows) -> pa.Table:
    """Return ``tags``: indexation keys and tags, at top level or inside a transaction."""
    tagged = blocks.where(pc.is_valid(blocks["tag"]))
    message_columns = {name: tagged[name] for name in ("tag", "inclusion_state")}
    return shaped(
        "tags", message_columns | tagged.milestone() | {"message_id": tagged.message_id}, len(tagged)
    )


def transactions(blocks: DecodedRows) -> pa.Table:
    """Return ``transactions``: inputs, outputs and unlocks of every transaction, conflicting ones too."""
    paying = blocks.where(pc.is_valid(blocks["transaction_id"]))
    message_columns = {name: paying[name] for name in ("inclusion_state", "milestone_index", "date")}
    message_columns |= {"transaction_id": paying.transaction_id, "message_id": paying.message_id}
    parts = []
    for variant in _VARIANTS:
        elements = paying.elements(f"{variant}s")
        columns = {
            "idx": pa.array(elements.idx.astype(np.int32)),
            "variant": pa.repeat(variant, len(elements)),
            "data": paying.cut(elements.row, elements["start"], elements["length"]),
        }
        parts.append(shaped("transactions", columns | spread(message_columns, elements.row), len(elements)))
    return pa.concat_tables(parts)
