"""Reference data: guardian sets, chains, bridges, applications, listed and denied tokens.

The bundled files (``include/reference``, origins in its README) and, added to them, the directory of
``[wormhole] reference``: its guardian sets, tokens and fields of chains win over the bundled ones; bridges
and denied tokens add up. Any file may be missing there.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from permalake.errors import ConfigError
from permalake.paths import REFERENCE
from permalake.wormhole.codec.applications.decode import (
    LAYOUTS,
    NFT_BRIDGE_APP,
    ROLES,
    TOKEN_BRIDGE_APP,
    ApplicationContract,
    ContractKey,
    Contracts,
)

FILES = (
    "guardian_sets.json",
    "bridges.json",
    "token_list.csv",
    "deny.json",
    "chains.json",
    "applications.json",
    "stand_ins.csv",
    "governor_limits.csv",
)
DOLLAR = "usd"
"""The mark of a stablecoin in ``stand_ins.csv``."""
TokenId = tuple[int, str]
"""Chain and 32-byte address in hex: the identity of a token, whatever its symbol."""

# Families whose addresses are hashes, at least those of tokens: only the token list has their names.
_NAMED_FAMILIES = ("aptos", "cosmos", "near")


@dataclass(frozen=True)
class BridgeEmitters:
    """Emitters of the token and NFT bridges over all of history: chain and 32-byte address."""

    token: frozenset[tuple[int, bytes]]
    nft: frozenset[tuple[int, bytes]]


@dataclass(frozen=True)
class Token:
    """A listed token; what the list lacks is None."""

    chain: int
    token_address: str
    symbol: str | None
    name: str | None
    coingecko_id: str | None
    decimals: int | None
    native_address: str | None


@dataclass(frozen=True)
class GovernorLimit:
    """The guardians' governor's limit on a chain in 24 hours (USD), from a day on.

    Transfers of ``big`` dollars or more wait for a day and do not count; 0 or None: no transfer is big. A
    ``daily`` of None: the chain is not governed.
    """

    chain: int
    since: date
    daily: int | None
    big: int | None


@dataclass(frozen=True)
class ChainInfo:
    """A chain by Wormhole id.

    Address family and bech32 prefix, its names at CoinGecko and DefiLlama, its EVM chain id, its core
    contract (native form), the emitters of its token and NFT bridges (hex), and on Solana and Aptos, where an
    emitter is not a program, the programs of these bridges.
    """

    id: int
    name: str | None = None
    family: str | None = None
    hrp: str | None = None
    coingecko: str | None = None
    llama: str | None = None
    evm_chain_id: int | None = None
    core: str | None = None
    token_bridge: str | None = None
    token_bridge_program: str | None = None
    nft_bridge: str | None = None
    nft_bridge_program: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reference:
    """All reference data. Guardian sets are 20-byte addresses in order, by index."""

    guardian_sets: dict[int, tuple[bytes, ...]]
    bridges: BridgeEmitters
    tokens: dict[TokenId, Token]
    denied: frozenset[TokenId]
    chains: dict[int, ChainInfo]
    applications: Contracts = field(default_factory=dict)
    stand_in_assets: dict[str, tuple[str, date | None]] = field(default_factory=dict)
    """By CoinGecko id: what it stands for (``usd``, or the id of the asset that it wraps), and the day from
    which it no longer does."""
    governor_limits: tuple[GovernorLimit, ...] = ()
    """In order of chain and day."""
    guardian_names: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Names of a set's guardians in the order of their addresses, empty where the list has none. Those of
    mainnet are published in wormhole-foundation/wormhole, ``guardianset/mainnetv2/canonical_sets``."""
    version: str = field(default="", compare=False)
    """Changes with the files, for validators of answers that show them."""

    def guardian_name(self, index: int, address: bytes) -> str | None:
        """Return the name of a guardian of a set; None where nobody tells it."""
        members = self.guardian_sets.get(index, ())
        names = dict(zip(members, self.guardian_names.get(index, ()), strict=False))
        return names.get(address) or None

    def contracts(self) -> Contracts:
        """Return the contracts of applications, those of the bridges among them."""
        token = ApplicationContract(TOKEN_BRIDGE_APP, "token_bridge")
        nft = ApplicationContract(NFT_BRIDGE_APP, "nft_bridge")
        bridges: Contracts = {("emitter", chain, address): nft for chain, address in self.bridges.nft}
        tokens: Contracts = {("emitter", chain, address): token for chain, address in self.bridges.token}
        return {**self.applications, **bridges, **tokens}

    def token_table(self) -> pa.Table:
        """Return the token list as a table, one row per token."""
        kinds = {"chain": pa.int32(), "decimals": pa.int32()}
        names = [f.name for f in fields(Token)]
        schema = pa.schema([(name, kinds.get(name, pa.string())) for name in names])
        return pa.Table.from_pylist([vars(token) for token in self.tokens.values()], schema=schema)

    def limit_table(self) -> pa.Table:
        """Return the governor's limits, one row per chain and time in which they hold.

        Columns: emitter_chain, since, until (exclusive; null: still), daily_limit_usd, big_transaction_usd.
        """
        names = ("emitter_chain", "since", "until", "daily_limit_usd", "big_transaction_usd")
        kinds = (pa.int32(), pa.date32(), pa.date32(), pa.int64(), pa.int64())
        follow = {
            limit: after for limit, after in pairwise(self.governor_limits) if limit.chain == after.chain
        }
        rows = [
            (
                limit.chain,
                limit.since,
                follow[limit].since if limit in follow else None,
                limit.daily,
                limit.big,
            )
            for limit in self.governor_limits
            if limit.daily is not None
        ]
        schema = pa.schema(list(zip(names, kinds, strict=True)))
        return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema)

    def denied_table(self) -> pa.Table:
        """Return the denied tokens as a table (chain, token_address)."""
        schema = pa.schema([("chain", pa.int32()), ("token_address", pa.string())])
        rows = [{"chain": chain, "token_address": address} for chain, address in sorted(self.denied)]
        return pa.Table.from_pylist(rows, schema=schema)


def load_reference(directory: str | Path | None = None) -> Reference:
    """Load the bundled reference data and those of ``directory``; read again only after a change.

    Raises :class:`ConfigError`, a line with the file and its fault.
    """
    places = [REFERENCE]
    if directory is not None:
        if not Path(directory).is_dir():
            raise ConfigError(f"wormhole.reference: {directory} is no directory")
        places.append(Path(directory).resolve())
    present = [place / name for place in places for name in FILES if (place / name).is_file()]
    return _load(tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in present))


@lru_cache(maxsize=8)
def _load(files: tuple[tuple[Path, int, int], ...]) -> Reference:
    guardian_sets: dict[int, tuple[bytes, ...]] = {}
    guardian_names: dict[int, tuple[str, ...]] = {}
    token_bridges: set[tuple[int, bytes]] = set()
    nft_bridges: set[tuple[int, bytes]] = set()
    tokens: dict[TokenId, Token] = {}
    denied: set[TokenId] = set()
    chains: dict[int, ChainInfo] = {}
    applications: dict[ContractKey, ApplicationContract] = {}
    stand_in_assets: dict[str, tuple[str, date | None]] = {}
    limits: dict[tuple[int, date], GovernorLimit] = {}

    def bridges_of(file: Path) -> None:
        listed = _json(file)
        token_bridges.update(_emitters(listed.get("tokenbridge_emitters", [])))
        nft_bridges.update(_emitters(listed.get("nftbridge_emitters", [])))

    def guardians_of(file: Path) -> None:
        listed = _json(file)
        guardian_sets.update(_guardian_sets(listed))
        guardian_names.update(_guardian_names(listed))

    readers: dict[str, Callable[[Path], None]] = {
        "guardian_sets.json": guardians_of,
        "bridges.json": bridges_of,
        "token_list.csv": lambda file: tokens.update(_tokens(file)),
        "deny.json": lambda file: denied.update(
            _token_id(row["chain"], row["token_address"]) for row in _json(file)
        ),
        "chains.json": lambda file: chains.update(_chains(_json(file), chains)),
        "applications.json": lambda file: applications.update(_applications(_json(file))),
        "stand_ins.csv": lambda file: stand_in_assets.update(_stand_in_assets(file)),
        "governor_limits.csv": lambda file: limits.update(
            {(limit.chain, limit.since): limit for limit in _limits(file)}
        ),
    }
    for file, _, _ in files:
        try:
            readers[file.name](file)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            problem = f"no {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]
            raise ConfigError(f"wormhole.reference: {file} is not readable: {problem}") from None
    bridges = BridgeEmitters(frozenset(token_bridges), frozenset(nft_bridges))
    named = _with_names(chains, tokens)
    ordered = tuple(limits[key] for key in sorted(limits))
    version = hashlib.blake2b(repr(files).encode(), digest_size=8).hexdigest()
    return Reference(
        guardian_sets,
        bridges,
        tokens,
        frozenset(denied),
        named,
        applications,
        stand_in_assets,
        ordered,
        guardian_names,
        version,
    )


def _json(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))


def _hex(text: str, size: int) -> bytes:
    value = bytes.fromhex(text.removeprefix("0x"))
    if len(value) != size:
        raise ValueError(f"{text} has not {size} bytes")
    return value


def _token_id(chain: Any, address: str) -> TokenId:
    return int(chain), _hex(address, 32).hex()


def _guardian_sets(listed: list[dict[str, Any]]) -> dict[int, tuple[bytes, ...]]:
    return {
        int(listed_set["index"]): tuple(_hex(guardian["pubkey"], 20) for guardian in listed_set["guardians"])
        for listed_set in listed
    }


def _guardian_names(listed: list[dict[str, Any]]) -> dict[int, tuple[str, ...]]:
    return {
        int(listed_set["index"]): tuple(
            str(guardian.get("name") or "") for guardian in listed_set["guardians"]
        )
        for listed_set in listed
    }


def _emitters(listed: list[dict[str, Any]]) -> set[tuple[int, bytes]]:
    return {(int(emitter["chain"]), _hex(emitter["emitter"], 32)) for emitter in listed}


def _applications(listed: list[dict[str, Any]]) -> dict[ContractKey, ApplicationContract]:
    applications: dict[ContractKey, ApplicationContract] = {}
    for contract in listed:
        role, layout = contract["role"], contract["layout"]
        if role not in ROLES or layout not in LAYOUTS.get(role, ()):
            raise ValueError(f"layout {layout} of a contract that is {role}")
        applications[role, int(contract["chain"]), _hex(contract["address"], 32)] = ApplicationContract(
            contract["app_id"], layout
        )
    return applications


def _tokens(file: Path) -> dict[TokenId, Token]:
    with file.open(encoding="utf-8", newline="") as lines:
        return dict(map(_token, csv.DictReader(lines)))


def _stand_in_assets(file: Path) -> dict[str, tuple[str, date | None]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return {
            row["coingecko_id"]: (
                row["stands_for"],
                date.fromisoformat(row["until"]) if row["until"] else None,
            )
            for row in csv.DictReader(lines)
        }


def _limits(file: Path) -> list[GovernorLimit]:
    with file.open(encoding="utf-8", newline="") as lines:
        return [
            GovernorLimit(
                int(row["chain"]),
                date.fromisoformat(row["since"]),
                int(row["daily_limit_usd"]) if row["daily_limit_usd"] else None,
                int(row["big_transaction_usd"]) if row["big_transaction_usd"] else None,
            )
            for row in csv.DictReader(lines)
        ]


def _token(row: dict[str, str | None]) -> tuple[TokenId, Token]:
    token_id = _token_id(row["chain"], row["token_address"] or "")
    decimals = row.get("decimals")
    return token_id, Token(
        chain=token_id[0],
        token_address=token_id[1],
        symbol=row.get("symbol") or None,
        name=row.get("name") or None,
        coingecko_id=row.get("coingecko_id") or None,
        decimals=int(decimals) if decimals else None,
        native_address=row.get("native_address") or None,
    )


def _chains(listed: dict[str, dict[str, Any]], bundled: dict[int, ChainInfo]) -> dict[int, ChainInfo]:
    names = {f.name for f in fields(ChainInfo)} - {"id", "names"}
    result = {}
    for number, entry in listed.items():
        values = {name: value for name, value in entry.items() if name in names}
        result[int(number)] = replace(bundled.get(int(number)) or ChainInfo(int(number)), **values)
    return result


def _with_names(chains: dict[int, ChainInfo], tokens: dict[TokenId, Token]) -> dict[int, ChainInfo]:
    names: dict[int, dict[str, str]] = {}
    for (chain, address), token in tokens.items():
        if token.native_address and chain in chains and chains[chain].family in _NAMED_FAMILIES:
            names.setdefault(chain, {})[address] = token.native_address
    return {number: replace(chain, names=names.get(number, {})) for number, chain in chains.items()}
