"""JSON-RPC nodes of many chains on this machine, under one address: ``{url}/{Wormhole chain id}``. They keep
to the real ones' shapes and misbehave on a seeded schedule, as wholes and call by call."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from functools import cache

from permalake.wormhole.codec import abi
from permalake.wormhole.codec.solana_accounts import (
    METADATA_PROGRAM,
    TOKEN_PROGRAMS,
    from_base58,
    metadata_account,
)
from permalake.wormhole.enrich.evm_logs import LOG_MESSAGE_PUBLISHED
from permalake.wormhole.enrich.evm_redemptions import TRANSFER_REDEEMED
from support.faulty_server import FaultyServer, busiest

PASSING = ({"code": -32005, "message": "limit exceeded"}, {"code": -32603, "message": "internal error"})
REVERTED = {"code": 3, "message": "execution reverted", "data": "0x"}
SYSTEM_PROGRAM = "1" * 32
_SELECTORS = {abi.selector(f"{name}()").hex(): name for name in ("symbol", "name", "decimals")}


class RefusalError(Exception):
    """The node's no, as a JSON-RPC error."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.error = error


class EvmChain:
    """An EVM chain. ``transactions``: hash -> (sender, [(emitter, sequence)], block); ``wrapped`` and
    ``wrapped_nfts``: (chain, address) -> asset; ``tokens``: address -> (symbol, name, decimals), of which
    bytes are returned as bytes32 and None reverts. ``completed``: digests that a bridge redeemed;
    ``redemptions``: hash -> (sender, [(chain, emitter, sequence)], block, fields of the receipt).
    ``held`` and ``outstanding``: token -> {block: number from then on}, None reverts; blocks before
    ``oldest_state`` have lost it. ``chain_id``: its EVM id; None: the node does not tell."""

    def __init__(
        self,
        core="0x" + "c0" * 20,
        bridge="0x" + "b0" * 20,
        nft_bridge="0x" + "bf" * 20,
        first=1_600_000_000,
        every=12,
        chain_id=None,
    ):
        self.chain_id = chain_id
        self.core, self.bridge, self.nft_bridge = core, bridge, nft_bridge
        self.first, self.every = first, every
        self.most_blocks = 2000
        self.too_many_blocks = {"code": -32000, "message": "exceed maximum block range"}
        self.last_block = 20_000_000
        self.transactions, self.wrapped, self.wrapped_nfts, self.tokens = {}, {}, {}, {}
        self.completed, self.redemptions = set(), {}
        self.held, self.outstanding = {}, {}
        self.oldest_state = 0
        self.forgotten = {"code": -32000, "message": "missing trie node 0a0b (path ) state is not available"}

    def call(self, method, params):
        match method:
            case "eth_chainId" if self.chain_id is not None:
                return hex(self.chain_id)
            case "eth_getTransactionReceipt":
                return self._receipt(*params)
            case "eth_call":
                block = self._number(params[1])
                if block < self.oldest_state:
                    raise RefusalError(self.forgotten)
                return "0x" + self._read(params[0]["to"], bytes.fromhex(params[0]["data"][2:]), block).hex()
            case "eth_getLogs":
                return self._logs(params[0])
            case "eth_getBlockByNumber":
                number = self._number(params[0])
                return {"number": hex(number), "timestamp": hex(self.first + number * self.every)}
        raise RefusalError({"code": -32601, "message": f"the method {method} does not exist"})

    def _number(self, block):
        return self.last_block if block in {"latest", "finalized"} else int(block, 16)

    def _receipt(self, tx):
        if tx in self.redemptions:
            sender, redeemed, block, fields = self.redemptions[tx]
            logs = [self._redeemed(tx, *message) for message in redeemed]
            return {"transactionHash": tx, "blockNumber": hex(block), "from": sender, "logs": logs, **fields}
        if tx not in self.transactions:
            return None
        sender, messages, block = self.transactions[tx]
        other = {"address": "0x" + "12" * 20, "topics": ["0x" + "34" * 32], "data": "0x"}
        return {
            "transactionHash": tx,
            "blockNumber": hex(block),
            "from": sender,
            "to": self.bridge,
            "status": "0x1",
            "logs": [other, *(self._log(tx, *message) for message in messages)],
        }

    def _log(self, tx, emitter, sequence):
        data = sequence.to_bytes(32, "big") + bytes(31) + b"\x07" + (0x80).to_bytes(32, "big") + bytes(64)
        topics = [LOG_MESSAGE_PUBLISHED, "0x" + emitter]
        return {"address": self.core, "topics": topics, "data": "0x" + data.hex(), "transactionHash": tx}

    def _redeemed(self, tx, chain, emitter, sequence):
        topics = [TRANSFER_REDEEMED, f"0x{chain:064x}", "0x" + emitter, f"0x{sequence:064x}"]
        return {"address": self.bridge, "topics": topics, "data": "0x", "transactionHash": tx}

    def _logs(self, wanted):
        first, last = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)
        if last - first >= self.most_blocks:
            raise RefusalError(self.too_many_blocks)
        if wanted["topics"][0] == TRANSFER_REDEEMED:
            return [
                log
                for tx, (_, redeemed, block, _) in self.redemptions.items()
                for log in (self._redeemed(tx, *message) for message in redeemed)
                if first <= block <= last and wanted["address"] == self.bridge
                if all(
                    topic in asked
                    for topic, asked in zip(log["topics"][1:], wanted["topics"][1:], strict=True)
                )
            ]
        return [
            self._log(tx, *message)
            for tx, (_, messages, block) in self.transactions.items()
            for message in messages
            if first <= block <= last and "0x" + message[0] in wanted["topics"][1]
        ]

    def _read(self, contract, data, block):
        if data[:4] == abi.selector("outstandingBridged(address)"):
            return _as_of(self.outstanding, "0x" + data[16:36].hex(), block)
        if data[:4] == abi.selector("balanceOf(address)"):
            assert "0x" + data[16:36].hex() == self.bridge
            return _as_of(self.held, contract, block)
        return self._view(contract, data)

    def _view(self, contract, data):
        if data[:4] == abi.selector("isTransferCompleted(bytes32)"):
            if contract not in {self.bridge, self.nft_bridge}:
                return b""
            return bytes(31) + bytes([data[4:36].hex() in self.completed])
        wrapped = {self.bridge: self.wrapped, self.nft_bridge: self.wrapped_nfts}.get(contract)
        if wrapped is not None and data[:4] == abi.selector("wrappedAsset(uint16,bytes32)"):
            found = wrapped.get((int.from_bytes(data[4:36], "big"), data[36:68].hex()))
            return bytes.fromhex((found or "0x" + "00" * 20)[2:]).rjust(32, b"\0")
        name = _SELECTORS.get(data.hex())
        if contract not in self.tokens or name is None:
            return b""  # no contract there
        value = dict(zip(("symbol", "name", "decimals"), self.tokens[contract], strict=True))[name]
        if value is None:
            raise RefusalError(REVERTED)
        if isinstance(value, int):
            return value.to_bytes(32, "big")
        if isinstance(value, bytes):
            return value.ljust(32, b"\0")
        text = value.encode()
        return (
            (32).to_bytes(32, "big")
            + len(text).to_bytes(32, "big")
            + text.ljust(-(-len(text) // 32) * 32, b"\0")
        )


def _as_of(numbers, token, block):
    """What a token's contract returns at a block: nothing where it is not deployed yet."""
    since = max((at for at in numbers.get(token, {}) if at <= block), default=None)
    if since is None:
        return b""
    if numbers[token][since] is None:
        raise RefusalError(REVERTED)
    return numbers[token][since].to_bytes(32, "big")


class SolanaChain:
    """``transactions``: signature -> (first signer, failed); ``messages``: account -> its signatures;
    ``owners``: token account -> owner; ``mints``: mint -> (symbol, name, decimals), symbol None without
    metadata; ``wallets``: accounts that are no token accounts; ``versions``: signature -> version, 0 for
    others. With ``raw`` the node parses nothing."""

    def __init__(self, raw=False):
        self.raw = raw
        self.transactions, self.messages, self.owners, self.mints, self.wallets = {}, {}, {}, {}, set()
        self.versions = {}

    def call(self, method, params):
        match method:
            case "getTransaction":
                version = self.versions.get(params[0], 0)
                if params[1]["maxSupportedTransactionVersion"] < version:
                    words = f"Transaction version ({version}) is not supported by the requesting client."
                    raise RefusalError({"code": -32015, "message": words})
                return self._transaction(params[0])
            case "getSignaturesForAddress":
                found = self.messages.get(params[0], [])
                return [
                    {"signature": one, "slot": 1, "err": self.transactions[one][1], "blockTime": 1}
                    for one in found
                ]
            case "getAccountInfo":
                return {"context": {"slot": 1}, "value": self._account(params[0])}
        raise RefusalError({"code": -32601, "message": "Method not found"})

    def _transaction(self, signature):
        if signature not in self.transactions:
            return None
        signer, failed = self.transactions[signature]
        message = {"accountKeys": [signer, SYSTEM_PROGRAM], "header": {"numRequiredSignatures": 1}}
        return {
            "slot": 1,
            "meta": {"err": failed},
            "transaction": {"message": message, "signatures": [signature]},
        }

    def _account(self, address):
        described = {_metadata(mint): mint for mint, told in self.mints.items() if told[0] is not None}
        if address in self.owners:
            info = {"mint": address, "owner": self.owners[address], "state": "initialized"}
            raw = from_base58(address).rjust(32, b"\0") + from_base58(self.owners[address]).rjust(32, b"\0")
            return self._of(TOKEN_PROGRAMS[0], "account", info, raw.ljust(165, b"\0"))
        if address in self.mints:
            info = {"decimals": self.mints[address][2], "supply": "7", "isInitialized": True}
            raw = bytes(44) + bytes([self.mints[address][2], 1]) + bytes(36)
            return self._of(TOKEN_PROGRAMS[0], "mint", info, raw)
        if address in described:
            symbol, name, _ = self.mints[described[address]]
            texts = [
                name.encode().ljust(32, b"\0"),
                symbol.encode().ljust(10, b"\0"),
                b"uri".ljust(200, b"\0"),
            ]
            raw = b"\x04" + bytes(64) + b"".join(len(text).to_bytes(4, "little") + text for text in texts)
            return self._of(METADATA_PROGRAM, None, None, raw)
        return self._of(SYSTEM_PROGRAM, None, None, b"") if address in self.wallets else None

    def _of(self, program, kind, info, raw):
        data = [base64.b64encode(raw).decode(), "base64"]
        if kind and not self.raw:
            data = {"program": "spl-token", "parsed": {"type": kind, "info": info}, "space": len(raw)}
        return {"lamports": 1, "owner": program, "data": data, "executable": False, "rentEpoch": 0}


_metadata = cache(metadata_account)


class RpcServer(FaultyServer):
    """``chains``: Wormhole chain id -> chain. Each call fails on its own with the chance ``errors``.
    ``requests`` holds (arrival, number of calls) and ``answered`` the calls that got their answer, by
    chain."""

    def __init__(self, chains, faulty=0.0, errors=0.0, seed=0, largest_batch=1000):
        super().__init__(faulty, seed)
        self.chains = chains
        self.errors = errors
        self.largest_batch = largest_batch
        self.requests = defaultdict(list)
        self.answered = defaultdict(list)

    def busiest(self, chain):
        """The most calls to a chain within any second."""
        return busiest(arrival for arrival, calls in self.requests[chain] for _ in range(calls))

    def respond(self, handler, body, fault):
        chain, request = int(handler.path.strip("/")), json.loads(body)
        calls = request if isinstance(request, list) else [request]
        self.requests[chain].append((handler.arrived, len(calls)))
        if len(calls) > self.largest_batch:
            return 500, b'{"message": "Batch of more than a few requests are not allowed"}'
        answers = [self._answer(chain, call, fault) for call in calls]
        answers.reverse()  # nobody promises an order
        return 200, json.dumps(answers if isinstance(request, list) else answers[0]).encode()

    def _answer(self, chain, call, fault):
        answer = {"jsonrpc": "2.0", "id": call["id"]}
        if self.chance(self.errors):
            return {**answer, "error": PASSING[call["id"] % len(PASSING)]}
        try:
            result = self.chains[chain].call(call["method"], call["params"])
        except RefusalError as no:
            return {**answer, "error": no.error}
        finally:
            if fault is None:
                self.answered[chain].append(json.dumps([call["method"], call["params"]]))
        return {**answer, "result": result}
