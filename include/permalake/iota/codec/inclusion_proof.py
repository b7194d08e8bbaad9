"""Proofs of inclusion: a milestone, a block or message, and what connects them (inx-poi 1.0, Hornet 1.2).

Three kinds: a Merkle proof of all referenced blocks (Stardust), a Merkle proof of the included transactions
(both protocols), and a path of messages (Chrysalis). The milestone's signatures make a proof independent of
whoever provides it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

from permalake.iota.codec.byte_reader import ByteReader, demand
from permalake.iota.codec.faults import DecodeError, Fault, json_shape
from permalake.iota.codec.from_json import pack_json_block, pack_json_milestone
from permalake.iota.codec.merkle import merkle_root
from permalake.iota.codec.merkle_proof import merkle_proof_json, proven_leaf
from permalake.iota.codec.milestones import (
    CHRYSALIS_MILESTONE,
    ApplicableKey,
    Milestone,
    decode_milestone,
    verify_signatures,
)
from permalake.iota.codec.outputs import Protocol
from permalake.iota.codec.to_json import block_json, milestone_payload_json

Json = dict[str, Any]
Body = Mapping[str, Any]
Root = Literal["inclusion", "applied"]
PATH_VERSION = 1
_PREFIX: dict[Protocol, str] = {"chrysalis": "", "stardust": "0x"}
_BLOCK: dict[Protocol, str] = {"chrysalis": "message", "stardust": "block"}


@dataclass(frozen=True)
class TrustedKeys:
    """The coordinator's keys, and how many of them must have signed a milestone."""

    keys: Sequence[ApplicableKey]
    threshold: int

    def __post_init__(self) -> None:
        if not self.keys or self.threshold < 1:
            raise ValueError("a proof needs coordinator keys and a threshold of at least 1")

    def signed(self, milestone: Milestone) -> bool:
        """Return whether enough of the keys, and no others, signed the milestone."""
        return not verify_signatures(milestone, self.keys, self.threshold)


def merkle_inclusion_proof(
    milestone: bytes, block: bytes, ids: Sequence[bytes], root: Root, protocol: Protocol
) -> Json:
    """Return the Merkle proof of a block.

    Args:
        milestone: The milestone payload with its type; on Chrysalis the message that carries it.
        block: The block or message.
        ids: The ids under the root, in white-flag order: all blocks that the milestone references, or those
            of included transactions.
        root: The root; Chrysalis has the applied one only.
        protocol: The protocol of both.

    Raises:
        ValueError: If the block is not among the ids, or the ids do not have the milestone's root.
    """
    if merkle_root(ids) != _root(_milestone_in(milestone, protocol), root):
        raise ValueError(f"the ids do not have the {root} root of the milestone")
    as_json = block_json if protocol == "chrysalis" else milestone_payload_json
    return {
        "milestone": as_json(milestone, protocol),
        _BLOCK[protocol]: block_json(block, protocol),
        "proof": merkle_proof_json(ids, ids.index(_id(block)), _PREFIX[protocol]),
    }


def is_valid_merkle_proof(body: Body, root: Root, protocol: Protocol, trusted: TrustedKeys) -> bool:
    """Return whether a Merkle proof holds: ids, root and signatures.

    Raises:
        MalformedJsonError: If the body has not the shape of such a proof.
    """
    with json_shape("proof"):
        pack_milestone = pack_json_block if protocol == "chrysalis" else pack_json_milestone
        as_json = block_json if protocol == "chrysalis" else milestone_payload_json
        raw = pack_milestone(body["milestone"], protocol)
        block = pack_json_block(body[_BLOCK[protocol]], protocol)
        leaf, proven = proven_leaf(body["proof"], _PREFIX[protocol])
    try:
        milestone = _milestone_in(raw, protocol)
        holds = leaf == _id(block) and proven == _root(milestone, root) and trusted.signed(milestone)
        return (
            holds
            and _is_same(body["milestone"], as_json(raw, protocol))
            and _is_same(body[_BLOCK[protocol]], block_json(block, protocol))
        )
    except DecodeError:
        return False


def proven_transaction(body: Body, protocol: Protocol) -> str:
    """Return the id of the transaction in the block of a proof, in hex.

    Raises:
        MalformedJsonError: If the body has not the shape of a proof.
    """
    with json_shape("proof"):
        block = pack_json_block(body[_BLOCK[protocol]], protocol)
    return _id(_payload(block, protocol)).hex()


def path_to_message(
    target: bytes, milestone_parents: Iterable[bytes], parents: Mapping[bytes, Sequence[bytes]]
) -> list[bytes]:
    """Return a shortest path of message ids from the child of ``target`` up to a parent of the milestone.

    Args:
        target: The message to prove; the path is empty if it is a parent of the milestone itself.
        milestone_parents: The milestone's parents.
        parents: The parents of every message that the milestone references.

    Raises:
        ValueError: If the milestone does not reference the message.
    """
    child: dict[bytes, bytes | None] = dict.fromkeys(milestone_parents)
    queue = list(child)
    for message in queue:
        if message == target:
            return list(_climb(child, target))
        for parent in parents.get(message, ()):
            if parent not in child:
                child[parent] = message
                queue.append(parent)
    raise ValueError(f"the milestone does not reference message {target.hex()}")


def _climb(child: Mapping[bytes, bytes | None], message: bytes) -> Iterable[bytes]:
    above = child[message]
    while above is not None:
        yield above
        above = child[above]


def path_proof(milestone: bytes, message: bytes, path: Sequence[bytes]) -> Json:
    """Return the path proof of a Chrysalis message.

    Args:
        milestone: The message that carries the milestone.
        message: The message to prove.
        path: The messages of :func:`path_to_message`.
    """
    return {
        "version": PATH_VERSION,
        "milestone": block_json(milestone, "chrysalis"),
        "message": block_json(message, "chrysalis"),
        "proof": [block_json(step, "chrysalis") for step in path],
    }


def is_valid_path_proof(body: Body, trusted: TrustedKeys) -> bool:
    """Return whether a path proof holds: each message has its predecessor as parent, the milestone the last.

    The network id and nonce of the milestone's message are not signed, so no proof covers them.

    Raises:
        MalformedJsonError: If the body has not the shape of such a proof.
    """
    with json_shape("proof"):
        bodies = [body["message"], *(body["proof"] or ()), body["milestone"]]
        steps = [pack_json_block(step, "chrysalis") for step in bodies]
        is_path_version = body["version"] == PATH_VERSION
    try:
        # Decoding checks that the milestone's message has the parents that were signed.
        milestone = _milestone_in(steps[-1], "chrysalis")
        read = [block_json(step, "chrysalis") for step in steps]
    except DecodeError:
        return False
    linked = all(
        _id(below).hex() in above["parentMessageIds"]
        for below, above in zip(steps[:-1], read[1:], strict=True)
    )
    return is_path_version and linked and all(map(_is_same, bodies, read)) and trusted.signed(milestone)


def _id(content: bytes) -> bytes:
    return blake2b(content, digest_size=32).digest()


def _milestone_in(raw: bytes, protocol: Protocol) -> Milestone:
    """Return the milestone of a payload, or on Chrysalis of the message around it."""
    if protocol == "stardust":
        return decode_milestone(raw, protocol)
    payload = _payload(raw, protocol)
    demand(payload[:4] == CHRYSALIS_MILESTONE.to_bytes(4, "little"), Fault.MILESTONE_KIND)
    return decode_milestone(payload, protocol)


def _payload(block: bytes, protocol: Protocol) -> bytes:
    """Return the payload of a block, behind its network or version and its parents."""
    reader = ByteReader(block)
    reader.take(8 if protocol == "chrysalis" else 1)
    reader.take(32 * reader.uint(1))
    return reader.take(reader.uint(4))


def _root(milestone: Milestone, root: Root) -> bytes | None:
    return milestone.applied_root if root == "applied" else milestone.inclusion_root


def _is_same(body: Any, canonical: Any) -> bool:
    """Return whether JSON says what its bytes say: packing ignores constants such as types and versions.

    Empty fields may be present or absent, hex may be upper-case, and numbers may be text.
    """
    if isinstance(canonical, dict):
        extra = (value for name, value in body.items() if name not in canonical)
        return all(value in (None, "", "0x", []) for value in extra) and all(
            _is_same(body.get(name), value) for name, value in canonical.items()
        )
    if isinstance(canonical, list):
        return len(body) == len(canonical) and all(map(_is_same, body, canonical))
    return str(body).lower() == str(canonical).lower()
