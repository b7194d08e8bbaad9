"""The wallets of an epoch by their address."""

from __future__ import annotations

from permalake.iota.codec.encode_outputs import Address
from permalake_simulate.iota.wallets import KeyPair, Wallets


class Owners:
    """Key pairs by address."""

    def __init__(self, wallets: Wallets):
        self._wallets = wallets
        self._by_address: dict[bytes, KeyPair] = {}

    def known(self, number: int) -> KeyPair:
        """Return the wallet of that number, and remember its address."""
        pair = self._wallets[number]
        self._by_address[pair.address] = pair
        return pair

    def of(self, address: Address | None) -> KeyPair:
        """Return the wallet that owns ``address``."""
        if address is None:
            raise KeyError("an output without address has no owner")
        return self._by_address[address.value]

    def __contains__(self, address: bytes) -> bool:
        return address in self._by_address
