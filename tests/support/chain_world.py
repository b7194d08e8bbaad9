"""The chains of the synthetic world, as nodes would show them: made from its expected rows."""

from __future__ import annotations

from decimal import Decimal

from permalake.wormhole.codec.native_addresses import base58
from permalake.wormhole.reference import load_reference
from support.rpc_server import EvmChain, SolanaChain

SOLANA = 1


def chains(rows, reference):
    """Wormhole chain id -> chain, from the expected rows by table and the world's reference data.

    Where senders are expected to stay unknown the transaction is unknown to the node, too. Texts of some
    assets come as bytes32; a missing one reverts.
    """
    known = load_reference(reference).chains
    found = {
        number: SolanaChain() if number == SOLANA else _evm(chain)
        for number, chain in known.items()
        if chain.token_bridge and (number == SOLANA or chain.family == "evm")
    }
    published = {row["row_key"]: row for row in rows["message_publication"]}
    routes = {
        row["row_key"]: row
        for table in ("token_transfer_payload", "nft_transfer_payload")
        for row in rows[table]
    }
    values = {row["row_key"]: row for row in rows["token_transfer_details"]}
    for row in rows["token_transfer_payload"]:
        _token(found.get(row["origin_chain"]), row, values[row["row_key"]])
    for row in rows["chain_details"]:
        if route := routes.get(row["row_key"]):
            _source(found, row, published[row["row_key"]])
            _target(found, row, route)
    for row in rows["nft_transfer_payload"]:
        if isinstance(chain := found.get(row["target_chain"]), EvmChain):
            contract = nft_contract(row["origin_address"])
            chain.wrapped_nfts[(row["origin_chain"], row["origin_address"])] = contract
            chain.tokens[contract] = (row["symbol"], row["name"], None)
    return found


def nft_contract(origin_address) -> str:
    """The contract that wraps a collection in this world."""
    return f"0x{origin_address[:40]}"


def _evm(chain):
    nft_bridge = {"nft_bridge": f"0x{chain.nft_bridge[24:]}"} if chain.nft_bridge else {}
    return EvmChain(chain.core, f"0x{chain.token_bridge[24:]}", **nft_bridge, chain_id=chain.evm_chain_id)


def _source(found, row, message):
    chain, tx = found.get(message["emitter_chain"]), message["initiating_tx_id"]
    if chain is None or tx is None or row["sender_address"] is None:
        return
    if isinstance(chain, SolanaChain):
        chain.transactions[tx] = (row["sender_address"], None)
        return
    _, messages, _ = chain.transactions.setdefault(
        tx, (row["sender_address"], [], 1 + len(chain.transactions))
    )
    messages.append((message["emitter_address"], int(message["sequence"])))


def _token(chain, transfer, details):
    """What the token says of itself. Decimals beyond eight cannot be told from amounts, and make none."""
    if chain is None or details["amount"] is None or transfer["amount"] == "0":
        return
    unit = Decimal(transfer["amount"]) / Decimal(details["amount"])
    decimals = next(places for places in range(9) if unit <= 10**places)
    told = (details["origin_symbol"], details["origin_name"], decimals)
    if isinstance(chain, SolanaChain):
        chain.mints[base58(bytes.fromhex(transfer["origin_address"]))] = told
    else:
        chain.tokens[f"0x{transfer['origin_address'][24:]}"] = told


def _target(found, row, route):
    chain = found.get(route["target_chain"])
    if isinstance(chain, SolanaChain):
        account = base58(bytes.fromhex(route["target_address"]))
        if row["receiver_address"] != account:
            chain.owners[account] = row["receiver_address"]
    asset = row["resulting_token_address"]
    if chain is None or asset is None or route["origin_chain"] == route["target_chain"]:
        return
    if isinstance(chain, SolanaChain):
        chain.mints[asset] = (None, None, 8)
        return
    chain.wrapped[(route["origin_chain"], route["origin_address"])] = asset
    texts = [row["resulting_token_symbol"], row["resulting_token_name"]]
    as_words = int(asset, 16) % 3 == 0 and all(text and len(text.encode()) <= 32 for text in texts)
    chain.tokens[asset] = (*(text.encode() if as_words else text for text in texts), 8)
