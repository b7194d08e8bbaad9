"""Questions to nodes of EVM chains and of Solana, against servers of this machine that misbehave."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import date

import pytest

from permalake.net.http import RetryPolicy, Service
from permalake.wormhole.codec import abi
from permalake.wormhole.codec.native_addresses import base58
from permalake.wormhole.codec.solana_accounts import metadata_account, wrapped_mint, wrapped_nft
from permalake.wormhole.enrich.evm import Evm
from permalake.wormhole.enrich.evm_custody import CustodyAnswer
from permalake.wormhole.enrich.evm_redemptions import RedemptionAnswer, SentTransfer
from permalake.wormhole.enrich.jsonrpc import Call, RpcNode, probe
from permalake.wormhole.enrich.questions import TOO_NEW, ChainAnswer, Question
from permalake.wormhole.enrich.rpc_errors import EVM, SOLANA
from permalake.wormhole.enrich.solana import Solana
from permalake.wormhole.reference import ChainInfo
from support.faulty_server import FAULTS
from support.rpc_server import EvmChain, RefusalError, RpcServer, SolanaChain

HASTY = RetryPolicy(read=0.3, back_off=0.01, attempts=12, longest_pause=3)
SHORT = RetryPolicy(read=0.3, back_off=0.01, attempts=2, longest_pause=0, failures=2, rest=30)
EMITTER, OTHER = "0e" * 32, "0f" * 32
BRIDGE = "wormDTUJ6AWPNvk59vGQbDvGJmqbDTdgWgAqcLBCgUb"
NFT_BRIDGE = "WnFt12ZrnzZrFZkt2xsNsaNWoQribnuQ5B5FrDbwDhD"
ALICE, BOB = "0x" + "a1" * 20, "0x" + "b0b0" * 10


def evm_chain():
    bridges = {"token_bridge": "00" * 12 + "b0" * 20, "nft_bridge": "00" * 12 + "bf" * 20}
    return ChainInfo(2, family="evm", core="0x" + "c0" * 20, **bridges)


def tx(number) -> str:
    return f"0x{number:064x}"


def key(text):
    return base58(text.encode().rjust(32, b"\x07"))


def signature(text):
    return base58(text.encode().rjust(64, b"\x07"))


def sender(number, tx_id, at=0, emitter=EMITTER, chain=2):
    return Question("sender", f"{chain}:{emitter}:{number:016d}", tx_id, at)


def node(server, chain, rate=500, retry_policy=HASTY, concurrency=4):
    service = Service(
        f"chain {chain}", f"{server.url}/{chain}", rate, retry_policy=retry_policy, probe=probe(EVM)
    )
    errors = SOLANA if chain == 1 else EVM
    return RpcNode(service, concurrency, f"chains.{chain}.rpc_url", errors)


def once(server, chain):
    """Whether no call was answered twice."""
    return max(Counter(server.answered[chain]).values(), default=0) <= 1


class TestChainOfANode:
    ETHEREUM = replace(evm_chain(), evm_chain_id=1)
    SENT = SentTransfer(f"1:{EMITTER}:{1:016d}", "token", "d1" * 32, 0)

    def asked(self, evm):
        """An answer of each kind."""
        (sent,) = evm.answers("sender", [sender(7, tx(1))])
        (redeemed,) = evm.redemptions([self.SENT])
        (held,) = evm.custody(date(2024, 3, 18), ["00" * 12 + ALICE[2:]])
        return sent, redeemed, held

    def test_a_node_of_another_chain_answers_nothing_and_is_left_alone(self) -> None:
        world = EvmChain(chain_id=0x38)
        world.transactions = {tx(1): (ALICE, [(EMITTER, 7)], 5)}
        with RpcServer({2: world}) as server, node(server, 2) as rpc:
            told = self.asked(Evm(self.ETHEREUM, rpc))
            assert rpc.is_down
            assert len(server.answered[2]) == 1
        why = "chain 2: a node of EVM chain 56, not 1; check chains.2.rpc_url"
        assert told == (ChainAnswer(fault=why), RedemptionAnswer(fault=why), CustodyAnswer(unknown=why))

    @pytest.mark.parametrize("chain_id", [1, None])
    def test_a_node_of_the_chain_or_one_that_does_not_tell_is_asked_once(self, chain_id) -> None:
        world = EvmChain(chain_id=chain_id)
        world.transactions = {tx(1): (ALICE, [(EMITTER, 7)], 5)}
        with RpcServer({2: world}) as server, node(server, 2) as rpc:
            sent, redeemed, held = self.asked(Evm(self.ETHEREUM, rpc))
            assert sum("eth_chainId" in call for call in server.answered[2]) == 1
        assert (sent, redeemed) == (ChainAnswer(ALICE), RedemptionAnswer(is_completed=False))
        assert held.none or held.unknown

    def test_a_node_that_fails_to_tell_leaves_all_open(self, monkeypatch) -> None:
        world = EvmChain()
        monkeypatch.setattr(world, "call", lambda *_: "no number")
        with RpcServer({2: world}) as server, node(server, 2, retry_policy=SHORT) as rpc:
            sent, redeemed, held = self.asked(Evm(self.ETHEREUM, rpc))
        assert sent.fault
        assert redeemed.fault
        assert held.unknown


class TestSendersOnEvm:
    def test_the_receipt_counts_if_it_holds_the_message(self) -> None:
        world = EvmChain()
        world.transactions = {
            tx(1): (ALICE.upper().replace("0X", "0x"), [(EMITTER, 7), (EMITTER, 2**64 - 1)], 5),
            tx(2): (BOB, [(EMITTER, 8)], 6),
        }
        world.last_block = 10
        with RpcServer({2: world}) as server, node(server, 2) as rpc:
            evm = Evm(evm_chain(), rpc)
            told = evm.answers(
                "sender",
                [
                    sender(7, tx(1)),
                    sender(2**64 - 1, tx(1)),
                    sender(8, tx(2)),
                    sender(9, tx(2)),
                    sender(8, tx(2), emitter=OTHER),
                    sender(10, tx(3)),
                    sender(11, "garbage"),
                    sender(12, None),
                ],
            )
            again = evm.answers("sender", [sender(8, tx(2)), sender(13, tx(2))])
            calls = Counter(json.loads(call)[0] for call in server.answered[2])
        lying = "the reported transaction does not publish this message"
        assert told == [
            ChainAnswer(ALICE),
            ChainAnswer(ALICE),
            ChainAnswer(BOB),
            ChainAnswer(reason=lying),
            ChainAnswer(reason=lying),
            ChainAnswer(reason="the node knows no such transaction"),
            ChainAnswer(reason="no transaction is known"),
            ChainAnswer(reason="no transaction is known"),
        ]
        assert again == [ChainAnswer(BOB), ChainAnswer(reason=lying)]
        assert calls["eth_getTransactionReceipt"] == 3

    def test_a_log_of_another_contract_is_no_message(self) -> None:
        world = EvmChain(core="0x" + "66" * 20)
        world.transactions = {tx(1): (ALICE, [(EMITTER, 7)], 5)}
        with RpcServer({2: world}) as server, node(server, 2) as rpc:
            assert Evm(evm_chain(), rpc).answers("sender", [sender(7, tx(1))])[0].address is None
            unknown = replace(evm_chain(), core=None)
            assert Evm(unknown, rpc).answers("sender", [sender(7, tx(1))]) == [ChainAnswer(ALICE)]

    @pytest.mark.parametrize("most_blocks", [5000, 300])
    def test_unknown_transactions_are_found_by_the_logs_of_their_time(self, most_blocks) -> None:
        world = EvmChain(every=3)
        world.most_blocks = most_blocks
        blocks = [1_000_000, 1_000_001, 1_004_000, 1_900_000, 12_345_678]
        world.transactions = {tx(n): (ALICE, [(EMITTER, n)], block) for n, block in enumerate(blocks, 1)}
        asked = [
            sender(n, (None, tx(99), "?")[n % 3], world.first + 3 * block)
            for n, block in enumerate(blocks, 1)
        ]
        early = sender(50, None, world.first - 100)
        with RpcServer({2: world}, faulty=0.1, errors=0.1, seed=5) as server, node(server, 2) as rpc:
            told = Evm(evm_chain(), rpc).answers("sender", [*asked, sender(51, None, asked[0].at), early])
            assert once(server, 2)
            assert len(server.answered[2]) < 200
        assert told == [*[ChainAnswer(ALICE)] * 5, *[ChainAnswer(reason="no transaction is known")] * 2]

    def test_a_node_without_blocks_is_not_asked_for_them_again(self, monkeypatch) -> None:
        world = EvmChain()
        plain = world.call

        def call(method, params):
            return plain("eth_unknown" if method == "eth_getBlockByNumber" else method, params)

        monkeypatch.setattr(world, "call", call)
        with RpcServer({2: world}) as server, node(server, 2) as rpc:
            told = Evm(evm_chain(), rpc).answers("sender", [sender(n, None, n * 10_000) for n in range(5)])
            assert told == [ChainAnswer(reason="no transaction is known")] * 5
            assert len(server.answered[2]) == 1


class TestTokensOnEvm:
    def test_wrapped_assets_and_what_they_call_themselves(self) -> None:
        world = EvmChain()
        tokens = {f"0x{n:040x}": n for n in range(1, 6)}
        world.wrapped = {(1, f"{n:064x}"): token for token, n in tokens.items()}
        world.tokens = dict(
            zip(
                tokens,
                [("USDC", "USD Coin", 6), (b"MKR", b"Maker", 18), ("", None, 0), (None, None, None)],
                strict=False,
            )
        )  # there is no contract at the fifth
        asked = [Question("wrapped", f"1:{n:064x}") for n in [*range(1, 7), 1]]
        with RpcServer({2: world}, faulty=0.2, errors=0.2, seed=9) as server, node(server, 2) as rpc:
            told = Evm(evm_chain(), rpc).answers("wrapped", asked[:6])
            assert once(server, 2)
        one, two, three, four, five = tokens
        assert told == [
            ChainAnswer(one, "USDC", "USD Coin", 6),
            ChainAnswer(two, "MKR", "Maker", 18),
            ChainAnswer(three, "", None, 0),
            ChainAnswer(four),
            ChainAnswer(five),
            ChainAnswer(reason="not attested on this chain"),
        ]

    def test_tokens_that_nobody_attested_or_listed(self) -> None:
        world = EvmChain()
        world.tokens = {ALICE: ("A", "Alice", 255), BOB: ("B", "Bob", 256)}
        asked = [
            Question("token", "00" * 12 + ALICE[2:]),
            Question("token", "00" * 12 + BOB[2:]),
            Question("token", "11" * 32),
        ]
        with RpcServer({2: world}) as server, node(server, 2) as rpc:
            assert Evm(evm_chain(), rpc).answers("token", asked) == [
                ChainAnswer(ALICE, "A", "Alice", 255),
                ChainAnswer(reason="no token that tells its decimals"),
                ChainAnswer(reason="no address of this chain"),
            ]

    def test_a_node_without_finalized_blocks_answers_provisionally(self, monkeypatch) -> None:
        world = EvmChain()
        world.wrapped = {(1, f"{7:064x}"): ALICE}
        world.tokens = {ALICE: ("A", "Alice", 9)}
        plain = world.call

        def call(method, params):
            if params[1:] == ["finalized"]:
                raise RefusalError({"code": -32602, "message": "invalid argument 1: hex string without 0x"})
            return plain(method, params)

        monkeypatch.setattr(world, "call", call)
        with RpcServer({2: world}) as server, node(server, 2) as rpc:
            told = Evm(evm_chain(), rpc).answers("wrapped", [Question("wrapped", f"1:{7:064x}")])
        assert told == [ChainAnswer(ALICE, "A", "Alice", 9, provisional=True)]

    @pytest.mark.parametrize("code", [-32005, -32007, -32009, -32011, -32016, 429])
    def test_a_rate_limit_is_a_fault_and_never_a_missing_name(self, monkeypatch, code) -> None:
        world = EvmChain()
        world.tokens = {ALICE: ("A", "Alice", 9)}
        limited = RefusalError({"code": code, "message": "50/second request limit reached"})
        plain = world._view

        def view(contract, data):
            if data.hex() == abi.selector("symbol()").hex():
                raise limited
            return plain(contract, data)

        monkeypatch.setattr(world, "_view", view)
        asked = [Question("token", "00" * 12 + ALICE[2:])]
        with RpcServer({2: world}) as server, node(server, 2, retry_policy=SHORT) as rpc:
            (told,) = Evm(evm_chain(), rpc).answers("token", asked)
        assert told.address is None
        assert told.reason is None
        assert f"JSON-RPC error {code}" in told.fault

    @pytest.mark.parametrize("kind", ["token", "wrapped"])
    def test_a_text_that_always_fails_hides_no_decimals(self, monkeypatch, kind) -> None:
        world = EvmChain()
        world.wrapped = {(1, f"{7:064x}"): ALICE}
        world.tokens = {ALICE: ("A", "Alice", 9)}
        failing = ["symbol()"]
        plain = world._view

        def view(contract, data):
            if data.hex() in [abi.selector(name).hex() for name in failing]:
                raise RefusalError({"code": -32000, "message": "something odd"})
            return plain(contract, data)

        monkeypatch.setattr(world, "_view", view)
        asked = [Question(kind, "00" * 12 + ALICE[2:] if kind == "token" else f"1:{7:064x}")]
        with RpcServer({2: world}) as server, node(server, 2, retry_policy=SHORT) as rpc:
            evm = Evm(evm_chain(), rpc)
            assert evm.answers(kind, asked) == [ChainAnswer(ALICE, None, "Alice", 9, provisional=True)]
            failing.append("decimals()")
            (told,) = evm.answers(kind, asked)
            assert (told.address, told.reason) == (None, None)
            assert "JSON-RPC error -32000" in told.fault

    def test_a_token_that_always_fails_costs_no_other_token_its_answer(self, monkeypatch) -> None:
        world = EvmChain()
        tokens = [f"0x{n:040x}" for n in range(1, 8)]
        world.tokens = {token: (f"T{n}", "", n) for n, token in enumerate(tokens)}
        with RpcServer({2: world}) as server, node(server, 2, retry_policy=SHORT) as rpc:
            plain = server.respond

            def respond(handler, body, fault):
                if tokens[3].encode() in body:
                    return 500, b"{}"  # whatever stands beside it
                return plain(handler, body, fault)

            monkeypatch.setattr(server, "respond", respond)
            evm = Evm(evm_chain(), rpc)
            for _ in range(3):
                told = evm.answers("token", [Question("token", "00" * 12 + token[2:]) for token in tokens])
                assert [answer.symbol for answer in told] == ["T0", "T1", "T2", None, "T4", "T5", "T6"]
                assert told[3].fault
                assert not rpc.is_down

    def test_nfts_are_wrapped_by_the_nft_bridge(self) -> None:
        world = EvmChain()
        world.wrapped = {(5, "01" * 32): BOB}
        world.wrapped_nfts = {(1, "01" * 32): ALICE}
        world.tokens = {ALICE: ("WORMSPLNFT", "Wormhole Bridged Solana-NFT", None)}
        asked = [Question("wrapped_nft", f"{chain}:{'01' * 32}") for chain in (1, 5)]
        with RpcServer({2: world}) as server, node(server, 2) as rpc:
            told = Evm(evm_chain(), rpc).answers("wrapped_nft", asked)
            assert len(server.answered[2]) == 4  # an NFT has no decimals to ask for
        assert told == [
            ChainAnswer(ALICE, "WORMSPLNFT", "Wormhole Bridged Solana-NFT"),
            ChainAnswer(reason="not wrapped on this chain"),
        ]

    @pytest.mark.parametrize(("kind", "bridge"), [("wrapped", "token"), ("wrapped_nft", "NFT")])
    def test_a_chain_without_a_bridge_has_no_wrapped_assets(self, kind, bridge) -> None:
        with RpcServer({2: EvmChain()}) as server, node(server, 2) as rpc:
            bare = ChainInfo(2, family="evm")
            (told,) = Evm(bare, rpc).answers(kind, [Question(kind, "1:" + "00" * 32)])
            assert told == ChainAnswer(reason=f"no {bridge} bridge is known on this chain")
            assert not server.requests


class TestSolana:
    CHAIN = ChainInfo(1, family="solana", token_bridge_program=BRIDGE, nft_bridge_program=NFT_BRIDGE)

    def ask(self, world, kind, asked, **faults):
        with RpcServer({1: world}, **faults) as server, node(server, 1) as rpc:
            told = Solana(self.CHAIN, rpc).answers(kind, asked)
            assert once(server, 1)
        return told

    def test_first_signers_by_signature_and_by_message_account(self) -> None:
        world = SolanaChain()
        world.transactions = {
            signature("post"): (key("alice"), None),
            signature("close"): (key("bob"), None),
            signature("try"): (key("carol"), {"InstructionError": [0, "Custom"]}),
        }
        world.messages = {key("message"): [signature("close"), signature("post"), signature("try")]}
        message_hex = b"message".rjust(32, b"\x07").hex()
        ids = [
            *(signature("post"), signature("post"), key("message"), message_hex, "0x" + message_hex),
            *(signature("try"), signature("none"), key("none"), "0x12", None),
        ]
        told = self.ask(world, "sender", [sender(n, tx, chain=1) for n, tx in enumerate(ids)])
        assert told == [
            *[ChainAnswer(key("alice"))] * 5,
            *[ChainAnswer(reason="the node knows no such transaction")] * 2,
            ChainAnswer(reason="the node knows no transaction of this message"),
            *[ChainAnswer(reason="no transaction is known")] * 2,
        ]

    def test_a_signature_of_another_form_is_a_fault(self) -> None:
        world = SolanaChain()
        world.messages, world.transactions = {key("message"): ["\ud800"]}, {"\ud800": (key("alice"), None)}
        with RpcServer({1: world}) as server, node(server, 1, retry_policy=SHORT) as rpc:
            (told,) = Solana(self.CHAIN, rpc).answers("sender", [sender(1, key("message"), chain=1)])
        assert "wrong form" in told.fault

    def test_transactions_of_versions(self) -> None:
        world = SolanaChain()
        world.versions = {signature("first"): 1, signature("later"): 2}
        world.transactions = {name: (key("alice"), None) for name in world.versions}
        asked = [sender(number, name, chain=1) for number, name in enumerate(world.versions)]
        assert self.ask(world, "sender", asked) == [ChainAnswer(key("alice")), ChainAnswer(reason=TOO_NEW)]

    @pytest.mark.parametrize("raw", [False, True])
    def test_owners_of_token_accounts(self, raw) -> None:
        world = SolanaChain(raw)
        world.owners = {key("account"): key("alice")}
        world.wallets = {key("wallet")}
        asked = [
            Question("owner", name.encode().rjust(32, b"\x07").hex())
            for name in ("account", "wallet", "gone")
        ]
        assert self.ask(world, "owner", asked, faulty=0.2, errors=0.2, seed=2) == [
            ChainAnswer(key("alice")),
            ChainAnswer(reason="no token account"),
            ChainAnswer(reason="no such account"),
        ]

    @pytest.mark.parametrize(("code", "passes"), [(-32000, False), (429, True)])
    def test_names_that_always_fail_hide_no_decimals(self, monkeypatch, code, passes) -> None:
        world = SolanaChain()
        world.mints = {key("mint"): ("M", "Mint", 5)}
        plain = world.call

        def call(method, params):
            if params[0] == metadata_account(key("mint")):
                raise RefusalError({"code": code, "message": "something odd"})
            return plain(method, params)

        monkeypatch.setattr(world, "call", call)
        asked = [Question("token", b"mint".rjust(32, b"\x07").hex())]
        with RpcServer({1: world}) as server, node(server, 1, retry_policy=SHORT) as rpc:
            (told,) = Solana(self.CHAIN, rpc).answers("token", asked)
        known = ChainAnswer(key("mint"), decimals=5, provisional=True)
        assert told == (ChainAnswer(fault=told.fault) if passes else known)
        assert bool(told.fault) == passes

    @pytest.mark.parametrize("raw", [False, True])
    def test_wrapped_mints_and_their_metadata(self, raw) -> None:
        world = SolanaChain(raw)
        mints = [wrapped_mint(BRIDGE, 2, bytes([n]).rjust(32, b"\0")) for n in range(3)]
        world.mints = {mints[0]: ("WETH", "Ether (Portal)", 8), mints[1]: (None, None, 0)}
        asked = [Question("wrapped", f"2:{n:064x}") for n in range(3)]
        assert self.ask(world, "wrapped", asked, faulty=0.2, errors=0.2, seed=4) == [
            ChainAnswer(mints[0], "WETH", "Ether (Portal)", 8),
            ChainAnswer(mints[1], decimals=0),
            ChainAnswer(reason="not attested on this chain"),
        ]

    def test_each_wrapped_nft_has_a_mint(self) -> None:
        world = SolanaChain()
        ids = [0, 1, 2**256 - 1]
        mints = [wrapped_nft(NFT_BRIDGE, 2, bytes(31) + b"\5", token_id) for token_id in ids]
        world.mints = {mints[0]: ("BAYC", "Ape 0", 0), mints[2]: (None, None, 0)}
        asked = [Question("wrapped_nft", f"2:{5:064x}:{token_id}") for token_id in ids]
        assert self.ask(world, "wrapped_nft", asked) == [
            ChainAnswer(mints[0], "BAYC", "Ape 0", 0),
            ChainAnswer(reason="not wrapped on this chain"),
            ChainAnswer(mints[2], decimals=0),
        ]

    def test_tokens_that_nobody_attested_or_listed(self) -> None:
        world = SolanaChain()
        world.mints, world.wallets = {key("mint"): ("M", "Mint", 5)}, {key("wallet")}
        asked = [
            Question("token", name.encode().rjust(32, b"\x07").hex()) for name in ("mint", "wallet", "gone")
        ]
        assert self.ask(world, "token", asked) == [
            ChainAnswer(key("mint"), "M", "Mint", 5),
            ChainAnswer(reason="no token that tells its decimals"),
            ChainAnswer(reason="no such account"),
        ]


class TestNode:
    CALLS = tuple(
        Call("eth_getTransactionReceipt", (tx(n),), lambda result: result["from"]) for n in range(40)
    )

    @pytest.fixture
    def world(self):
        world = EvmChain()
        world.transactions = {tx(n): (f"0x{n:040x}", [], 5) for n in range(40)}
        return {2: world}

    def test_faults_of_the_whole_and_of_calls_are_outlasted(self, world) -> None:
        with RpcServer(world, faulty=0.3, errors=0.3, seed=1) as server, node(server, 2) as rpc:
            assert [reply.value for reply in rpc.ask(self.CALLS)] == [f"0x{n:040x}" for n in range(40)]
            assert once(server, 2)

    @pytest.mark.parametrize("rate", [8, 30])
    def test_the_rate_counts_calls(self, world, rate) -> None:
        with RpcServer(world) as server, node(server, 2, rate, concurrency=8) as rpc:
            rpc.ask(self.CALLS[:17])
            rpc.ask(self.CALLS[17:23])
            assert server.busiest(2) <= rate
            assert len(server.requests[2]) <= 4  # batches, as large as the rate allows

    def test_a_node_that_takes_no_large_batches_is_asked_call_by_call(self, world) -> None:
        with RpcServer(world, largest_batch=3) as server, node(server, 2, retry_policy=SHORT) as rpc:
            assert all(reply.value for reply in rpc.ask(self.CALLS))
            assert once(server, 2)

    @pytest.mark.parametrize(
        "error",
        [
            {"code": -32600, "message": "Invalid Request"},
            {"code": -32000, "message": "batch limit 3 exceeded"},
        ],
    )
    def test_a_node_that_says_so_too(self, world, monkeypatch, error) -> None:
        with RpcServer(world) as server, node(server, 2) as rpc:
            plain = server.respond

            def respond(handler, body, fault):
                if not body.startswith(b"["):
                    return plain(handler, body, fault)
                return 200, json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()

            monkeypatch.setattr(server, "respond", respond)
            assert all(reply.value for reply in rpc.ask(self.CALLS))

    @pytest.mark.parametrize(("status", "most"), [(200, 6), (500, 60)])
    def test_calls_that_always_fail_cost_their_own_attempts_only(
        self, world, monkeypatch, status, most
    ) -> None:
        """A node that answers them with errors, and one that fails at whatever they stand in."""
        failing = [json.dumps(tx(number)).encode() for number in (10, 30)]
        with RpcServer(world) as server, node(server, 2, retry_policy=SHORT) as rpc:
            plain_call, plain = world[2].call, server.respond

            def call(method, params):
                if params and json.dumps(params[0]).encode() in failing:
                    raise RefusalError({"code": -32000, "message": "something odd"})
                return plain_call(method, params)

            def respond(handler, body, fault):
                answer = plain(handler, body, fault)
                return (500, b"{}") if status == 500 and any(one in body for one in failing) else answer

            monkeypatch.setattr(world[2], "call", call)
            monkeypatch.setattr(server, "respond", respond)
            assert all(reply.value for reply in rpc.ask(self.CALLS[:5]))
            replies = rpc.ask(self.CALLS)
            assert [number for number, reply in enumerate(replies) if reply.fault] == [10, 30]
            assert all(replies[number].alone for number in (10, 30))
            assert not rpc.is_down
            assert len(server.requests[2]) <= most

    @pytest.mark.parametrize("batches", [0, 1, 1000])
    def test_a_method_that_always_fails_is_left_alone_and_others_are_not(
        self, world, monkeypatch, batches
    ) -> None:
        """Whether the node takes batches, takes none, or none is known to be taken."""
        failing = [Call("eth_call", ({}, hex(number)), str) for number in range(500)]
        with (
            RpcServer(world, largest_batch=batches or 1000) as server,
            node(server, 2, retry_policy=SHORT) as rpc,
        ):
            plain, lost = server.respond, []

            def respond(handler, body, fault):
                if b"eth_call" not in body:
                    return plain(handler, body, fault)
                lost.append(body)
                return 500, b"{}"

            monkeypatch.setattr(server, "respond", respond)
            if batches:
                assert all(reply.value for reply in rpc.ask(self.CALLS))
            replies = rpc.ask(failing) + rpc.ask(failing)
            assert all(reply.fault for reply in replies)
            assert not any(reply.stays for reply in replies[500:])
            assert "eth_call fails call after call" in replies[-1].fault
            assert not rpc.is_down
            assert all(reply.value for reply in rpc.ask(self.CALLS))
            assert len(lost) < 100

    def test_calls_that_always_fail_side_by_side_cost_no_other_its_answer(self, world, monkeypatch) -> None:
        failing = [json.dumps(tx(number)).encode() for number in range(15)]
        with RpcServer(world) as server, node(server, 2, retry_policy=SHORT) as rpc:
            plain = server.respond
            monkeypatch.setattr(
                server,
                "respond",
                lambda handler, body, fault: (
                    (500, b"{}") if any(one in body for one in failing) else plain(handler, body, fault)
                ),
            )
            replies = rpc.ask(self.CALLS)
        assert [number for number, reply in enumerate(replies) if reply.fault] == list(range(15))

    @pytest.mark.parametrize(
        "words",
        [
            *("execution reverted", "VM execution error.", "out of gas", "invalid jump destination"),
            *("invalid opcode: INVALID", "stack underflow (0 <=> 1)", "stack limit reached 1024 (1023)"),
            *("gas uint64 overflow", "write protection"),
        ],
    )
    def test_what_the_chain_itself_says_no_to(self, words) -> None:
        assert EVM.verdict(-32000, words) == "reverted"
        assert EVM.verdict(-32000, "execution aborted (timeout = 5s)") == "fault"

    @pytest.mark.parametrize("fault", FAULTS)
    def test_a_node_that_is_down_is_left_alone_soon(self, world, fault) -> None:
        with RpcServer(world) as server, node(server, 2, retry_policy=SHORT) as rpc:
            server.down = fault
            replies = rpc.ask(self.CALLS) + rpc.ask(self.CALLS)
            assert all(reply.fault.startswith("chain 2: ") and "\n" not in reply.fault for reply in replies)
            assert len(server.requests[2]) <= 8

    def test_a_refused_key_names_the_setting(self, world, monkeypatch) -> None:
        with RpcServer(world) as server, node(server, 2) as rpc:
            monkeypatch.setattr(server, "respond", lambda *_: (401, b"{}"))
            assert {reply.fault for reply in rpc.ask(self.CALLS)} == {
                "chain 2: HTTP 401; check chains.2.rpc_url"
            }

    def test_an_error_of_the_call_is_an_answer(self, world) -> None:
        with RpcServer(world) as server, node(server, 2) as rpc:
            (reply,) = rpc.ask([Call("eth_coinbase", (), str)])
            assert (reply.refused, reply.reverted, reply.fault) == ("JSON-RPC error -32601", None, None)

    @pytest.mark.parametrize("code", [["\ud800"], {"x": 1}, "\ud800" * 99, None])
    def test_a_code_may_be_any_json_and_is_kept_as_none(self, world, monkeypatch, code) -> None:
        def call(method, params):
            raise RefusalError({"code": code, "message": "execution reverted" if params else "odd"})

        monkeypatch.setattr(world[2], "call", call)
        with RpcServer(world) as server, node(server, 2, retry_policy=SHORT) as rpc:
            reverted, odd = rpc.ask([Call("eth_call", (1,), str)]) + rpc.ask([Call("eth_call", (), str)])
        assert reverted.reverted == "JSON-RPC error without a number"
        assert "JSON-RPC error without a number" in odd.fault

    def test_a_node_that_hangs_up_on_batches_is_asked_call_by_call(self, world, monkeypatch) -> None:
        with RpcServer(world) as server, node(server, 2) as rpc:
            plain = server.respond

            def respond(handler, body, fault):
                assert not body.startswith(b"["), "a crash of the server"
                return plain(handler, body, fault)

            monkeypatch.setattr(server._server, "handle_error", lambda *_: None)
            monkeypatch.setattr(server, "respond", respond)
            assert all(reply.value for reply in rpc.ask(self.CALLS))
            assert once(server, 2)
