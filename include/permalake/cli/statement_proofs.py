"""The proofs behind a statement: milestones applied its transactions, guardians signed its messages."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence

from permalake.config.networks import NetworkSettings
from permalake.contracts.rows import Row
from permalake.contracts.sql_text import identifier, literal
from permalake.errors import PermalakeError

Ask = Callable[[str], list[Row]]
"""Answers a query of one published state with its rows as JSON values."""
MOST_PROOFS = 5_000
_MESSAGES = """
SELECT DISTINCT m.message_id, m.milestone_index, m.message
FROM {network}.messages AS m JOIN {network}.transactions AS t
    ON t.message_id = m.message_id AND t.milestone_index = m.milestone_index
WHERE m.inclusion_state = 1 AND t.inclusion_state = 1 AND t.transaction_id IN ({ids})
ORDER BY m.milestone_index, m.message_id
"""
_LEAVES = """
SELECT milestone_index, list(message_id ORDER BY white_flag_index) AS ids
FROM {network}.messages WHERE inclusion_state = 1 AND milestone_index IN ({milestones})
GROUP BY milestone_index
"""
_MILESTONES = """
SELECT s.milestone_index, s.payload, m.message AS carrier
FROM {network}.milestones AS s LEFT JOIN {network}.messages AS m ON m.message_id = s.message_id
WHERE s.milestone_index IN ({milestones})
"""
_VAAS = "SELECT row_key, signed_vaa FROM wormhole.quorum_state WHERE row_key IN ({ids})"
_README = """Account statement of {address} on {network}

statement.html   the statement, to read and print
statement.csv    the same rows
proofs/          {count} files, one per message that moved something

"""
_IOTA = """Each proofs/MESSAGE_ID.json holds a block, the milestone that applied its transaction, and a
Merkle proof. It shows that the transaction is part of the ledger, whoever made this file. To check one:

1. The block's bytes hash (BLAKE2b-256) to MESSAGE_ID; its payload is the transaction of the statement.
2. The Merkle proof leads from MESSAGE_ID to the {root} of the milestone.
3. The milestone is signed (Ed25519) by the network's coordinator. The keys must come from a source that you
   trust, not from here.

`permalake verify FILE.zip` does all three for every proof; so does a node with the plugin for proofs of
inclusion, or a Permalake's API, for one:
   curl -X POST -H 'Content-Type: application/json' -d @proofs/MESSAGE_ID.json \\
       http://HOST/api/poi/v1/{network}/{route}

{keys}
Rows without a transaction are receipts: their milestone itself created the output.
"""
_WORMHOLE = """Each proofs/CHAIN_EMITTER_SEQUENCE.vaa is a message with its guardians' signatures. To check:

1. Hash its body (after the signatures) twice with keccak256.
2. Every signature recovers to the guardian of that index in the guardian set that the message names; take the
   set from the Wormhole core contract of a chain that you trust.
3. At least two thirds of the set, rounded down, plus one have signed.

`permalake verify FILE.zip` does this for every message. The contract does the same for one:
parseAndVerifyVM(bytes) of Wormhole's core contract on any EVM chain.
"""


def iota_proofs(ask: Ask, network: str, settings: NetworkSettings, rows: Sequence[Row]) -> dict[str, bytes]:
    """Return the proof of every transaction of an IOTA statement, by file name."""
    from permalake.iota.codec.inclusion_proof import merkle_inclusion_proof

    ids = _checked({row["transaction_id"] for row in rows} - {None})
    if not ids:
        return {}
    schema = identifier(network)
    messages = ask(_MESSAGES.format(network=schema, ids=_texts(ids)))
    by_milestone: dict[int, list[Row]] = defaultdict(list)
    for message in messages:
        by_milestone[message["milestone_index"]].append(message)
    milestones = ", ".join(map(str, sorted(by_milestone)))
    leaves = {
        row["milestone_index"]: [bytes.fromhex(message_id) for message_id in row["ids"]]
        for row in ask(_LEAVES.format(network=schema, milestones=milestones))
    }
    column = "carrier" if settings.protocol == "chrysalis" else "payload"
    signed = {
        row["milestone_index"]: row[column]
        for row in ask(_MILESTONES.format(network=schema, milestones=milestones))
    }
    proofs = {}
    for index, proven_messages in by_milestone.items():
        if not signed.get(index):
            raise PermalakeError(f"milestone {index}: the lake does not hold what proves it")
        for message in proven_messages:
            proof = merkle_inclusion_proof(
                bytes.fromhex(signed[index]),
                bytes.fromhex(message["message"]),
                leaves[index],
                "applied",
                settings.protocol,
            )
            proofs[f"{message['message_id']}.json"] = json.dumps(proof, indent=1).encode()
    return proofs


def vaa_proofs(ask: Ask, rows: Sequence[Row]) -> dict[str, bytes]:
    """Return the signed message of every transfer of a Wormhole statement, by file name."""
    ids = _checked({row["row_key"] for row in rows})
    vaas = ask(_VAAS.format(ids=_texts(ids))) if ids else []
    return {f"{row['row_key'].replace(':', '_')}.vaa": bytes.fromhex(row["signed_vaa"]) for row in vaas}


def readme(network: str, address: str, count: int, settings: NetworkSettings | None) -> str:
    """Return what the archive holds and how to check it; ``settings`` of an IOTA network."""
    head = _README.format(address=address, network=network, count=count)
    if settings is None:
        return head + _WORMHOLE
    is_chrysalis = settings.protocol == "chrysalis"
    coordinator_keys = settings.coordinator_public_keys
    lines = [f"   {key.key} (milestones {key.start} to {key.end})" for key in coordinator_keys]
    keys = (
        "\n".join(["Keys that this lake was built with:", *lines]) if lines else "This lake has no keys set."
    )
    return head + _IOTA.format(
        network=network,
        root="Merkle root (Chrysalis) in the milestone" if is_chrysalis else "applied Merkle root",
        route="validate" if is_chrysalis else "applied-block/validate",
        keys=f"{keys}\n",
    )


def _checked(ids: set[str]) -> list[str]:
    if len(ids) > MOST_PROOFS:
        raise PermalakeError(
            f"--proofs: {len(ids):,} messages moved something, more than {MOST_PROOFS:,}; "
            "narrow it with --from and --to"
        )
    return sorted(ids)


def _texts(ids: Sequence[str]) -> str:
    """Return ids that were read from the lake, as a list in SQL."""
    return ", ".join(map(literal, ids))
