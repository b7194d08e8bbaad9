"""Native coins and explorers of chains, for reading only: no row depends on them.

They stand here and not in ``include/reference``, whose every change makes days stale. Common knowledge,
unchecked; a chain that is not listed has neither.
"""

from __future__ import annotations

COINS: dict[int, str] = {
    **{1: "SOL", 2: "ETH", 3: "LUNC", 4: "BNB", 5: "POL", 6: "AVAX", 7: "ROSE", 8: "ALGO", 9: "ETH"},
    **{10: "FTM", 11: "KAR", 12: "ACA", 13: "KAIA", 14: "CELO", 15: "NEAR", 16: "GLMR", 17: "NEON"},
    **{18: "LUNA", 19: "INJ", 20: "OSMO", 21: "SUI", 22: "APT", 23: "ETH", 24: "ETH", 25: "XDAI"},
    **{28: "XPLA", 29: "BTC", 30: "ETH", 31: "FIL", 32: "SEI", 33: "RBTC", 34: "ETH", 35: "MNT", 36: "ETH"},
    **{37: "OKB", 38: "ETH", 39: "BERA", 40: "SEI", 44: "ETH", 45: "ETH", 46: "ETH", 47: "HYPE", 48: "MON"},
    **{49: "MOVE", 52: "S", 55: "PLUME", 57: "XRP", 58: "XPL", 60: "STX", 61: "XLM", 62: "TON", 65: "DOGE"},
    **{66: "XRP", 70: "TRX", 4000: "ATOM", 4004: "TIA"},
}
"""Ticker of the coin that pays a chain's fees, by Wormhole chain id."""
EXPLORERS: dict[int, str] = {
    1: "https://explorer.solana.com",
    2: "https://etherscan.io",
    3: "https://finder.terra.money/classic",
    4: "https://bscscan.com",
    5: "https://polygonscan.com",
    6: "https://snowtrace.io",
    7: "https://explorer.oasis.io",
    8: "https://allo.info",
    13: "https://kaiascan.io",
    14: "https://celoscan.io",
    15: "https://nearblocks.io",
    16: "https://moonscan.io",
    17: "https://neonscan.org",
    18: "https://finder.terra.money",
    19: "https://explorer.injective.network",
    20: "https://www.mintscan.io/osmosis",
    21: "https://suiscan.xyz",
    22: "https://explorer.aptoslabs.com",
    23: "https://arbiscan.io",
    24: "https://optimistic.etherscan.io",
    25: "https://gnosisscan.io",
    28: "https://explorer.xpla.io",
    29: "https://mempool.space",
    30: "https://basescan.org",
    32: "https://seitrace.com",
    34: "https://scrollscan.com",
    35: "https://mantlescan.xyz",
    36: "https://blastscan.io",
    38: "https://lineascan.build",
    39: "https://berascan.com",
    44: "https://uniscan.xyz",
    45: "https://worldscan.org",
    46: "https://explorer.inkonchain.com",
    52: "https://sonicscan.org",
    70: "https://tronscan.org",
    4000: "https://www.mintscan.io/cosmos",
    4004: "https://www.mintscan.io/celestia",
}
"""Address of a public explorer, by Wormhole chain id."""
