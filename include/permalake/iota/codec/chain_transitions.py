"""How an alias, foundry or NFT may be created, change and end (TIP-18; iota.go v3)."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from permalake.iota.codec.encode_outputs import NO_ID, Address, Output
from permalake.iota.codec.outputs import ALIAS, FOUNDRY

Chains = Mapping[tuple[int, bytes], Output]


def is_allowed(
    before: Output | None,
    after: Output | None,
    tokens: tuple[int, int],
    *,
    chains: tuple[Chains, Chains],
    outputs: Sequence[Output],
    unlocked: Container[Address],
) -> bool:
    """Return whether a chain may go from ``before`` to ``after``.

    Args:
        before: The consumed output; None for a new chain.
        after: The created output; None for a chain that ends.
        tokens: Sums of the foundry's tokens consumed and created.
        chains: The transaction's chains before and after, by kind and id.
        outputs: All outputs that the transaction creates.
        unlocked: The addresses that it unlocks.
    """
    if before is None and after is not None:
        return _is_born(after, tokens, chains, outputs, unlocked)
    if before is None or after is None:
        # Who may end an alias or NFT is a question of unlocks; a foundry must have melted all its tokens.
        return before is None or before.kind != FOUNDRY or _is_melted(before, tokens)
    if (before.issuer, before.immutable_metadata) != (after.issuer, after.immutable_metadata):
        return False
    if before.kind == ALIAS:
        if before.state_index == after.state_index:
            return _is_governed(before, after)
        return _is_controlled(before, after, chains[0], outputs)
    return before.kind != FOUNDRY or _is_minted(before, after, tokens)


def _is_born(
    new: Output,
    tokens: tuple[int, int],
    chains: tuple[Chains, Chains],
    outputs: Sequence[Output],
    unlocked: Container[Address],
) -> bool:
    if new.kind != FOUNDRY:
        return new.chain_id == NO_ID and (new.issuer is None or new.issuer in unlocked)
    alias = (ALIAS, new.address.value) if new.address else (ALIAS, NO_ID)
    earlier, later = chains[0].get(alias), chains[1].get(alias)
    if new.melted or new.minted != tokens[1] or earlier is None or later is None:
        return False
    if not earlier.foundry_counter < new.serial_number <= later.foundry_counter:
        return False
    return all(other.serial_number < new.serial_number for other in _new_before(new, chains[0], outputs))


def _new_before(new: Output, before: Chains, outputs: Sequence[Output]) -> list[Output]:
    """Return the new foundries of the same alias that precede ``new`` among the outputs."""
    foundries = [output for output in outputs if output.kind == FOUNDRY and output.address == new.address]
    fresh = [output for output in foundries if (FOUNDRY, foundry_id(output)) not in before]
    return fresh[: [foundry_id(output) for output in fresh].index(foundry_id(new))]


def foundry_id(foundry: Output) -> bytes:
    """Return alias address, serial number (u32 LE) and token scheme: 38 bytes."""
    owner = foundry.address.pack() if foundry.address else b""
    return owner + foundry.serial_number.to_bytes(4, "little") + b"\0"


def _is_governed(before: Output, after: Output) -> bool:
    """Return whether only controllers and metadata change, which is what a governor may change."""
    return all(
        getattr(before, name) == getattr(after, name)
        for name in ("amount", "native_tokens", "state_metadata", "foundry_counter")
    )


def _is_controlled(before: Output, after: Output, chains: Chains, outputs: Sequence[Output]) -> bool:
    """Return whether the change is one that a state controller may make; new foundries are counted."""
    kept = ("state_controller", "governor", "metadata")
    if any(getattr(before, name) != getattr(after, name) for name in kept):
        return False
    grown = after.foundry_counter - before.foundry_counter
    if after.state_index != before.state_index + 1 or grown < 0:
        return False
    new = (
        output
        for output in outputs
        if output.kind == FOUNDRY
        and output.address
        and output.address.value == after.chain_id
        and (FOUNDRY, foundry_id(output)) not in chains
    )
    return not grown or sum(1 for _ in new) == grown


def _is_minted(before: Output, after: Output, tokens: tuple[int, int]) -> bool:
    """Return whether counters only grow, by what was minted or melted; burning needs no counter."""
    minted, melted = after.minted - before.minted, after.melted - before.melted
    if before.maximum != after.maximum or minted < 0 or melted < 0:
        return False
    came, left = tokens
    if left > came:
        return minted == left - came and not melted
    return not minted and melted <= came - left


def _is_melted(last: Output, tokens: tuple[int, int]) -> bool:
    return last.minted + tokens[1] - tokens[0] == last.melted
