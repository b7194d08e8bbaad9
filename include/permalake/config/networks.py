"""Sections of the domains: IOTA networks and Wormhole, with their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    Field,
    model_validator,
)

from permalake.config.section import Section

Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
NetworkName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,47}$")]


class CoordinatorKey(Section):
    """A coordinator key and the milestones (inclusive) for which it signs."""

    key: Hex32
    start: int = Field(default=0, ge=0)
    end: int = Field(default=2**32 - 1, ge=0)
    threshold: int | None = Field(default=None, ge=1)
    """How many signatures a milestone of this range needs; without it, ``coordinator_threshold``."""


class KnownLedger(Section):
    """``[networks.NAME.ledger]``: the known ledger state from which running figures start.

    ``path`` holds the unspent outputs after ``milestone``, the last one before the network's first day, as
    JSON Lines with ``rawOutput``. With it, running figures are absolute.
    """

    path: Path
    milestone: int = Field(ge=0)


class BaseToken(Section):
    """``[networks.NAME.base_token]``: the base token as a node's ``info`` describes it (TIP-25)."""

    name: str
    ticker_symbol: str
    unit: str
    subunit: str | None = None
    decimals: int = Field(ge=0, le=38)
    use_metric_prefix: bool = False


class NodeParameters(Section):
    """Keys of ``[networks.NAME]`` that only the REST API uses: what a node's ``info`` says of its network.

    Left out, a known network's values count, by its name; see ``permalake.iota.rest.known_networks``.
    """

    network_name: str | None = Field(default=None, min_length=1)
    """Name that the network id is the hash of."""
    token_supply: int | None = Field(default=None, ge=0, le=2**64 - 1)
    protocol_version: int | None = Field(default=None, ge=1, le=255)
    min_pow_score: int | None = Field(default=None, ge=0)
    v_byte_factor_data: int | None = Field(default=None, ge=0, le=255)
    v_byte_factor_key: int | None = Field(default=None, ge=0, le=255)
    base_token: BaseToken | None = None


class MirrorSettings(Section):
    """Keys of ``[networks.NAME]`` and ``[wormhole]`` with source ``permalake``: whose days are copied.

    ``url`` is the address of an export, ``fallback`` lists those that are asked in order when it lies or
    lags, and ``publisher_keys`` holds the lines of the public keys of which one must have signed.
    """

    url: str | None = Field(default=None, repr=False)
    fallback: tuple[str, ...] = ()
    publisher_keys: tuple[str, ...] = ()

    def check_publishers(self) -> None:
        """Check that it is said whose days are copied."""
        if not self.url or not self.publisher_keys:
            raise ValueError("source 'permalake' needs url and publisher_keys")


OF_MIRRORS = frozenset({"fallback", "publisher_keys"})
"""Keys that nothing but a mirror reads."""


class NetworkSettings(NodeParameters, MirrorSettings):
    """``[networks.NAME]``: an IOTA network and the source of its milestones."""

    protocol: Literal["chrysalis", "stardust"]
    bech32_hrp: str = Field(pattern=r"^[a-z]{1,16}$")
    chunk_size: int = Field(default=250_000, gt=0)
    below_max_depth: int = Field(default=15, ge=1)
    """Protocol parameter: how many milestones old a parent's cone root may be when a block is attached."""
    look_back: int = Field(default=40, ge=1, le=4_096)
    """How many milestones back a cone may reach, and how far from a source's first milestone an absent parent
    counts as a solid entry point. Not less than ``below_max_depth``: a block may be referenced some
    milestones after it was attached."""
    source: Literal["archive_rest", "chronicle", "node", "permalake"] = "archive_rest"
    path: Path | None = None
    rate_per_second: float = Field(default=200.0, gt=0)
    concurrency: int = Field(default=16, ge=1, le=256)
    timeout: float = Field(default=30.0, gt=0)
    coordinator_public_keys: tuple[CoordinatorKey, ...] = ()
    coordinator_threshold: int | None = Field(default=None, ge=1)
    transaction_signatures: bool = True
    """Whether transaction signatures are verified; milestone signatures always are."""
    richest_addresses: int = Field(default=100, ge=1, le=10_000)
    """Number of addresses per day in the table ``richest_addresses``."""
    scheduled: bool = True
    """Whether scheduled runs build its days. A run that names no network means a scheduled one."""
    v_byte_cost: int | None = Field(default=None, ge=0)
    """Base tokens of storage deposit per virtual byte (TIP-19); without it the ledger's deposit is null."""
    ledger: KnownLedger | None = None

    @model_validator(mode="after")
    def _has_place(self) -> NetworkSettings:
        if self.source == "node" and not self.url:
            raise ValueError("source 'node' needs url")
        if self.look_back < self.below_max_depth:
            raise ValueError("look_back must not be below below_max_depth")
        if self.source == "permalake":
            self.check_publishers()
        elif self.source != "node" and not self.path:
            raise ValueError(f"source '{self.source}' needs path")
        return self


class WormholeSettings(MirrorSettings):
    """``[wormhole]``: the source of VAAs and additional reference data."""

    source: Literal["files", "wormholescan", "permalake"] = "files"
    path: Path | None = None
    guardian_url: str | None = Field(default=None, repr=False)
    reference: Path | None = None
    observations: Path | None = None
    observation_requests: int = Field(default=1_000, ge=0)
    """Requests for observations that a run may send to Wormholescan; 0 asks for none."""
    operations: Path | None = None
    rate_per_second: float = Field(default=5.0, gt=0)

    @model_validator(mode="after")
    def _is_whole(self) -> WormholeSettings:
        if self.source == "permalake":
            self.check_publishers()
        return self
