"""Query parameters of the indexer (TIP-26, inx-indexer 1.0), with the older names of seed 004."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from permalake.iota.contracts.columns import MAX_U32
from permalake.web.paging import NoQuery, PageQuery

MAX_NATIVE_TOKENS = 64
T = TypeVar("T")
_Time = Annotated[int | None, Field(ge=0, le=MAX_U32)]
_Count = Annotated[int | None, Field(ge=0, le=MAX_NATIVE_TOKENS)]


class ChainQuery(NoQuery):
    """Whether spent outputs count. A parameter's name is its field's in camel case."""

    model_config = ConfigDict(alias_generator=to_camel)

    state: Literal["unspent", "all"] | None = Field(
        None, description="Unspent outputs, or spent ones too; unspent unless given."
    )
    include_spent: bool | None = Field(None, description="Chronicle's name of state=all.")

    @model_validator(mode="after")
    def _check_state(self) -> Self:
        stated = {"unspent": False, "all": True}.get(self.state or "")
        if None not in (stated, self.include_spent) and stated != self.include_spent:
            raise ValueError("state and includeSpent contradict each other; give one of them")
        return self

    @property
    def spent_too(self) -> bool:
        """Whether spent outputs count as well."""
        return self.state == "all" or bool(self.include_spent)


class CreatedQuery(ChainQuery, PageQuery):
    """When an output was created, both bounds exclusive. A list begins with the oldest, as inx-indexer's."""

    sort: Literal["newest", "oldest"] = Field("oldest", description="Order of creation.")
    created_before: _Time = Field(None, description="Created before this time (unix seconds).")
    created_after: _Time = Field(None, description="Created after this time (unix seconds).")

    def filters(self) -> dict[str, Any]:
        """Return everything but paging that was asked for, by parameter."""
        paging = {"page_size", "cursor", "sort"}
        return self.model_dump(exclude=paging, exclude_none=True, by_alias=True, mode="json")


class LegacyQuery(CreatedQuery):
    """Filters of Chrysalis outputs."""

    address: str | None = Field(None, description="Owner (bech32).")


class CommonQuery(CreatedQuery):
    """Filters of all Stardust outputs."""

    has_native_tokens: bool | None = Field(None, description="Outputs that hold native tokens, or none.")
    min_native_token_count: _Count = Field(None, description="At least so many distinct native tokens.")
    max_native_token_count: _Count = Field(None, description="At most so many distinct native tokens.")
    unlockable_by_address: str | None = Field(
        None,
        description="Address (bech32) that some unlock condition names: of a basic or NFT output its owner, "
        "or the return address of an expiration or a storage deposit; of an alias the state controller or "
        "governor; of a foundry its alias.",
    )


class FoundryQuery(CommonQuery):
    """Filters of foundry outputs."""

    alias_address: str | None = Field(None, description="Alias that controls the foundry (bech32).")
    address: str | None = Field(None, description="Seed 004's name of aliasAddress.")

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        self.alias_address = _one_of(self.alias_address, self.address, "aliasAddress", "address")
        self.address = None
        return self


class _SenderQuery(CommonQuery):
    sender: str | None = Field(None, description="Address of the sender feature (bech32).")


class AliasQuery(_SenderQuery):
    """Filters of alias outputs."""

    state_controller: str | None = Field(None, description="State controller (bech32).")
    governor: str | None = Field(None, description="Governor (bech32).")
    governer: str | None = Field(None, description="Seed 004's spelling of governor.")
    issuer: str | None = Field(None, description="Address of the issuer feature (bech32).")

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        self.governor = _one_of(self.governor, self.governer, "governor", "governer")
        self.governer = None
        return self


class BasicQuery(_SenderQuery):
    """Filters of basic outputs."""

    address: str | None = Field(None, description="Owner: the address unlock condition (bech32).")
    has_storage_deposit_return: bool | None = Field(
        None,
        description="Outputs with a storage deposit to return, or none.",
    )
    requires_dust_return: bool | None = Field(None, description="Seed 004's name of hasStorageDepositReturn.")
    storage_deposit_return_address: str | None = Field(
        None, description="Who gets the deposit back (bech32)."
    )
    has_timelock: bool | None = Field(None, description="Outputs with a timelock, or without.")
    timelocked_before: _Time = Field(None, description="Locked until before this time (unix seconds).")
    timelocked_after: _Time = Field(None, description="Locked until after this time (unix seconds).")
    has_expiration: bool | None = Field(None, description="Outputs with an expiration, or without.")
    expires_before: _Time = Field(None, description="Expiring before this time (unix seconds).")
    expires_after: _Time = Field(None, description="Expiring after this time (unix seconds).")
    expiration_return_address: str | None = Field(None, description="Owner after the expiration (bech32).")
    tag: str | None = Field(
        None,
        pattern=r"^(0[xX])?([0-9a-fA-F]{2}){1,64}$",
        description="The tag feature (hex, at most 64 bytes).",
    )

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = ("hasStorageDepositReturn", "requiresDustReturn")
        self.has_storage_deposit_return = _one_of(
            self.has_storage_deposit_return, self.requires_dust_return, *names
        )
        self.requires_dust_return = None
        return self


class NftQuery(BasicQuery):
    """Filters of NFT outputs."""

    issuer: str | None = Field(None, description="Address of the issuer feature (bech32).")


def _one_of(value: T | None, older: T | None, name: str, older_name: str) -> T | None:
    if value is not None and older is not None and value != older:
        raise ValueError(f"{name} and {older_name} contradict each other; give {name} alone")
    return older if value is None else value
