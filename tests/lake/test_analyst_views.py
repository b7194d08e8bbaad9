"""Views in analysts' words, beside rows that were computed by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pytest

from permalake.cli import main as front
from permalake.contracts import Table
from permalake.iota.contracts import IOTA_TABLES, analyst_views
from permalake.python_api import Lake
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts import analyst_views as wormhole_views
from permalake.wormhole.reference import load_reference
from support.lakes import DAY1, DAY2, NETWORK, OpenLake, pass_audit, put, settings_of

ANNA, BERT, CARL = (f"smr1{name}qqqqqqqqqqqqqqqqqq" for name in ("a", "e", "c"))
TOKEN = "aa" * 32


def tables_below(views, tables) -> list[Table]:
    return [tables[name] for name in dict.fromkeys(name for view in views for name in view.tables)]


def update(day: date, milestone: int, address: str, output: int, amount: int, *, spent: int, cause=None):
    return {
        "address": address,
        "milestone_index": milestone,
        "ms_timestamp": datetime.combine(day, time(12), UTC),
        "output_id": f"{output:064x}0000",
        "is_spent": spent,
        "kind": "basic",
        "amount": amount,
        "transaction_id": cause and f"{cause:064x}",
        "counterparties": 0,
        "date": day,
    }


def publish(lake, settings, network, day, contracts, rows) -> None:
    attempt = lake.begin(network, day, day, f"run-{day}")
    for table in contracts:
        put(settings, attempt, table.name, rows.get(table.name, []))
    lake.builds.publish(pass_audit(attempt))


@pytest.fixture(scope="module")
def iota_lake(tmp_path_factory):
    """Two days from milestone 17 on. Bert spends what he got before; Carl's output goes back to Anna."""
    settings = settings_of(tmp_path_factory.mktemp("lake") / "warehouse")
    lake = OpenLake(settings)
    contracts = tables_below(analyst_views.VIEWS, IOTA_TABLES)
    first = [
        update(DAY1, 17, ANNA, 1, 5_000_000, spent=0),
        update(DAY1, 18, ANNA, 1, 5_000_000, spent=1, cause=7),
        update(DAY1, 18, ANNA, 2, 2_000_000, spent=0, cause=7),
        update(DAY1, 18, CARL, 3, 3_000_000, spent=0, cause=7),
        update(DAY1, 19, BERT, 4, 10, spent=1, cause=8),
        update(DAY1, 19, ANNA, 5, 10, spent=0, cause=8),
    ]
    second = [
        update(DAY2, 20, ANNA, 3, 3_000_000, spent=1, cause=9),
        update(DAY2, 20, ANNA, 6, 3_000_000, spent=0, cause=9),
        update(DAY2, 21, BERT, 7, 90, spent=1, cause=10),
        update(DAY2, 21, BERT, 8, 90, spent=0, cause=10),
    ]
    for day, start, rows in ((DAY1, 17, first), (DAY2, 20, second)):
        tags = [("48656c6c6f", 1), ("48656c6c6f", 2), ("ff", 3), ("00", 4)]
        publish(
            *(lake, settings, NETWORK, day, contracts),
            {
                "ledger_updates": rows,
                "date_cache": [{"date": day, "start_ms": start, "end_ms": start + 2}],
                "address_analytics": [
                    {"address": ANNA, "milestone_index": start, "sent_tokens": 1, "recv_tokens": 2_500_000}
                    | {"date": day}
                ],
                "tags": [
                    {"tag": tag, "ms_range_id": 0, "milestone_index": start, "message_id": f"{at:064x}"}
                    | {"ms_timestamp": datetime.combine(day, time(12), UTC), "inclusion_state": 1}
                    | {"date": day}
                    for tag, at in tags
                ],
            },
        )
    return Lake(settings), configuration(settings)


def configuration(settings):
    file = Path(settings.lake.warehouse).parent / "permalake.toml"
    network = '[networks.shimmer]\nprotocol = "stardust"\nbech32_hrp = "smr"\npath = "archive"\n'
    file.write_text(f'[lake]\nwarehouse = "{settings.lake.warehouse}"\n{network}')
    return str(file)


@pytest.fixture
def iota(iota_lake):
    return iota_lake[0]


@pytest.fixture
def statement(capsys):
    def call(config, *arguments):
        with pytest.raises(SystemExit) as end:
            front.main(["statement", *arguments, "--config", config])
        printed = capsys.readouterr()
        return int(end.value.code or 0), printed.out, printed.err

    return call


def rows_of(lake, sql):
    return [tuple(row.values()) for row in lake.query(sql).arrow().to_pylist()]


def test_a_statement_is_signed_and_runs(iota) -> None:
    sql = (
        "SELECT milestone_index, amount_base, balance_base, balance, counterparties "
        f"FROM {NETWORK}.account_statement WHERE address = '{ANNA}' ORDER BY milestone_index"
    )
    assert rows_of(iota, sql) == [
        (17, 5_000_000, 5_000_000, Decimal("5.000000"), None),
        (18, -3_000_000, 2_000_000, Decimal("2.000000"), CARL),
        (19, 10, 2_000_010, Decimal("2.000010"), BERT),
        (20, 3_000_000, 5_000_010, Decimal("5.000010"), None),
    ]


def test_an_expired_output_leaves_the_address_that_it_was_created_for(iota) -> None:
    sql = (
        "SELECT milestone_index, amount_base, balance_base FROM shimmer.account_statement "
        f"WHERE address = '{CARL}' ORDER BY milestone_index"
    )
    assert rows_of(iota, sql) == [(18, 3_000_000, 3_000_000), (20, -3_000_000, 0)]


def test_what_is_only_spent_was_held_before(iota) -> None:
    sql = (
        "SELECT milestone_index, amount_base, balance_base, opening_base, since_milestone "
        f"FROM shimmer.account_statement WHERE address = '{BERT}' ORDER BY milestone_index"
    )
    assert rows_of(iota, sql) == [(19, -10, 90, 100, 17), (21, 0, 90, 100, 17)]
    assert rows_of(iota, "SELECT min(balance_base) FROM shimmer.account_statement") == [(0,)]


def test_a_statement_of_an_earlier_day_knows_nothing_of_later_ones(iota) -> None:
    sql = f"SELECT max(milestone_index) FROM shimmer.account_statement(DATE '{DAY1}')"
    assert rows_of(iota, sql) == [(19,)]


def test_flows_are_in_coins_and_base_tokens(iota) -> None:
    flow = (Decimal("0.000001"), 1, Decimal("2.500000"), 2_500_000)
    sql = (
        "SELECT date, sent, sent_base, received, received_base FROM shimmer.address_flows_daily ORDER BY date"
    )
    assert rows_of(iota, sql) == [(DAY1, *flow), (DAY2, *flow)]


def test_tags_are_text_where_they_are_text(iota) -> None:
    sql = f"SELECT tag, tag_text, messages FROM shimmer.tags_daily WHERE date = '{DAY1}' ORDER BY tag"
    assert rows_of(iota, sql) == [("00", None, 1), ("48656c6c6f", "Hello", 2), ("ff", None, 1)]


def test_the_statement_of_days_goes_on_from_earlier_ones(iota_lake, statement) -> None:
    code, out, err = statement(iota_lake[1], ANNA, "--from", f"{DAY2}", "--to", f"{DAY2}")
    assert (code, err) == (0, "")
    head, row = (line.split(",") for line in out.splitlines())
    assert head == [column.name for column in analyst_views.ACCOUNT_STATEMENT.columns]
    told = dict(zip(head, row, strict=True))
    assert (
        told.items()
        >= {
            **{
                "ms_timestamp": "2022-09-29T12:00:00Z",
                "milestone_index": "20",
                "transaction_id": f"{9:064x}",
            },
            **{"amount": "3.000000", "balance": "5.000010", "counterparties": "", "native_tokens": ""},
            **{"amount_base": "3000000", "balance_base": "5000010", "since_milestone": "17"},
        }.items()
    )


def test_wrong_statements_are_one_line(iota_lake, statement) -> None:
    for wrong in ((ANNA, "--from", "2022-10-01", "--to", "2022-09-01"), ("smr1' OR 1=1",)):
        code, _, err = statement(iota_lake[1], *wrong)
        assert (code, err.count("\n")) == (2, 1)


def test_every_chain_has_its_name(tmp_path_factory, statement) -> None:
    listed = load_reference().chains
    settings = settings_of(tmp_path_factory.mktemp("chains") / "warehouse")
    lake = OpenLake(settings)
    contracts = tables_below(wormhole_views.VIEWS, WORMHOLE_TABLES)
    keys = [f"1:{'ee' * 32}:{at:016}" for at in range(3)]
    details = [("12.5", Decimal(25), None), ("9" * 40, None, "not_listed"), (None, None, "no_decimals")]
    publish(
        *(lake, settings, "wormhole", DAY1, contracts),
        {
            "message_publication": [
                {"row_key": key, "version": 1, "guardian_set_index": 1, "nonce": 0, "payload": b""}
                | {"timestamp": datetime.combine(DAY1, time(12), UTC), "sequence": at, "emitter_chain": 1}
                | {"emitter_address": "ee" * 32, "digest": "00" * 32, "date": DAY1}
                for at, key in enumerate(keys)
            ],
            "token_transfer_payload": [
                {"row_key": key, "payload_id": 1, "amount": "1", "origin_address": TOKEN, "origin_chain": 2}
                | {"target_address": "bb" * 32, "target_chain": 9_999, "date": DAY1}
                for key in keys
            ],
            "chain_details": [
                {"row_key": key, "sender_address": "So1ana", "receiver_address": "0xAb", "date": DAY1}
                for key in keys[:1]
            ],
            "token_transfer_details": [
                {"row_key": key, "amount": amount, "notional_usd": usd, "reason": reason, "date": DAY1}
                | ({"token_price_usd": Decimal(2), "price_source": "file"} if usd else {})
                for key, (amount, usd, reason) in zip(keys, details, strict=True)
            ],
        },
    )
    lake = Lake(settings)
    chains = rows_of(lake, "SELECT id, name, family FROM wormhole.chains ORDER BY id")
    assert chains == [(at, listed[at].name, listed[at].family) for at in sorted(listed)]
    assert lake.table("wormhole.chains").arrow().num_rows == len(listed)  # type: ignore[attr-defined]
    coins = dict(rows_of(lake, "SELECT name, native_coin FROM wormhole.chains WHERE native_coin = 'SOL'"))
    assert coins == {"solana": "SOL"}
    assert rows_of(
        lake,
        "SELECT emitter_chain_name, target_chain_name, origin_chain_name, amount, notional_usd, reason "
        "FROM wormhole.priced_transfers ORDER BY row_key",
    ) == [
        ("solana", None, "ethereum", Decimal("12.5"), Decimal(25), None),
        ("solana", None, "ethereum", None, None, "not_listed"),
        ("solana", None, "ethereum", None, None, "no_decimals"),
    ]
    assert rows_of(
        lake, "SELECT transfers, valued, amount, notional_usd FROM wormhole.token_volumes_daily"
    ) == [(3, 1, None, Decimal(25))]
    config = configuration(settings)
    sent, received = (statement(config, party)[1].splitlines() for party in ("So1ana", "0xaB"))
    parts = ("2022-09-28T12:00:00Z", keys[0], "")  # its transaction is not known
    priced = "2.000000000000000000,file,,,,"
    expected = f"sent,solana,,,-12.50000000,-25.00000000,{priced},0xAb,ethereum"
    assert [",".join((*parts, expected, TOKEN))] == sent[1:]
    expected = f"received,solana,,,12.50000000,25.00000000,{priced},So1ana,ethereum"
    assert [",".join((*parts, expected, TOKEN))] == received[1:]
