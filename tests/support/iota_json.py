"""Renders decoded columns as the JSON that nodes answer with, so that they can be compared field by field."""

from __future__ import annotations

from permalake.iota.codec.blocks import MILESTONE, TAGGED_DATA, TRANSACTION

ADDRESS_KEYS = {0: "pubKeyHash", 8: "aliasId", 16: "nftId"}


def block_json(blocks, row, protocol):
    """The message (TIP-13) or block (TIP-25) of a row."""
    parents = blocks.parent[blocks.parent_offset[row] : blocks.parent_offset[row + 1]]
    return (_message if protocol == "chrysalis" else _block)(blocks, row, [bytes(p).hex() for p in parents])


def _block(blocks, row, parents):
    result = {"protocolVersion": int(blocks.version[row]), "parents": [f"0x{p}" for p in parents]}
    payload = _payload(blocks, row, "stardust")
    return result | ({"payload": payload} if payload else {}) | {"nonce": str(blocks.nonce[row])}


def _message(blocks, row, parents):
    return {
        "networkId": str(blocks.network_id[row]),
        "parentMessageIds": parents,
        "payload": _payload(blocks, row, "chrysalis"),
        "nonce": str(blocks.nonce[row]),
    }


def cut(data, start, length):
    return data[start : start + length].tobytes()


def _payload(blocks, row, protocol):
    kind = blocks.payload_kind[row]
    if kind == TAGGED_DATA:
        return _tagged_data(blocks, row, protocol)
    if kind == TRANSACTION:
        return _transaction(blocks, row, protocol)
    if kind == MILESTONE:
        milestone = blocks.milestones[row]
        return (chrysalis_milestone if protocol == "chrysalis" else stardust_milestone)(milestone)
    return None


def _tagged_data(blocks, row, protocol):
    tag = cut(blocks.data, blocks.tag_start[row], blocks.tag_length[row]).hex()
    data = cut(blocks.data, blocks.tag_data_start[row], blocks.tag_data_length[row]).hex()
    if protocol == "chrysalis":
        return {"type": 2, "index": tag, "data": data}
    return {"type": 5, "tag": f"0x{tag}", "data": f"0x{data}"}


def _elements(parts, transaction):
    return [at for at in range(len(parts)) if parts.transaction[at] == transaction]


def _transaction(blocks, row, protocol):
    transactions = blocks.transactions
    at = transactions.block.tolist().index(row)
    prefix = "" if protocol == "chrysalis" else "0x"
    inputs = []
    for part in _elements(transactions.inputs, at):
        output_id = bytes(transactions.inputs.output_id[part])
        index = int.from_bytes(output_id[32:], "little")
        inputs.append(
            {"type": 0, "transactionId": prefix + output_id[:32].hex(), "transactionOutputIndex": index}
        )
    outputs = [output_json(transactions.output, part) for part in _elements(transactions.outputs, at)]
    unlocks = [
        _unlock(blocks.data, transactions.unlocks, part, prefix)
        for part in _elements(transactions.unlocks, at)
    ]
    tagged = _has_essence_payload(blocks, row, at)
    inner = _tagged_data(blocks, row, protocol) if tagged else None
    if protocol == "chrysalis":
        essence = {"type": 0, "inputs": inputs, "outputs": outputs, "payload": inner}
        return {"type": 0, "essence": essence, "unlockBlocks": unlocks}
    essence = {"type": 1, "networkId": str(transactions.network_id[at]), "inputs": inputs}
    essence |= {
        "inputsCommitment": f"0x{bytes(transactions.inputs_commitment[at]).hex()}",
        "outputs": outputs,
    }
    essence |= {"payload": inner} if inner else {}
    return {"type": 6, "essence": essence, "unlocks": unlocks}


def _has_essence_payload(blocks, row, at):
    transactions = blocks.transactions
    last = _elements(transactions.outputs, at)[-1]
    end = transactions.outputs.start[last] + transactions.outputs.length[last]
    return transactions.essence_start[at] + transactions.essence_length[at] != end + 4


def _unlock(data, unlocks, part, prefix):
    kind, start = int(unlocks.kind[part]), unlocks.start[part]
    if kind:
        return {"type": kind, "reference": int(unlocks.reference[part])}
    key, signature = cut(data, start + 2, 32).hex(), cut(data, start + 34, 64).hex()
    return {"type": 0, "signature": {"type": 0, "publicKey": prefix + key, "signature": prefix + signature}}


def _address(addresses, at):
    kind = int(addresses.kind[at])
    return {"type": kind, ADDRESS_KEYS[kind]: f"0x{bytes(addresses.value[at]).hex()}"}


def _u256(value):
    return hex(int.from_bytes(bytes(value), "little"))


def output_json(outputs, at):
    """An output; lists that are empty are left out, as nodes do."""
    kind, amount = int(outputs.kind[at]), int(outputs.amount[at])
    if kind < 2:
        owner = {"type": int(outputs.address.kind[at]), "address": bytes(outputs.address.value[at]).hex()}
        return {"type": kind, "address": owner, "amount": amount}
    result = {"type": kind, "amount": str(amount)}
    tokens = range(outputs.native_token_offset[at], outputs.native_token_offset[at + 1])
    if tokens:
        result["nativeTokens"] = [
            {
                "id": f"0x{bytes(outputs.native_token_id[token]).hex()}",
                "amount": _u256(outputs.native_token_amount[token]),
            }
            for token in tokens
        ]
    identity = f"0x{bytes(outputs.chain_id[at, :32]).hex()}"
    if kind == 4:
        metadata = cut(outputs.data, outputs.state_metadata_start[at], outputs.state_metadata_length[at])
        result |= {"aliasId": identity, "stateIndex": int(outputs.state_index[at])}
        result |= {"stateMetadata": f"0x{metadata.hex()}", "foundryCounter": int(outputs.foundry_counter[at])}
    elif kind == 5:
        names = (("mintedTokens", "minted"), ("meltedTokens", "melted"), ("maximumSupply", "maximum"))
        scheme = {name: _u256(getattr(outputs, column)[at]) for name, column in names}
        result |= {"serialNumber": int(outputs.serial_number[at]), "tokenScheme": {"type": 0} | scheme}
    elif kind == 6:
        result["nftId"] = identity
    result["unlockConditions"] = _conditions(outputs, at, kind)
    lists = {"features": _features(outputs, at), "immutableFeatures": _immutable_features(outputs, at)}
    return result | {name: elements for name, elements in lists.items() if elements}


def _conditions(outputs, at, kind):
    found = []
    if kind == 5:
        return [{"type": 6, "address": _address(outputs.address, at)}]
    if outputs.address.kind[at] >= 0:
        found.append({"type": 0, "address": _address(outputs.address, at)})
    if outputs.storage_return.kind[at] >= 0:
        amount = str(outputs.storage_return_amount[at])
        found.append({"type": 1, "returnAddress": _address(outputs.storage_return, at), "amount": amount})
    if outputs.timelock_time[at]:
        found.append({"type": 2, "unixTime": int(outputs.timelock_time[at])})
    if outputs.expiration_return.kind[at] >= 0:
        time = int(outputs.expiration_time[at])
        found.append({"type": 3, "returnAddress": _address(outputs.expiration_return, at), "unixTime": time})
    for condition, column in ((4, outputs.state_controller), (5, outputs.governor)):
        if column.kind[at] >= 0:
            found.append({"type": condition, "address": _address(column, at)})
    return found


def _features(outputs, at):
    found = []
    if outputs.sender.kind[at] >= 0:
        found.append({"type": 0, "address": _address(outputs.sender, at)})
    if outputs.metadata_length[at]:
        data = cut(outputs.data, outputs.metadata_start[at], outputs.metadata_length[at])
        found.append({"type": 2, "data": f"0x{data.hex()}"})
    if outputs.tag_length[at]:
        tag = cut(outputs.data, outputs.tag_start[at], outputs.tag_length[at])
        found.append({"type": 3, "tag": f"0x{tag.hex()}"})
    return found


def _immutable_features(outputs, at):
    found = []
    if outputs.issuer.kind[at] >= 0:
        found.append({"type": 1, "address": _address(outputs.issuer, at)})
    if outputs.immutable_metadata_length[at]:
        start, length = outputs.immutable_metadata_start[at], outputs.immutable_metadata_length[at]
        found.append({"type": 2, "data": f"0x{cut(outputs.data, start, length).hex()}"})
    return found


def chrysalis_milestone(milestone):
    """A Chrysalis milestone payload."""
    return {
        "type": 1,
        "index": milestone.index,
        "timestamp": milestone.timestamp,
        "parentMessageIds": [parent.hex() for parent in milestone.parents],
        "inclusionMerkleProof": milestone.applied_root.hex(),
        "nextPoWScore": milestone.next_pow_score,
        "nextPoWScoreMilestoneIndex": milestone.next_pow_score_index,
        "publicKeys": [key.hex() for key, _ in milestone.signatures],
        "receipt": _chrysalis_receipt(milestone.receipt) if milestone.receipt else None,
        "signatures": [signature.hex() for _, signature in milestone.signatures],
    }


def _chrysalis_receipt(receipt):
    funds = [
        {
            "tailTransactionHash": entry.tail_transaction_hash.hex(),
            "address": {"type": entry.address_kind, "address": entry.address.hex()},
            "deposit": entry.deposit,
        }
        for entry in receipt.funds
    ]
    treasury = {
        "type": 4,
        "input": {"type": 1, "milestoneId": receipt.treasury_input.hex()},
        "output": {"type": 2, "amount": receipt.treasury_output},
    }
    head = {"type": 3, "migratedAt": receipt.migrated_at, "final": receipt.final}
    return head | {"funds": funds, "transaction": treasury}


def stardust_milestone(milestone):
    """A Stardust milestone payload (without receipts, which no Stardust network had)."""
    options = []
    if milestone.protocol_parameters:
        announced = milestone.protocol_parameters
        head = {"type": 1, "targetMilestoneIndex": announced.target_index}
        options.append(
            head | {"protocolVersion": announced.version, "params": f"0x{announced.parameters.hex()}"}
        )
    return {
        "type": 7,
        "index": milestone.index,
        "timestamp": milestone.timestamp,
        "protocolVersion": milestone.protocol_version,
        "previousMilestoneId": f"0x{milestone.previous_milestone_id.hex()}",
        "parents": [f"0x{parent.hex()}" for parent in milestone.parents],
        "inclusionMerkleRoot": f"0x{milestone.inclusion_root.hex()}",
        "appliedMerkleRoot": f"0x{milestone.applied_root.hex()}",
        "metadata": f"0x{milestone.metadata.hex()}",
        "options": options,
        "signatures": [
            {"type": 0, "publicKey": f"0x{key.hex()}", "signature": f"0x{signature.hex()}"}
            for key, signature in milestone.signatures
        ],
    }
