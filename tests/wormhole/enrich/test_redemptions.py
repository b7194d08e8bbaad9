"""Redemptions from operations and RPCs behind the lake's table: what is asked, kept and remarked."""

from __future__ import annotations

import datetime as dt
import json

import pyarrow as pa
import pytest

from permalake.config import Settings
from permalake.config.lake import LakeSettings
from permalake.config.networks import WormholeSettings
from permalake.config.services import ChainSettings
from permalake.net.http import RetryPolicy
from permalake.pipeline.day_landing import DayLanding
from permalake.wormhole.contracts.redemption_tables import REDEMPTIONS
from permalake.wormhole.enrich.redemptions import Redemptions
from permalake.wormhole.enrich.rpcs import opened
from permalake.wormhole.reference import load_reference
from permalake.wormhole.sources.operation_documents import reported_sides
from permalake.wormhole.steps.answer_caches import answer_cache
from permalake.wormhole.tables.redemptions import (
    KEPT,
    REPORTED,
    REPORTED_SIDE,
    SENT,
    SENT_QUERY,
    SENT_TRANSFER,
    reported_redemptions,
)
from support import places
from support.lakes import OpenLake
from support.rpc_server import EvmChain, RpcServer
from support.wormhole_queries import query_rows

DAY, NEXT = dt.date(2024, 3, 18), dt.date(2024, 3, 19)
NOON = dt.datetime(2024, 3, 18, 12, tzinfo=dt.UTC)
EMITTER = "0e" * 32
PATIENT = RetryPolicy(read=3, back_off=0.01, attempts=12, longest_pause=3)
IMPATIENT = RetryPolicy(read=3, back_off=0.01, attempts=2, longest_pause=0, failures=2, rest=0.2)
TX = "0x" + "7a" * 32
RECORDED = places.DATA / "wormhole" / "operations" / "moonbeam-ethereum_susds.json"


def key(number) -> str:
    return f"4:{EMITTER}:{number:016d}"


def digest(number) -> str:
    return f"d1{number:062x}"


def seconds(number):
    return int(NOON.timestamp()) + 60 * number


def day_of(number):
    return NEXT if number >= 720 else DAY


def operation(number, **target):
    return {"id": f"4/{EMITTER}/{number}", **({"targetChain": target} if target else {})}


def told(days, file, sent, kept, evm):
    """The news that a file of operations tells."""
    sides = days.frames({REPORTED: reported_sides(days.spark, [str(file)])}, {REPORTED: REPORTED_SIDE})
    query = reported_redemptions(evm, dt.datetime.now(dt.UTC))
    given = {**sides.datasets, SENT: sent, KEPT: kept}
    return days.results({"news": query}, {"news": REDEMPTIONS.arrow}, given)["news"]


class Desk:
    """An attempt of a lake with transfers, and what is asked of it."""

    def __init__(self, spark, folder, transfers):
        self.spark, self.folder = spark, folder
        self.settings = Settings(
            lake=LakeSettings(warehouse=str(folder)), wormhole=WormholeSettings(path=folder)
        )
        self.lake = OpenLake(self.settings)
        self.attempt = self.lake.begin("wormhole", DAY, NEXT, "run")
        self.notes = []
        self.cache = answer_cache(
            spark, self.attempt, REDEMPTIONS, lambda text, day=None: self.notes.append((text, day))
        )
        self.days = DayLanding.of(spark, self.attempt)
        rows = {"token_transfer_payload": [], "nft_transfer_payload": []}
        for number, bridge, chain in transfers:
            one = {"row_key": key(number), "target_chain": chain, "date": day_of(number)}
            rows[f"{bridge}_transfer_payload"].append(one)
        rows["message_publication"] = [
            {
                **{"row_key": key(n), "digest": digest(n), "date": day_of(n)},
                "timestamp": dt.datetime.fromtimestamp(seconds(n), dt.UTC),
            }
            for n, _, _ in transfers
        ]
        sent = sorted(query_rows(SENT_QUERY, SENT_TRANSFER, rows), key=lambda row: row["row_key"])
        self.sent = pa.Table.from_pylist(sent, SENT_TRANSFER)

    def report(self, *operations):
        """Store what operations tell; return how many rows are new."""
        file = self.folder / "operations.jsonl"
        file.write_text("".join(json.dumps(one) + "\n" for one in operations))
        return self.cache.add(told(self.days, file, self.sent, self.cache.read(DAY, NEXT), [2, 5]))

    def ask(self, server, chains, *, again=False, retry_policy=PATIENT) -> None:
        sections = {
            number: ChainSettings(rpc_url=f"{server.url}/{number}", rate_per_second=500) for number in chains
        }
        with opened(self.settings.model_copy(update={"chains": sections}), retry_policy) as nodes:
            Redemptions(nodes, self.cache, again=again).ask(self.days, self.sent, (DAY, NEXT))

    def kept(self):
        rows = self.cache.read(dt.date.min, dt.date.max).to_table().to_pylist()
        return sorted(rows, key=lambda row: (row["row_key"], row["asked_at"]))

    def states(self):
        """(number, source, status, transaction) in the order in which they were told."""
        return [
            (int(row["row_key"][-16:]), row["source"], row["status"], row["target_tx_id"])
            for row in self.kept()
        ]


@pytest.fixture
def world():
    chain = load_reference().chains[2]
    found = EvmChain(chain.core, f"0x{chain.token_bridge[24:]}", f"0x{chain.nft_bridge[24:]}", every=12)
    found.last_block = (seconds(2000) - found.first) // 12
    return found


def untold(count, chain) -> str:
    whose = f"redemptions: not known of {count} transfer{'s' * (count > 1)} to chains {chain}"
    return f"{whose}; neither operations nor chains.ID.rpc_url tell"


def redeem(chain, number, after=600) -> None:
    chain.completed.add(digest(number))
    block = (seconds(number) + after - chain.first) // 12
    fields = {"gasUsed": "0x5208", "effectiveGasPrice": "0x3b9aca00"}
    chain.redemptions[f"0x{number:064x}"] = ("0x" + "a1" * 20, [(4, EMITTER, number)], block, fields)


def test_operations_tell_redemptions_and_a_later_one_stands_beside_the_first(spark, tmp_path) -> None:
    desk = Desk(spark.newSession(), tmp_path, [(n, "token", 2) for n in (1, 2, 3, 4)] + [(5, "nft", 1)])
    done = {"chainId": 2, "status": "completed", "transaction": {"txHash": TX[2:].upper()}}
    paid = {"recipient": "0x" + "cc" * 20, "tokenAddress": "0x" + "dd" * 20}
    first = [
        operation(
            1,
            **done,
            timestamp="2024-03-18T12:09:30Z",
            fee="0.00120",
            balanceChanges=[paid, paid],
            **{"from": " 0xab "},
        ),
        operation(2),
        operation(3, chainId=2, status="failed", transaction={"txHash": TX}, timestamp="99999-01-01"),
        operation(
            4, chainId=5, status="completed", transaction={"txHash": TX}
        ),  # another chain than the VAA's
        operation(
            5, chainId=1, status="weird", transaction={"txHash": "5Sig"}, fee="a lot", timestamp="infinity"
        ),
        operation(6, **done),  # no transfer of these days
        {"id": "no message", "targetChain": done},
    ]
    assert desk.report(*first) == 4
    assert desk.report(*first) == 0
    assert all(row["redeemed_at"] is None for row in desk.kept()[1:])
    row = desk.kept()[0]
    assert {name: row[name] for name in REDEMPTIONS.names if name != "asked_at"} == {
        "row_key": key(1),
        "target_chain": 2,
        "target_tx_id": TX,
        "redeemed_at": dt.datetime(2024, 3, 18, 12, 9, 30, tzinfo=dt.UTC),
        "redeemer": "0xab",
        "status": "completed",
        "fee": "0.0012",
        "receiver_address": paid["recipient"],
        "token_address": paid["tokenAddress"],
        "source": "wormholescan",
        "date": DAY,
    }
    told = [(1, "completed", TX), (2, "in_flight", None), (3, "failed", TX), (5, "unknown", "5Sig")]
    assert desk.states() == [(n, "wormholescan", status, tx) for n, status, tx in told]
    assert desk.kept()[-1]["fee"] is None

    # Of documents of one transfer the one that tells more counts, and what was told stays.
    two = [{"recipient": "0x1", "tokenAddress": "0x2"}, {"recipient": "0x3", "tokenAddress": "0x2"}]
    assert desk.report(*first, operation(2, **done, balanceChanges=two)) == 1
    rows = [row for row in desk.kept() if row["row_key"] == key(2)]
    assert [row["status"] for row in rows] == ["in_flight", "completed"]
    assert (rows[1]["receiver_address"], rows[1]["token_address"]) == (None, "0x2")


def test_of_two_operations_of_a_transfer_the_one_that_tells_more_counts(spark, tmp_path) -> None:
    desk = Desk(spark.newSession(), tmp_path, [(n, "token", 2) for n in (1, 2, 3)])
    done = {"chainId": 2, "status": "completed"}
    whole = {**done, "transaction": {"txHash": TX}, "timestamp": "2024-03-18T12:09:30Z", "fee": "1"}
    weaker = {**whole, "status": "failed", "from": "0xab"}
    both = [(1, done), (1, whole), (2, whole), (2, {**whole, "fee": None}), (3, done), (3, weaker)]
    assert desk.report(*(operation(number, **target) for number, target in both)) == 3
    assert desk.states() == [
        (1, "wormholescan", "completed", TX),
        (2, "wormholescan", "completed", TX),
        (3, "wormholescan", "completed", None),
    ]
    assert [row["fee"] for row in desk.kept()] == ["1", "1", None]


def test_a_recorded_operation_is_kept_as_it_was_served(spark, tmp_path) -> None:
    session = spark.newSession()
    recorded = json.loads(RECORDED.read_text())
    chain, emitter, sequence = recorded["id"].split("/")
    row_key = f"{chain}:{emitter}:{sequence:0>16}"
    values = (row_key, DAY, 2, "token", "", 0)
    sent = pa.Table.from_pylist([dict(zip(SENT_TRANSFER.names, values, strict=True))], SENT_TRANSFER)
    days = DayLanding(session, str(tmp_path), None)
    (row,) = told(days, RECORDED, sent, REDEMPTIONS.arrow.empty_table(), [2]).to_table().to_pylist()
    target = recorded["targetChain"]
    (paid,) = target["balanceChanges"]
    assert row["redeemed_at"] == dt.datetime.fromisoformat(target["timestamp"])
    assert (row["target_tx_id"], row["status"]) == (target["transaction"]["txHash"], target["status"])
    assert (row["redeemer"], row["fee"]) == (target["from"], target["fee"])
    assert (row["receiver_address"], row["token_address"]) == (paid["recipient"], paid["tokenAddress"])


def test_chains_are_asked_once_for_what_the_source_does_not_tell(spark, tmp_path, world) -> None:
    desk = Desk(
        spark.newSession(),
        tmp_path,
        [
            (1, "token", 2),
            (2, "token", 2),
            (3, "token", 2),
            (4, "nft", 2),
            (5, "token", 1),
            (725, "token", 2),
        ],
    )
    redeem(world, 1)
    redeem(world, 2)
    redeem(world, 725, after=60_000)
    world.completed.add(digest(4))
    done = {"chainId": 2, "status": "completed", "transaction": {"txHash": TX}}
    desk.report(operation(1, **done), operation(2))
    with RpcServer({2: world}, faulty=0.1, errors=0.1, seed=3) as server:
        desk.ask(server, [2])
        assert desk.states() == [
            (1, "wormholescan", "completed", TX),
            (2, "wormholescan", "in_flight", None),
            (2, "rpc", "completed", f"0x{2:064x}"),
            (3, "rpc", "in_flight", None),
            (4, "rpc", "completed", None),
            (725, "rpc", "completed", f"0x{725:064x}"),
        ]
        assert (desk.kept()[2]["fee"], desk.kept()[2]["redeemer"]) == ("0.000021", "0x" + "a1" * 20)
        requests = len(server.requests[2])
        desk.ask(server, [2])
        assert len(server.requests[2]) == requests

        # What was in flight is redeemed later, and found when a run fills in.
        redeem(world, 3, after=5000)
        desk.ask(server, [2], again=True)
        assert desk.states()[3:5] == [(3, "rpc", "in_flight", None), (3, "rpc", "completed", f"0x{3:064x}")]
        requests = len(server.requests[2])
        desk.ask(server, [2], again=True)
        assert len(server.requests[2]) == requests
    assert desk.notes == [(untold(1, 1), DAY)] * 4


def test_a_node_that_is_down_or_refuses_is_remarked_and_asked_again(spark, tmp_path, world) -> None:
    desk = Desk(spark.newSession(), tmp_path, [(1, "token", 2), (2, "token", 2)])
    redeem(world, 1)
    with RpcServer({2: world}) as server:
        server.down = "503"
        desk.ask(server, [2], retry_policy=IMPATIENT)
        assert desk.states() == []
        later = "fill in later with --only enrich"
        assert desk.notes == [
            (
                "redemptions: chain 2: HTTP 503; transfers to chain 2: 2 without an answer, 0 without their "
                f"transaction, {later}",
                None,
            ),
            (untold(2, 2), DAY),
        ]
        server.down = None
        world.most_blocks = 0
        desk.notes.clear()
        desk.ask(server, [2])
        assert desk.states() == [(1, "rpc", "completed", None), (2, "rpc", "in_flight", None)]
        assert desk.notes == [
            (
                "redemptions: JSON-RPC error -32000; transfers to chain 2: 0 without an answer, 1 without "
                f"their transaction, {later}",
                None,
            )
        ]
        world.most_blocks = 2000
        desk.ask(server, [2], again=True)
        assert (1, "rpc", "completed", f"0x{1:064x}") in desk.states()
