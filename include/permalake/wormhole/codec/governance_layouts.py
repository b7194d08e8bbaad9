"""Layouts of governance actions by module and number.

Sources: wormhole-foundation/wormhole ``sdk/vaa/payloads.go`` (all modules that the guardians sign for) and
``sdk/rust/vaas-serde/src`` (both accountants); wormhole-foundation/native-token-transfers
``evm/src/wormhole/Governance.sol`` and ``solana/programs/wormhole-governance`` (calls of NTT governance).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from permalake.wormhole.codec.payload_fields import Fields
from permalake.wormhole.codec.payload_reader import LayoutError, PayloadReader

LayoutReader = Callable[[PayloadReader, int], Fields]
"""Reader of the fields after the header; the second argument is the target chain."""

RECOVER_CHAIN_ID = "RecoverChainId"

# CosmWasm's core contract reads the recipient before the amount (sdk/vaa/payloads.go).
_COSMWASM_CORE = (18, 19, 32)
_CHANNEL_SIZE = 64
_REASON_SIZE = 32
_PUBLIC_KEY_SIZE = 33
_MULTISIG = 1


def _upgrade(reader: PayloadReader, _: int) -> Fields:
    return {"new_contract": reader.word()}


def _registration(reader: PayloadReader, _: int) -> Fields:
    return {"emitter_chain": reader.number(2), "emitter_address": reader.word()}


def _guardian_set(reader: PayloadReader, _: int) -> Fields:
    index = reader.number(4)
    return {
        "new_guardian_set_index": index,
        "guardians": reader.repeated(reader.number(1), reader.evm_address),
    }


def _message_fee(reader: PayloadReader, _: int) -> Fields:
    return {"message_fee": reader.uint256()}


def _transfer_fees(reader: PayloadReader, chain: int) -> Fields:
    if chain in _COSMWASM_CORE:
        recipient = reader.word()
        return {"amount": reader.uint256(), "recipient": recipient}
    return {"amount": reader.uint256(), "recipient": reader.word()}


def _recover_chain_id(reader: PayloadReader, _: int) -> Fields:
    return {"evm_chain_id": reader.uint256()}


def _pausers(reader: PayloadReader, _: int) -> Fields:
    """Read addresses of the target chain's own length; null: the role is not assigned."""
    return {role: reader.raw(reader.number(1)).hex() or None for role in ("pauser", "freezer", "unpauser")}


def _modify_balance(reader: PayloadReader, _: int) -> Fields:
    return {
        "sequence": str(reader.number(8)),
        "chain_id": reader.number(2),
        "token_chain": reader.number(2),
        "token_address": reader.word(),
        "kind": {1: "add", 2: "subtract"}.get(kind := reader.number(1), str(kind)),
        "amount": reader.uint256(),
        "reason": reader.raw(_REASON_SIZE).strip(b"\0 ").decode("utf-8", "replace"),
    }


def _hash(name: str) -> LayoutReader:
    return lambda reader, _: {name: reader.word()}


def _wasm_allowlist(reader: PayloadReader, _: int) -> Fields:
    return {"contract_address": reader.word(), "code_id": str(reader.number(8))}


def _schedule_upgrade(reader: PayloadReader, _: int) -> Fields:
    """Read a name without a length: all but the height, the last 8 bytes."""
    name = reader.text(max(reader.remaining - 8, 0))
    return {"name": name, "height": str(reader.number(8))}


def _nothing(_: PayloadReader, __: int) -> Fields:
    return {}


def _slashing(reader: PayloadReader, _: int) -> Fields:
    names = (
        "signed_blocks_window",
        "min_signed_per_window",
        "downtime_jail_duration",
        "slash_fraction_double_sign",
        "slash_fraction_downtime",
    )
    return {name: str(reader.number(8)) for name in names}


def _finality(reader: PayloadReader, _: int) -> Fields:
    return {"finality": reader.number(1)}


def _emitter_and_domain(reader: PayloadReader, chain: int) -> Fields:
    return {**_registration(reader, chain), "circle_domain": reader.number(4)}


def _channel(reader: PayloadReader, _: int) -> Fields:
    """Read channel and chain, in the order of early messages, chain first, where the channel shows it."""
    body = reader.raw(_CHANNEL_SIZE + 2)
    try:
        current = PayloadReader(body)
        return {"channel_id": current.text(_CHANNEL_SIZE), "chain_id": current.number(2)}
    except LayoutError:
        early = PayloadReader(body)
        chain = early.number(2)
        return {"channel_id": early.text(_CHANNEL_SIZE), "chain_id": chain}


def _evm_call(reader: PayloadReader, _: int) -> Fields:
    contracts = {name: reader.evm_address() for name in ("governance_contract", "target_contract")}
    return {**contracts, "call_data": reader.raw(reader.number(2)).hex()}


def _solana_call(reader: PayloadReader, _: int) -> Fields:
    def account() -> Fields:
        return {
            "address": reader.word(),
            "is_signer": bool(reader.number(1)),
            "is_writable": bool(reader.number(1)),
        }

    return {
        "governance_contract": reader.word(),
        "program": reader.word(),
        "accounts": reader.repeated(reader.number(2), account),
        "data": reader.raw(reader.number(2)).hex(),
    }


def _sui_call(reader: PayloadReader, _: int) -> Fields:
    return {"governance_contract": reader.word(), "payload": reader.rest().hex()}


def _delegated_guardians(reader: PayloadReader, _: int) -> Fields:
    def config() -> Fields:
        return {
            "chain_id": reader.number(2),
            "threshold": reader.number(1),
            "guardians": reader.repeated(reader.number(1), reader.evm_address),
        }

    return {"config_index": reader.uint256(), "configs": reader.repeated(reader.number(1), config)}


def _manager_set(reader: PayloadReader, _: int) -> Fields:
    fields: Fields = {"manager_chain": reader.number(2), "manager_set_index": reader.number(4)}
    if (kind := reader.number(1)) != _MULTISIG:
        raise LayoutError(f"manager set of type {kind}")
    threshold, count = reader.number(1), reader.number(1)
    keys = reader.repeated(count, lambda: reader.raw(_PUBLIC_KEY_SIZE).hex())
    return {**fields, "threshold": threshold, "public_keys": keys}


_BRIDGE: dict[int, tuple[str, LayoutReader]] = {
    1: ("RegisterChain", _registration),
    2: ("ContractUpgrade", _upgrade),
    3: (RECOVER_CHAIN_ID, _recover_chain_id),
}
_RELAYER: dict[int, tuple[str, LayoutReader]] = {
    1: ("RegisterChain", _registration),
    2: ("ContractUpgrade", _upgrade),
    3: ("SetDefaultDeliveryProvider", _upgrade),
}
_ACCOUNTANT: dict[int, tuple[str, LayoutReader]] = {1: ("ModifyBalance", _modify_balance)}
_IBC: dict[int, tuple[str, LayoutReader]] = {1: ("UpdateChannelChain", _channel)}

GOVERNANCE_LAYOUTS: Mapping[str, Mapping[int, tuple[str, LayoutReader]]] = {
    "Core": {
        1: ("ContractUpgrade", _upgrade),
        2: ("GuardianSetUpgrade", _guardian_set),
        3: ("SetMessageFee", _message_fee),
        4: ("TransferFees", _transfer_fees),
        5: (RECOVER_CHAIN_ID, _recover_chain_id),
    },
    "TokenBridge": {**_BRIDGE, 4: ("SetPauserAddresses", _pausers)},
    "NFTBridge": _BRIDGE,
    "WormholeRelayer": _RELAYER,
    "CoreRelayer": _RELAYER,
    "GlobalAccountant": _ACCOUNTANT,
    "NTTGlobalAccountant": _ACCOUNTANT,
    "WasmdModule": {
        1: ("StoreCode", _hash("wasm_hash")),
        2: ("InstantiateContract", _hash("instantiation_params_hash")),
        3: ("MigrateContract", _hash("migration_params_hash")),
        4: ("AddWasmInstantiateAllowlist", _wasm_allowlist),
        5: ("DeleteWasmInstantiateAllowlist", _wasm_allowlist),
    },
    "GatewayModule": {
        1: ("ScheduleUpgrade", _schedule_upgrade),
        2: ("CancelUpgrade", _nothing),
        3: ("SetIbcComposabilityMwContract", _hash("contract_address")),
        4: ("SlashingParamsUpdate", _slashing),
    },
    "CircleIntegration": {
        1: ("UpdateWormholeFinality", _finality),
        2: ("RegisterEmitterAndDomain", _emitter_and_domain),
        3: ("UpgradeContractImplementation", _upgrade),
    },
    "IbcReceiver": _IBC,
    "IbcTranslator": _IBC,
    "GeneralPurposeGovernance": {
        1: ("EvmCall", _evm_call),
        2: ("SolanaCall", _solana_call),
        3: ("SuiCall", _sui_call),
    },
    "DelegatedGuardians": {1: ("SetConfig", _delegated_guardians)},
    "DelegatedManager": {1: ("ManagerSetUpdate", _manager_set)},
}
"""Name and reader of every action, by module and number."""
