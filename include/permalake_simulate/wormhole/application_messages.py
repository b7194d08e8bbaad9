"""Messages of made-up applications, in the layouts of real ones, and the contracts that send them."""

from __future__ import annotations

from random import Random
from typing import Any

from permalake.wormhole.codec.applications.circle_integration import CIRCLE_DOMAINS
from permalake_simulate.seeds import digest
from permalake_simulate.wormhole.bridge_world import CHAINS, Emitter, SyntheticToken, WormholeWorld

RECIPIENTS = {"connect": "CONNECT", "recipient": "TBTC", "portico": "ETH_BRIDGE"}
"""Applications that receive transfers with payload, by layout."""
_EMITTERS = {
    "relayer": "GENERIC_RELAYER",
    "circle": "CCTP_WORMHOLE_INTEGRATION",
    "ntt": "NATIVE_TOKEN_TRANSFER",
    "mayan_swift": "MAYAN_SWIFT",
}
_DOMAINS = {chain: domain for domain, chain in CIRCLE_DOMAINS.items()}
_U64 = 2**64 - 1
_RELAYED = 0.3
"""Share of deliveries that carry an NTT message."""


def contracts(world: WormholeWorld) -> list[dict[str, Any]]:
    """Return the world's ``applications.json``."""
    emitters = [(one.layout, "emitter", one.chain, one.address) for one in world.emitters if one.layout]
    emitters.append(("ntt", "emitter", _relayer(world).chain, _transceiver(world)))
    recipients = [
        (layout, "recipient", chain, world.contract(layout, chain))
        for layout in RECIPIENTS
        for chain in CHAINS
    ]
    names = {**_EMITTERS, **RECIPIENTS}
    return [
        {
            "app_id": names[layout],
            "layout": layout,
            "role": role,
            "chain": chain,
            "address": address.hex(),
        }
        for layout, role, chain, address in (*emitters, *recipients)
    ]


def received(world: WormholeWorld, rng: Random, target: int, amount: int) -> tuple[bytes, bytes]:
    """Return the contract that receives a transfer with payload on ``target``, and the payload."""
    layout = rng.choice(sorted(RECIPIENTS))
    recipient = _holder(world, rng, target)
    if layout == "connect":
        told = b"\x01" + _word(amount // 1000) + _word(0) + recipient
    elif layout == "recipient":
        told = recipient
    else:
        flags = target.to_bytes(2, "little") + rng.randbytes(10)
        token = world.tokens[target][0].address
        told = flags.ljust(32, b"\0") + token + recipient + _word(amount) * 2 + _word(amount // 500)
    return world.contract(layout, target), told


def emitted(world: WormholeWorld, rng: Random, emitter: Emitter, sequence: int) -> tuple[str, bytes]:
    """Return the total of the day that a message adds to ("" for none), and its payload."""
    if emitter.layout == "relayer":
        return "deliveries", _relayed(world, rng, emitter, sequence)
    if emitter.layout == "circle":
        return "application_transfers", _deposit(world, rng, emitter, sequence)
    if emitter.layout == "ntt":
        return "application_transfers", ntt_transfer(world, rng, emitter.chain, sequence)
    if rng.random() < 0.5:
        return "application_transfers", _fulfill(world, rng)
    orders = [_unlock(world, rng) for _ in range(rng.randrange(1, 4))]
    return "", b"\x04" + len(orders).to_bytes(2, "big") + b"".join(orders)


def ntt_transfer(world: WormholeWorld, rng: Random, chain: int, number: int) -> bytes:
    """Return the message of an NTT transceiver on ``chain``."""
    token = _token(world, rng, chain)
    target = _target(rng, chain)
    decimals = min(token.decimals, 8)
    body = b"\x99NTT" + bytes([decimals]) + _u64(_units(rng, decimals)) + token.address
    body += _holder(world, rng, target) + target.to_bytes(2, "big")
    message = _word(number) + _holder(world, rng, chain) + _sized(body, 2)
    managers = world.contract("ntt manager", chain) + world.contract("ntt manager", target)
    return b"\x99\x45\xff\x10" + managers + _sized(message, 2) + bytes(2)


def query_response(rng: Random) -> bytes:
    """Return the response to a query of one call on chain 2."""
    answer = b"\0\x02\x01" + _sized(rng.randbytes(49), 4)
    request = b"\x01" + rng.randbytes(4) + b"\x01" + b"\0\x02\x01" + _sized(rng.randbytes(30), 4)
    return b"\x01\0\0" + rng.randbytes(65) + _sized(request, 4) + b"\x01" + answer


def _relayed(world: WormholeWorld, rng: Random, emitter: Emitter, sequence: int) -> bytes:
    target = _target(rng, emitter.chain)
    info = _sized(_word(0) + _word(rng.randrange(10**6)) + _word(rng.randrange(10**9)), 4)
    provider = world.contract("delivery provider", emitter.chain)
    if sequence % 10 == 9:
        earlier = b"\x01" + emitter.chain.to_bytes(2, "big") + emitter.address + _u64(sequence - 9)
        head = b"\x02" + earlier + target.to_bytes(2, "big") + _word(rng.randrange(10**18))
        return head + info + provider + _holder(world, rng, emitter.chain)
    is_ntt = rng.random() < _RELAYED
    inner = ntt_transfer(world, rng, emitter.chain, sequence) if is_ntt else rng.randbytes(rng.randrange(80))
    sender = _transceiver(world) if is_ntt else _holder(world, rng, emitter.chain)
    head = b"\x01" + target.to_bytes(2, "big") + _holder(world, rng, target) + _sized(inner, 4)
    refund = target.to_bytes(2, "big") + _holder(world, rng, target)
    return head + _word(0) + _word(rng.randrange(10**18)) + info + refund + provider * 2 + sender + b"\0"


def _deposit(world: WormholeWorld, rng: Random, emitter: Emitter, sequence: int) -> bytes:
    target = rng.choice([chain for chain in CHAINS if chain in _DOMAINS and chain != emitter.chain])
    amount = _units(rng, 6)
    domains = _DOMAINS[emitter.chain].to_bytes(4, "big") + _DOMAINS[target].to_bytes(4, "big")
    head = b"\x01" + world.tokens[emitter.chain][0].address + _word(amount) + domains + _u64(sequence)
    told = b"\x01" + _word(amount // 1000) + _word(0) + _holder(world, rng, target)
    inner = told if rng.random() < 0.7 else rng.randbytes(20)
    return head + _holder(world, rng, emitter.chain) + _holder(world, rng, target) + _sized(inner, 2)


def _fulfill(world: WormholeWorld, rng: Random) -> bytes:
    target = rng.choice(CHAINS)
    token = _token(world, rng, target)
    promised = _u64(_units(rng, min(token.decimals, 8)))
    order = rng.randbytes(32) + (30).to_bytes(2, "big") + world.tokens[30][0].address
    order += _holder(world, rng, target) + target.to_bytes(2, "big") + token.address
    fees = _u64(0) + _u64(2**32) + bytes(32) + b"\0\x03"
    return b"\x01" + order + promised + fees + _holder(world, rng, target)


def _unlock(world: WormholeWorld, rng: Random) -> bytes:
    source = rng.choice(CHAINS)
    token = world.tokens[source][0].address
    return rng.randbytes(32) + source.to_bytes(2, "big") + token + _holder(world, rng, source)


def _relayer(world: WormholeWorld) -> Emitter:
    return next(one for one in world.emitters if one.layout == "relayer")


def _transceiver(world: WormholeWorld) -> bytes:
    """Return the listed NTT transceiver that the relayer delivers for."""
    return bytes(12) + digest(world.seed, "relayed transceiver")[12:]


def _token(world: WormholeWorld, rng: Random, chain: int) -> SyntheticToken:
    return rng.choice(world.tokens[chain])


def _target(rng: Random, chain: int) -> int:
    return rng.choice([other for other in CHAINS if other != chain])


def _holder(world: WormholeWorld, rng: Random, chain: int) -> bytes:
    return world.holder(chain, int(world.addresses ** rng.random()) - 1)


def _units(rng: Random, decimals: int) -> int:
    return min(int(10 ** (rng.random() * 6) * 10**decimals), _U64)


def _word(number: int) -> bytes:
    return number.to_bytes(32, "big")


def _u64(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _sized(told: bytes, width: int) -> bytes:
    return len(told).to_bytes(width, "big") + told
