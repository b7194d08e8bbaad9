"""Documents, pages and answers of services with seeded mutations: none of them crashes its reader."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import json
import random
from collections import Counter
from contextlib import suppress

import pytest

from permalake.config import Settings
from permalake.net.http import Body
from permalake.net.responses import MALFORMED, document
from permalake.wormhole.codec import abi
from permalake.wormhole.enrich import evm, solana
from permalake.wormhole.enrich.evm_logs import messages_in
from permalake.wormhole.enrich.jsonrpc import Call, _NoBatchesError, _replies
from permalake.wormhole.enrich.providers import coingecko, defillama
from permalake.wormhole.enrich.quotes import usd
from permalake.wormhole.enrich.rpc_errors import EVM, SOLANA
from permalake.wormhole.sources import deep_days, guardian, wormholescan
from permalake.wormhole.sources.document_cache import DocumentCache
from permalake.wormhole.sources.vaa_documents import (
    days_of_document,
    time_of_operation,
    time_of_vaa,
    trimmed_operation,
    trimmed_vaa,
)
from support import places
from support.mutations import mutated
from support.rpc_server import EvmChain, SolanaChain

MUTATIONS = 10_000


def outcomes(seed, samples, read):
    """How often ``read`` took a mutated document apart, and how often it rejected it."""
    rng = random.Random(seed)
    counted = Counter()
    for _ in range(MUTATIONS):
        content = mutated(rng, rng.choice(samples))
        try:
            read(document(Body(content, "application/json")))
            counted["read"] += 1
        except MALFORMED:
            counted["rejected"] += 1
    return counted


def vaa_documents():
    lines = gzip.decompress((places.DATA / "wormhole" / "mainnet.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines[:40]]


def operations():
    folder = places.DATA / "wormhole" / "operations"
    found = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    return [one if "operations" in one else {"operations": [one]} for one in found]


class Pages:
    """Reads pages as the source does: a page may be rejected, the documents of one that is not never fail."""

    def __init__(self, folder, kind):
        settings = Settings(lake={"warehouse": str(folder)})
        self.cache = DocumentCache(settings, "fuzz", "http://127.0.0.1")
        self.kind = kind
        self.rows = []

    def read(self, page) -> None:
        found = wormholescan._listed(page, "data" if self.kind == "vaas" else "operations")
        try:
            self.rows += [(*days_of_document(row), row) for row in map(self._trimmed, found)]
        except MALFORMED as error:
            raise AssertionError(f"{error!r} in {found}") from error

    def _trimmed(self, one):
        time_of_vaa(one)
        time_of_operation(one)
        row = trimmed_vaa(one) if self.kind == "vaas" else trimmed_operation(one)
        deep_days._time_of(row)
        return row


@pytest.mark.parametrize("kind", ["vaas", "operations"])
def test_pages_of_wormholescan(tmp_path, kind) -> None:
    samples = [{"data": [one]} for one in vaa_documents()] if kind == "vaas" else operations()
    pages = Pages(tmp_path, kind)
    assert min(outcomes(1, samples, pages.read).values()) > 500
    pages.cache.add(kind, pages.rows)
    first, last = dt.date(1970, 1, 1), dt.date(9999, 12, 31)
    assert len(list(pages.cache.documents(first, last))) > 500


def test_single_vaas_and_counts() -> None:
    one = vaa_documents()[0]
    rows = [{"from": "2024-03-10T00:00:00Z", "emitter_chain": "2", "volume": 1, "count": 7}]
    assert min(outcomes(3, [{"data": one}], deep_days._single).values()) > 500
    assert min(outcomes(4, [rows], lambda found: [deep_days._count(row) for row in found]).values()) > 500


def test_vaas_of_a_guardian() -> None:
    samples = [{"vaaBytes": one["vaa"]} for one in vaa_documents()]
    raw = [base64.b64decode(one["vaaBytes"]) for one in samples]
    assert guardian._vaa_of(samples[0]) == raw[0]
    assert min(outcomes(5, samples, guardian._vaa_of).values()) > 200


@pytest.mark.parametrize(
    ("shape", "sample"),
    [
        (coingecko._prices, {"prices": [[1_700_000_000_000, 1.25], [1_700_003_600_000, 3]]}),
        (defillama._records, {"coins": {"a:b": {"prices": [{"timestamp": 1_700_000_000, "price": 1.5}]}}}),
        (defillama._single, {"coins": {"a:b": {"timestamp": 1_700_000_000, "price": 1.5}}}),
    ],
)
def test_prices(shape, sample) -> None:
    def read(found):
        for rows in shape(found).values() if sample.get("coins") else [shape(found)]:
            for _, price, *_ in rows:
                usd(price)

    assert min(outcomes(6, [sample], read).values()) > 500


def test_errors_of_coingecko() -> None:
    sample = {"error": {"status": {"error_code": 10012, "error_message": "too far back"}}}
    counted = outcomes(7, [sample], coingecko._error_code)
    assert counted["read"] > 500


def evm_samples():
    world = EvmChain()
    tx = "0x" + "11" * 32
    world.transactions = {tx: ("0x" + "a1" * 20, [("0e" * 32, 7)], 5)}
    receipt = world.call("eth_getTransactionReceipt", [tx])
    block = world.call("eth_getBlockByNumber", ["0x5", False])
    return [
        (evm._receipt_of(world.core), receipt),
        (lambda logs: list(messages_in(logs, world.core)), receipt["logs"]),
        (lambda result: (int(result["number"], 16), int(result["timestamp"], 16)), block),
        (abi.returned_number, "0x" + "00" * 64),
        (abi.returned, "0x" + "00" * 64),
    ]


def solana_samples():
    signer = "4Nd1mYbQf1w2jLhVfQf6hZkJfWqPoYk1m8o3VqDg1LwB"
    world = SolanaChain()
    world.owners = {signer: signer}
    world.transactions = {signer: (signer, None)}
    raw = SolanaChain(raw=True)
    raw.owners = {signer: signer}
    account, raw_account = (one.call("getAccountInfo", [signer])["value"] for one in (world, raw))
    return [
        (solana._first_signer, world.call("getTransaction", [signer, {"maxSupportedTransactionVersion": 0}])),
        (solana._oldest, [{"signature": signer, "err": None}]),
        (solana._owner_of, account),
        (solana._owner_of, raw_account),
        (solana._decimals_of, raw_account),
        (solana._texts_of, raw_account),
    ]


@pytest.mark.parametrize(("family", "samples"), [(EVM, evm_samples), (SOLANA, solana_samples)])
def test_replies_of_chains(family, samples) -> None:
    rng = random.Random(8)
    calls = [Call("any", (), shape) for shape, _ in samples()]
    numbered = list(enumerate(calls, start=1))
    batch = [{"jsonrpc": "2.0", "id": n, "result": one} for n, (_, one) in enumerate(samples(), start=1)]
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32005, "message": "limit"}}

    def read(found):
        for reply in _replies(numbered, True, family, found):
            assert all("\n" not in line for line in (reply.fault, reply.no) if line)

    counted = Counter()
    for seed in range(2):
        counted += outcomes(rng.random() + seed, [batch, [error, *batch[1:]]], tolerant(read))
    assert counted["read"] > 500


def tolerant(read):
    """Without the one other outcome that is meant: a node that takes no batches."""

    def reader(found):
        with suppress(_NoBatchesError):
            read(found)

    return reader
