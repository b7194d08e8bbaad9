"""Hypothesis strategies for well-formed structures of both protocols."""

from __future__ import annotations

from hypothesis import assume
from hypothesis import strategies as st

from permalake.iota.codec.encode import (
    MilestoneDraft,
    ReferenceUnlock,
    SignatureUnlock,
    TaggedData,
    Transaction,
)
from permalake.iota.codec.encode_outputs import Address, NativeToken, Output, pack_output
from permalake.iota.codec.outputs import ALIAS, BASIC, DUST_ALLOWANCE, FOUNDRY, NFT, SINGLE
from permalake.iota.codec.receipts import MigratedFunds, ProtocolParameters, Receipt

PROTOCOLS = ("chrysalis", "stardust")
u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
u256 = st.integers(0, 2**256 - 1)
times = st.integers(1, 2**32 - 1)
ids = st.binary(min_size=32, max_size=32)
addresses = st.builds(Address, st.sampled_from([0, 8, 16]), ids)
ed25519 = st.builds(Address, st.just(0), ids)
amounts = st.integers(1, 10**13)
metadata = st.just(b"") | st.binary(min_size=1, max_size=40)
tags = st.binary(max_size=64)
parents = st.sets(ids, min_size=1, max_size=8).map(lambda found: tuple(sorted(found)))
optional_address = st.none() | addresses


@st.composite
def native_tokens(draw):
    found = draw(st.dictionaries(st.binary(min_size=38, max_size=38), st.integers(1, 2**256 - 1), max_size=3))
    return tuple(NativeToken(token, found[token]) for token in sorted(found))


@st.composite
def supplies(draw):
    maximum = draw(st.integers(1, 2**256 - 1))
    melted = draw(st.integers(0, 2**256 - 1 - maximum))
    return {"maximum": maximum, "melted": melted, "minted": melted + draw(st.integers(0, maximum))}


@st.composite
def stardust_outputs(draw):
    kind, amount = draw(st.sampled_from([BASIC, ALIAS, FOUNDRY, NFT])), draw(amounts)
    common = {
        "kind": kind,
        "amount": amount,
        "native_tokens": draw(native_tokens()),
        "metadata": draw(metadata),
    }
    if kind in (BASIC, NFT):
        common |= {
            "address": draw(addresses),
            "storage_return": draw(st.none() | st.tuples(addresses, st.integers(1, amount))),
            "timelock": draw(st.just(0) | times),
            "expiration": draw(st.none() | st.tuples(addresses, times)),
            "sender": draw(optional_address),
            "tag": draw(tags),
        }
    if kind in (ALIAS, NFT):
        chain_id = draw(st.just(bytes(32)) | ids)
        common |= {"chain_id": chain_id, "issuer": draw(optional_address)}
    if kind == ALIAS:
        new = chain_id == bytes(32)
        common |= {
            "state_controller": draw(addresses),
            "governor": draw(addresses),
            "sender": draw(optional_address),
            "state_index": 0 if new else draw(u32),
            "foundry_counter": 0 if new else draw(u32),
            "state_metadata": draw(metadata),
        }
    if kind == FOUNDRY:
        alias = draw(ids.map(lambda value: Address(8, value)))
        common |= {"address": alias, "serial_number": draw(u32)} | draw(supplies())
    if kind != BASIC:
        common["immutable_metadata"] = draw(metadata)
    if kind in (ALIAS, NFT):
        owners = (common.get(name) for name in ("address", "state_controller", "governor"))
        assume(chain_id not in {owner.value for owner in owners if owner})  # none may own itself
    return Output(**common)


@st.composite
def chrysalis_outputs(draw):
    kind = draw(st.sampled_from([SINGLE, DUST_ALLOWANCE]))
    least = 1_000_000 if kind == DUST_ALLOWANCE else 1
    return Output(kind=kind, amount=draw(st.integers(least, 10**12)), address=draw(ed25519))


def outputs(protocol):
    return chrysalis_outputs() if protocol == "chrysalis" else stardust_outputs()


@st.composite
def unlocks(draw, count, protocol):
    found = []
    for index in range(count):
        signed = [at for at, unlock in enumerate(found) if isinstance(unlock, SignatureUnlock)]
        kind = draw(st.integers(0, 1 if protocol == "chrysalis" else 3)) if found else 0
        if kind == 0:
            key = draw(ids)
            # The position keeps signatures unique, as the protocol wants them.
            found.append(SignatureUnlock(key, index.to_bytes(2, "big") + draw(ids) + bytes(30)))
        else:
            target = draw(st.sampled_from(signed) if kind == 1 else st.integers(0, index - 1))
            found.append(ReferenceUnlock(kind, target))
    return tuple(found)


def tagged_data(protocol):
    tag = st.binary(min_size=1, max_size=64) if protocol == "chrysalis" else tags
    return st.builds(TaggedData, tag, st.binary(max_size=80))


@st.composite
def transactions(draw, protocol):
    limit = 126 if protocol == "chrysalis" else 127
    sources = draw(st.sets(st.tuples(ids, st.integers(0, limit)), min_size=1, max_size=4))
    chosen = draw(st.lists(outputs(protocol), min_size=1, max_size=4))
    if protocol == "chrysalis":
        inputs = sorted(sources, key=lambda source: source[0] + source[1].to_bytes(2, "little"))
        owners = {(output.kind, output.address.value): output for output in chosen}
        chosen = sorted(owners.values(), key=pack_output)
        own = {}
    else:
        inputs = list(sources)
        chains = {(output.kind, chain_key(output) or at): output for at, output in enumerate(chosen)}
        chosen = list(chains.values())
        own = {"network_id": draw(u64), "inputs_commitment": draw(ids)}
    return Transaction(
        inputs=tuple(inputs),
        outputs=tuple(chosen),
        unlocks=draw(unlocks(len(inputs), protocol)),
        payload=draw(st.none() | tagged_data(protocol)),
        **own,
    )


def chain_key(output):
    """What may occur once among a transaction's outputs; None for what may be repeated."""
    if output.kind == FOUNDRY:
        return output.address.value, output.serial_number
    return None if output.kind == BASIC or output.chain_id == bytes(32) else output.chain_id


@st.composite
def receipts(draw):
    deposits = st.integers(1_000_000, 10**12)
    entries = draw(
        st.dictionaries(st.binary(min_size=49, max_size=49), st.tuples(ids, deposits), min_size=1, max_size=4)
    )
    funds = tuple(MigratedFunds(tail, 0, *entries[tail]) for tail in sorted(entries))
    return Receipt(draw(u32), draw(st.booleans()), funds, draw(ids), draw(st.integers(0, 2**62)))


@st.composite
def milestones(draw, protocol):
    """A draft with its (public key, signature) pairs; the signatures are not real."""
    index = draw(st.integers(1, 2**31))
    keys = sorted(draw(st.sets(ids, min_size=1, max_size=4)))
    signatures = tuple((key, draw(ids) * 2) for key in keys)
    common = {"index": index, "parents": draw(parents), "applied_root": draw(ids)}
    common["receipt"] = draw(st.none() | receipts())
    if protocol == "chrysalis":
        score = draw(st.just(0) | times)
        later = draw(st.integers(index + 1, 2**32 - 1)) if score else 0
        common |= {"public_keys": tuple(keys), "next_pow_score": score, "next_pow_score_index": later}
        return MilestoneDraft(timestamp=draw(u64), **common), signatures
    target = st.integers(index + 1, 2**32 - 1)
    announced = st.builds(ProtocolParameters, target, st.integers(0, 255), st.binary(max_size=60))
    common |= {"inclusion_root": draw(ids), "previous_milestone_id": draw(ids), "metadata": draw(metadata)}
    return MilestoneDraft(
        timestamp=draw(u32), protocol_parameters=draw(st.none() | announced), **common
    ), signatures
