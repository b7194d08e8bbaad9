"""Lines of a synthetic ``archive_rest`` directory: bodies of the REST API (TIP-13, TIP-25), bytes in hex."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from permalake.iota.codec.encode_outputs import Address, Output
from permalake.iota.codec.milestones import Milestone
from permalake.iota.codec.outputs import (
    ALIAS,
    BASIC,
    DUST_ALLOWANCE,
    FOUNDRY,
    NFT,
    NFT_ADDRESS,
    SINGLE,
    Protocol,
)
from permalake.iota.codec.receipts import Receipt
from permalake_simulate.iota.epoch_ledger import Booked, SimulatedCoin

_STATES = ("conflicting", "included", "noTransaction")


class Shape:
    """How a protocol's REST API writes ids and names messages."""

    def __init__(self, protocol: Protocol):
        self.is_stardust = protocol == "stardust"
        self.prefix = "0x" if self.is_stardust else ""
        self.id_name = "blockId" if self.is_stardust else "messageId"
        self.parents_name = "parents" if self.is_stardust else "parentMessageIds"
        self.blocks_file = "blocks" if self.is_stardust else "messages"

    def hex(self, value: bytes) -> str:
        """Return an id as the API writes it."""
        return self.prefix + value.hex()

    def block(
        self, index: int, block_id: bytes, raw: bytes, parents: Iterable[bytes], state: int, **more: int
    ) -> str:
        """Return a message with its metadata; formatted by hand, as there are millions of them."""
        listed = '","'.join(self.hex(parent) for parent in parents)
        extra = "".join(f',"{name}":{value}' for name, value in more.items())
        return (
            f'{{"milestone":{index},"raw":"{raw.hex()}","metadata":{{"{self.id_name}":"{self.hex(block_id)}",'
            f'"{self.parents_name}":["{listed}"],"isSolid":true,"referencedByMilestoneIndex":{index},'
            f'"ledgerInclusionState":"{_STATES[state]}"{extra}}}}}\n'
        )

    def created(self, index: int, coin: SimulatedCoin, booked: Booked) -> str:
        """Return an output created in milestone ``index``."""
        return _line({"milestone": index, "outputId": self.hex(coin.output_id)} | self._output(coin, booked))

    def consumed(self, index: int, time: int, coin: SimulatedCoin, booked: Booked, spent_by: bytes) -> str:
        """Return an output consumed in milestone ``index`` by that transaction."""
        spent: dict[str, Any] = {"transactionIdSpent": self.hex(spent_by), "milestoneIndexSpent": index}
        if self.is_stardust:
            spent["milestoneTimestampSpent"] = time
        head = {"milestone": index, "outputId": self.hex(coin.output_id)}
        return _line(head | spent | self._output(coin, booked))

    def _output(self, coin: SimulatedCoin, booked: Booked) -> dict[str, Any]:
        where: dict[str, Any] = {self.id_name: self.hex(booked.block_id)}
        if self.is_stardust:
            where |= {"milestoneIndexBooked": booked.index, "milestoneTimestampBooked": booked.time}
        body = stardust_output(coin.output) if self.is_stardust else chrysalis_output(coin.output)
        return {**where, "output": body, "rawOutput": coin.raw.hex()}

    def changes(self, index: int, created: Iterable[bytes], consumed: Iterable[bytes]) -> str:
        """Return the ids that a milestone created and consumed."""
        return _line(
            {
                "index": index,
                "createdOutputs": [self.hex(output_id) for output_id in created],
                "consumedOutputs": [self.hex(output_id) for output_id in consumed],
            }
        )

    def milestone(
        self, milestone: Milestone, raw: bytes, block_id: bytes, size: int, network: dict[str, Any]
    ) -> str:
        """Return a milestone with the number of messages that it references."""
        line: dict[str, Any] = {"index": milestone.index, "timestamp": milestone.timestamp}
        if not self.is_stardust:
            line["messageId"] = block_id.hex()
        line["milestoneId"] = self.hex(milestone.milestone_id)
        line["payload"] = self._stardust(milestone) if self.is_stardust else self._chrysalis(milestone)
        return _line(line | {"rawPayload": raw.hex(), "protocolParameters": network, "coneSize": size})

    def _stardust(self, milestone: Milestone) -> dict[str, Any]:
        parameters = milestone.protocol_parameters
        return {
            "type": 7,
            "index": milestone.index,
            "timestamp": milestone.timestamp,
            "protocolVersion": milestone.protocol_version,
            "previousMilestoneId": self.hex(milestone.previous_milestone_id or b""),
            "parents": [self.hex(parent) for parent in milestone.parents],
            "inclusionMerkleRoot": self.hex(milestone.inclusion_root or b""),
            "appliedMerkleRoot": self.hex(milestone.applied_root),
            "metadata": self.hex(milestone.metadata),
            "options": []
            if parameters is None
            else [
                {
                    "type": 1,
                    "targetMilestoneIndex": parameters.target_index,
                    "protocolVersion": parameters.version,
                    "params": self.hex(parameters.parameters),
                }
            ],
            "signatures": [
                {"type": 0, "publicKey": self.hex(key), "signature": self.hex(signature)}
                for key, signature in milestone.signatures
            ],
        }

    def _chrysalis(self, milestone: Milestone) -> dict[str, Any]:
        return {
            "type": 1,
            "index": milestone.index,
            "timestamp": milestone.timestamp,
            "parentMessageIds": [parent.hex() for parent in milestone.parents],
            "inclusionMerkleProof": milestone.applied_root.hex(),
            "nextPoWScore": 0,
            "nextPoWScoreMilestoneIndex": 0,
            "publicKeys": [key.hex() for key, _ in milestone.signatures],
            "receipt": _receipt(milestone.receipt) if milestone.receipt else None,
            "signatures": [signature.hex() for _, signature in milestone.signatures],
        }


def _receipt(receipt: Receipt) -> dict[str, Any]:
    return {
        "type": 3,
        "migratedAt": receipt.migrated_at,
        "final": receipt.final,
        "funds": [
            {
                "tailTransactionHash": fund.tail_transaction_hash.hex(),
                "address": {"type": fund.address_kind, "address": fund.address.hex()},
                "deposit": fund.deposit,
            }
            for fund in receipt.funds
        ],
        "transaction": {
            "type": 4,
            "input": {"type": 1, "milestoneId": receipt.treasury_input.hex()},
            "output": {"type": 2, "amount": receipt.treasury_output},
        },
    }


def chrysalis_output(output: Output) -> dict[str, Any]:
    """Return a Chrysalis output as in REST v1."""
    owner = output.address.value.hex() if output.address else ""
    kind = DUST_ALLOWANCE if output.kind == DUST_ALLOWANCE else SINGLE
    return {"type": kind, "address": {"type": 0, "address": owner}, "amount": output.amount}


def stardust_output(output: Output) -> dict[str, Any]:
    """Return a Stardust output as in core v2."""
    body: dict[str, Any] = {"type": output.kind, "amount": str(output.amount)}
    if output.native_tokens:
        body["nativeTokens"] = [
            {"id": "0x" + token.token_id.hex(), "amount": hex(token.amount)} for token in output.native_tokens
        ]
    body |= _own(output)
    body["unlockConditions"] = list(_conditions(output))
    if features := list(_features(output)):
        body["features"] = features
    immutable = [{"type": 1, "address": _address(output.issuer)}] if output.issuer else []
    if output.immutable_metadata:
        immutable.append({"type": 2, "data": "0x" + output.immutable_metadata.hex()})
    return body | ({"immutableFeatures": immutable} if immutable else {})


def _own(output: Output) -> dict[str, Any]:
    if output.kind == NFT:
        return {"nftId": "0x" + output.chain_id.hex()}
    if output.kind == ALIAS:
        return {
            "aliasId": "0x" + output.chain_id.hex(),
            "stateIndex": output.state_index,
            "stateMetadata": "0x" + output.state_metadata.hex(),
            "foundryCounter": output.foundry_counter,
        }
    if output.kind == FOUNDRY:
        supply = {"mintedTokens": output.minted, "meltedTokens": output.melted}
        scheme = {name: hex(value) for name, value in supply.items()}
        scheme["maximumSupply"] = hex(output.maximum)
        return {"serialNumber": output.serial_number, "tokenScheme": {"type": 0, **scheme}}
    return {}


def _conditions(output: Output) -> Iterator[dict[str, Any]]:
    if output.kind in (BASIC, NFT) and output.address:
        yield {"type": 0, "address": _address(output.address)}
    if output.storage_return:
        address, amount = output.storage_return
        yield {"type": 1, "returnAddress": _address(address), "amount": str(amount)}
    if output.timelock:
        yield {"type": 2, "unixTime": output.timelock}
    if output.expiration:
        address, time = output.expiration
        yield {"type": 3, "returnAddress": _address(address), "unixTime": time}
    if output.state_controller:
        yield {"type": 4, "address": _address(output.state_controller)}
    if output.governor:
        yield {"type": 5, "address": _address(output.governor)}
    if output.kind == FOUNDRY and output.address:
        yield {"type": 6, "address": _address(output.address)}


def _features(output: Output) -> Iterator[dict[str, Any]]:
    if output.sender:
        yield {"type": 0, "address": _address(output.sender)}
    if output.metadata:
        yield {"type": 2, "data": "0x" + output.metadata.hex()}
    if output.tag:
        yield {"type": 3, "tag": "0x" + output.tag.hex()}


def _address(address: Address) -> dict[str, Any]:
    name = {0: "pubKeyHash", NFT_ADDRESS: "nftId"}.get(address.kind, "aliasId")
    return {"type": address.kind, name: "0x" + address.value.hex()}


def _line(body: dict[str, Any]) -> str:
    return json.dumps(body, separators=(",", ":")) + "\n"
