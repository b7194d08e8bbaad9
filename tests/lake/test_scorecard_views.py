"""Scorecards of Wormhole against plain Python over the same random rows."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest

from permalake.config import Settings
from support.lakes import OpenLake, pass_audit, put

FIRST, DAYS = date(2024, 1, 20), 50
CHAINS = (1, 2, 4, 23)
TOKENS = [(2, "aa" * 32, "GOLD"), (4, "bb" * 32, "GOLD"), (1, "cc" * 32, "TIN"), (2, "dd" * 32, None)]
APPLICATIONS = ("PORTAL_TOKEN_BRIDGE", "NATIVE_TOKEN_TRANSFER", "UNKNOWN")
AMOUNTS = [None, "0.00000001", "12.5", "7", "9" * 70]
LENGTHS = {"1d": 1, "7d": 7, "30d": 30, "all": 10_000}


class Transfers:
    """Random token and NFT transfers of days, some of which are missing, in rows by table."""

    def __init__(self, seed):
        chance = random.Random(seed)
        self.days = [FIRST + timedelta(n) for n in range(DAYS) if n % 11 != 5]
        self.rows = defaultdict(list)
        self.sent = []  # (date, emitter chain, target chain, token, value, sender, receiver)
        self.applied = []  # (date, application, None, None, value, sender, receiver)
        sequence = 0
        for day in self.days:
            self.rows["messages_daily"].append(
                {"date": day, "emitter_chain": 2, "messages": 9, "verified": day.day, "quarantined": 0}
            )
            for _ in range(chance.choice([0, 0, 1, 2, 5])):
                sequence += 1
                self._transfer(chance, day, sequence)
                self._message(chance, day)
                self._application(chance, day, bridged=True)
            for _ in range(chance.randrange(3)):
                sequence += 1
                self._nft(chance, day, sequence)
            for _ in range(chance.randrange(3)):
                self._application(chance, day, bridged=False)

    def _transfer(self, chance, day, sequence):
        source, target = chance.sample(CHAINS, 2)
        token = chance.choice(TOKENS)
        value = chance.choice([None, Decimal("0.5"), Decimal(chance.randrange(1, 10**6)).scaleb(-3)])
        sender = chance.choice([None, "0xa", "0xb", "0xc"])
        receiver, account = chance.choice([None, "0x1", "0x2"]), f"{chance.randrange(3):064x}"
        key = {"row_key": f"{source}:{'ee' * 32}:{sequence:016}", "date": day}
        route = {"target_chain": target, "origin_chain": token[0], "origin_address": token[1]}
        self.rows["token_transfer_payload"].append(
            {**key, **route, "payload_id": 1, "amount": "1", "target_address": account}
        )
        self.rows["token_transfer_details"].append(
            {**key, "amount": chance.choice(AMOUNTS), "notional_usd": value, "origin_symbol": token[2]}
        )
        self.rows["chain_details"].append({**key, "sender_address": sender, "receiver_address": receiver})
        self.sent.append(
            (day, source, target, token, value, sender and (source, sender), (target, receiver or account))
        )

    def _message(self, chance, day):
        """The message of the transfer before, at a random second of its day."""
        row_key = self.rows["token_transfer_payload"][-1]["row_key"]
        chain, emitter, sequence = row_key.split(":")  # type: ignore[attr-defined]
        moment = datetime.combine(day, time(), UTC) + timedelta(seconds=chance.randrange(86_400))
        self.rows["message_publication"].append(
            {
                "row_key": row_key,
                "date": day,
                "emitter_chain": int(chain),
                "emitter_address": emitter,
                "sequence": Decimal(sequence),
                "timestamp": moment,
            }
        )

    def _application(self, chance, day, *, bridged):
        """The application of the transfer before, or a message that the token bridge has no part in."""
        if bridged:
            _, chain, target, _, value, sender, receiver = self.sent[-1]
            row_key = self.rows["token_transfer_payload"][-1]["row_key"]
        else:
            chain, target, value, sender, receiver = chance.choice(CHAINS), None, Decimal(7), None, None
            row_key = f"{chain}:{'dd' * 32}:{len(self.rows['application_messages']):016}"
        key = {"row_key": row_key, "date": day}
        names = {"app_id": chance.choice(APPLICATIONS), "kind": "transfer", "is_listed": chance.randrange(2)}
        self.rows["application_messages"].append({**key, **names})
        if not bridged and chance.random() < 0.3:
            return  # a message that moves nothing
        if not bridged or chance.random() < 0.5:
            target, recipient = chance.choice([None, *CHAINS]), chance.choice([None, "cd" * 32])
            native = chance.choice([None, "0x9"])
            origin = None if bridged else chance.choice([None, "ce" * 32])
            moved = {"target_chain": target, "recipient_address": recipient, "sender_address": origin}
            details = {"recipient_native_address": native, "notional_usd": value}
            self.rows["application_transfers"].append(
                {**key, "app_id": names["app_id"], **moved, "in_token_transfers": int(bridged)}
            )
            self.rows["application_transfer_details"].append({**key, **details})
            if target and (recipient or native):
                receiver = target, native or recipient
            sender = sender or (origin and (chain, origin))
        listed = value if names["is_listed"] else None
        self.applied.append((day, names["app_id"], None, None, listed, sender, receiver))

    def _nft(self, chance, day, sequence):
        texts = dict.fromkeys(("symbol", "name", "token_id", "uri"), "1")
        row = {"target_chain": chance.choice(CHAINS), "origin_chain": 2, "origin_address": "ab" * 32}
        key = f"2:{'ef' * 32}:{sequence:016}"
        self.rows["nft_transfer_payload"].append(
            {"row_key": key, "date": day, "payload_id": 1, "target_address": "00" * 32, **texts, **row}
        )


@pytest.fixture(scope="module")
def made():
    return Transfers(seed=9)


@pytest.fixture(scope="module")
def ask(made, tmp_path_factory):
    settings = Settings(
        lake={"warehouse": str(tmp_path_factory.mktemp("cards") / "warehouse")}, wormhole={"path": "."}
    )
    lake = OpenLake(settings)
    attempt = lake.begin("wormhole", made.days[0], made.days[-1], "run")
    for table, rows in made.rows.items():
        put(settings, attempt, table, rows)
    lake.builds.publish(pass_audit(attempt))
    return lambda sql: [tuple(row.values()) for row in lake.query(sql).to_pylist()]


def within(rows, last, days):
    return [row for row in rows if last - timedelta(days) < row[0] <= last]


def figures(sent):
    """Transfers, those with a value, value, senders (None where none is known) and receivers."""
    values = [row[4] for row in sent if row[4] is not None]
    senders, receivers = ({row[side] for row in sent if row[side]} for side in (5, 6))
    of_senders = len(senders) or (None if sent else 0)
    return len(sent), len(values), sum(values) if values else None, of_senders, len(receivers)


def test_every_published_day_has_its_figures_over_each_period(made, ask) -> None:
    verified = [(row["date"], row["verified"]) for row in made.rows["messages_daily"]]
    nfts = [(row["date"],) for row in made.rows["nft_transfer_payload"]]
    wanted = [
        (
            day,
            period,
            sum(count for _, count in within(verified, day, days)),
            *figures(within(made.sent, day, days)),
            len(within(nfts, day, days)),
        )
        for day in made.days
        for period, days in LENGTHS.items()
    ]
    assert ask("SELECT * FROM wormhole.scorecards ORDER BY date, length(period) DESC, period") == sorted(
        wanted, key=lambda row: (row[0], -len(row[1]), row[1])
    )
    assert any(row[5] is None for row in wanted)
    assert any(row[3] > 0 and row[6] is None for row in wanted)
    assert any(row[3] == row[6] == 0 for row in wanted)
    day = made.days[20]
    assert ask(f"SELECT * FROM wormhole.scorecards('{day}') WHERE date = '{day}' ORDER BY period") == sorted(
        (row for row in wanted if row[0] == day), key=lambda row: row[1]
    )


KEYS = {
    "chain": lambda row: (row[1], *[None] * 5),
    "corridor": lambda row: (row[1], row[2], *[None] * 4),
    "token": lambda row: (None, None, *row[3], None),
    "symbol": lambda row: (*[None] * 4, row[3][2], None),
    "application": lambda row: (*[None] * 5, row[1]),
}


@pytest.mark.parametrize("place", [-1, 24])
def test_each_dimension_counts_each_transfer_once(made, ask, place) -> None:
    last = made.days[place]
    wanted = set()
    for period, days in LENGTHS.items():
        for dimension, key in KEYS.items():
            sent = within(made.applied if dimension == "application" else made.sent, last, days)
            groups = defaultdict(list)
            for row in sent:
                groups[key(row)].append(row)
            wanted |= {(last, period, dimension, *group, *figures(rows)) for group, rows in groups.items()}
    found = ask(f"SELECT * FROM wormhole.scorecards_by('{last}')")
    assert len(found) == len(set(found))
    assert set(found) == wanted


def test_flows_of_an_hour(made, ask) -> None:
    hours = {row["row_key"]: row["timestamp"].hour for row in made.rows["message_publication"]}
    details = {row["row_key"]: row for row in made.rows["token_transfer_details"]}
    groups = defaultdict(list)
    for row in made.rows["token_transfer_payload"]:
        route = int(row["row_key"].split(":")[0]), row["target_chain"], row["origin_chain"]
        groups[row["date"], hours[row["row_key"]], *route, row["origin_address"]].append(
            details[row["row_key"]]
        )
    wanted = set()
    for key, rows in groups.items():
        amounts = [Decimal(row["amount"]) for row in rows if row["amount"]]
        values = [row["notional_usd"] for row in rows if row["notional_usd"] is not None]
        known = amounts and max(amounts) < 10**22
        symbol = rows[0]["origin_symbol"]
        wanted.add(
            (*key, symbol, len(rows), sum(amounts) if known else None, sum(values) if values else None)
        )
    assert set(ask("SELECT * FROM wormhole.flows_hourly")) == wanted
    assert len(ask("SELECT * FROM wormhole.flows_hourly")) == len(wanted)


def test_nft_transfers_of_a_day(made, ask) -> None:
    counted = defaultdict(int)
    for row in made.rows["nft_transfer_payload"]:
        counted[row["date"], 2, row["target_chain"], 2, "ab" * 32] += 1
    assert set(ask("SELECT * FROM wormhole.nft_transfers_daily")) == {(*k, n) for k, n in counted.items()}


def test_emitters_and_the_sequences_that_they_span(settings, lake) -> None:
    attempt = lake.begin("wormhole", FIRST, FIRST, "run")
    largest = 2**64 - 1
    rows = [
        {"date": FIRST, "emitter_chain": 2, "emitter_address": emitter, "sequence": Decimal(sequence)}
        for emitter, sequence in (("aa" * 32, 7), ("aa" * 32, 5), ("bb" * 32, largest))
    ]
    named = [{**row, "row_key": f"2:{row['emitter_address']}:{row['sequence']:016}"} for row in rows]
    put(settings, attempt, "message_publication", named)
    lake.builds.publish(pass_audit(attempt))
    found = lake.query("SELECT * FROM wormhole.emitter_totals ORDER BY emitter_address").to_pylist()
    assert [tuple(row.values()) for row in found] == [
        (FIRST, 2, "aa" * 32, 2, Decimal(5), Decimal(7)),
        (FIRST, 2, "bb" * 32, 1, Decimal(largest), Decimal(largest)),
    ]
