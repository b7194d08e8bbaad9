"""Keys of a synthetic world, all derived from its seed; they are public and protect nothing."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from random import Random

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from permalake_simulate.seeds import digest

BANK = -1


class KeyPair:
    """An Ed25519 key pair and its address (BLAKE2b-256 of the public key)."""

    __slots__ = ("_secret", "address", "public")

    def __init__(self, secret: bytes):
        self._secret = Ed25519PrivateKey.from_private_bytes(secret)
        self.public = self._secret.public_key().public_bytes_raw()
        self.address = blake2b(self.public, digest_size=32).digest()

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature; Ed25519 signatures are deterministic."""
        return self._secret.sign(message)


@lru_cache(maxsize=65_536)
def key_pair(seed: int, label: str, number: int) -> KeyPair:
    """Return the key of that name."""
    return KeyPair(digest(seed, label, number))


class Wallets:
    """Owners of outputs, numbered; low numbers are far busier than high ones."""

    def __init__(self, seed: int, count: int):
        self._seed, self._count = seed, count

    def __getitem__(self, number: int) -> KeyPair:
        return key_pair(self._seed, "wallet", number)

    def pick(self, rng: Random) -> int:
        """Return a wallet's number, with a chance of about one over its rank."""
        return int(self._count ** rng.random()) - 1


def coordinator(seed: int, count: int = 2) -> list[KeyPair]:
    """Return the coordinator's keys in order of their public keys, as milestones list them."""
    pairs = [key_pair(seed, "coordinator", number) for number in range(count)]
    return sorted(pairs, key=lambda pair: pair.public)
