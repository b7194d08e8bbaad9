"""What a node's ``info`` says of its network: from the configuration, else of networks known by name.

Sources: TIP-32 and TIP-33 (Shimmer), the configurations that Hornet 1.2.4 and 2.0.1 ship, Firefly's
``BASE_TOKEN_SUPPLY_FOR_NETWORK``.
"""

from __future__ import annotations

from permalake.config import Settings
from permalake.config.networks import BaseToken, NetworkSettings, NodeParameters
from permalake.iota.contracts.ledger_changes import DATA_WEIGHT, KEY_WEIGHT
from permalake.web.numbers import CoinUnit

_IOTA = BaseToken(name="IOTA", ticker_symbol="IOTA", unit="IOTA", subunit="micro", decimals=6)
_SHIMMER = BaseToken(name="Shimmer", ticker_symbol="SMR", unit="SMR", subunit="glow", decimals=6)
_MIOTA = BaseToken(name="IOTA", ticker_symbol="MIOTA", unit="i", decimals=0, use_metric_prefix=True)
_CHRYSALIS_SUPPLY = 2_779_530_283_277_761

# protocol, name in the configuration -> network name, supply, least proof of work, base token
_KNOWN = {
    ("stardust", "iota"): ("iota-mainnet", 4_600_000_000_000_000, 0, _IOTA),
    ("stardust", "iota-mainnet"): ("iota-mainnet", 4_600_000_000_000_000, 0, _IOTA),
    ("stardust", "iota-testnet"): ("iota-testnet", 4_600_000_000_000_000, 0, _IOTA),
    ("stardust", "shimmer"): ("shimmer", 1_813_620_509_061_365, 1500, _SHIMMER),
    ("stardust", "shimmer-testnet"): ("testnet", 1_450_896_407_249_092, 1500, _SHIMMER),
    ("stardust", "testnet"): ("testnet", 1_450_896_407_249_092, 1500, _SHIMMER),
    ("chrysalis", "iota"): ("chrysalis-mainnet", _CHRYSALIS_SUPPLY, 4000, _MIOTA),
    ("chrysalis", "chrysalis-mainnet"): ("chrysalis-mainnet", _CHRYSALIS_SUPPLY, 4000, _MIOTA),
    ("chrysalis", "chrysalis-devnet"): ("chrysalis-devnet", _CHRYSALIS_SUPPLY, 2000, _MIOTA),
}


def node_parameters(name: str, network: NetworkSettings) -> NodeParameters:
    """Return the parameters of a network, none of them None.

    A network that is neither configured nor known has its own name, a supply above any real one (clients
    refuse amounts beyond it), and no proof of work.
    """
    unknown = (name, 2**63 - 1, 0, _MIOTA if network.protocol == "chrysalis" else _IOTA)
    network_name, supply, score, token = _KNOWN.get((network.protocol, name), unknown)
    parameters = {
        "network_name": network_name,
        "token_supply": supply,
        "protocol_version": 1 if network.protocol == "chrysalis" else 2,
        "min_pow_score": score,
        "v_byte_factor_data": DATA_WEIGHT,
        "v_byte_factor_key": KEY_WEIGHT,
        "base_token": token,
    }
    given = {key: getattr(network, key) for key in NodeParameters.model_fields}
    return NodeParameters.model_validate(
        parameters | {key: value for key, value in given.items() if value is not None}
    )


_MEGA = 6
"""Zeros of the prefix in which wallets of networks with metric prefixes show amounts: MIOTA."""


def coin(settings: Settings, name: str) -> CoinUnit:
    """Return the coin in which pages show a network's amounts."""
    token = node_parameters(name, settings.network(name)).base_token
    assert token is not None  # noqa: S101
    decimals = _MEGA if token.use_metric_prefix and not token.decimals else token.decimals
    return CoinUnit(token.ticker_symbol, decimals)
