"""Files of `permalake statement` over the synthetic tangles: figures as SQL has them, proofs that hold."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections import Counter
from decimal import Decimal

import pytest

from permalake.cli import main as front
from permalake.domains import open_reader
from permalake.iota.codec.inclusion_proof import TrustedKeys, is_valid_merkle_proof
from support import synthetic_lake
from support.synthetic_lake import NETWORKS

_NETWORK = """
[networks.{name}]
protocol = "{section.protocol}"
bech32_hrp = "{section.bech32_hrp}"
path = "{section.path}"
coordinator_threshold = {threshold}
coordinator_public_keys = [{keys}]
"""


@pytest.fixture(scope="module")
def config(synthetic_settings, tmp_path_factory):
    file = tmp_path_factory.mktemp("statement") / "permalake.toml"
    text = f'[lake]\nwarehouse = "{synthetic_settings.lake.warehouse}"\n'
    for name, section in synthetic_settings.networks.items():
        keys = ", ".join(f'{{key = "{one.key}"}}' for one in section.coordinator_public_keys)
        threshold = section.coordinator_threshold or 2
        text += _NETWORK.format(name=name, section=section, keys=keys, threshold=threshold)
    file.write_text(text)
    return file


def run(config, capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        front.main(["statement", *map(str, arguments), "--config", str(config)])
    printed = capsys.readouterr()
    return int(end.value.code or 0), printed.err


def verified(config, capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        front.main(["verify", *map(str, arguments), "--config", str(config)])
    printed = capsys.readouterr()
    return int(end.value.code or 0), printed.out, printed.err


def busiest(settings, network):
    """The address with most transactions, and the rows of its statement."""
    reader = open_reader(settings)
    [top] = reader.query(
        f"SELECT address FROM {network}.account_statement WHERE transaction_id IS NOT NULL "
        "GROUP BY address ORDER BY count(*) DESC, address LIMIT 1"
    ).to_pylist()
    rows = reader.query(
        f"SELECT * FROM {network}.account_statement WHERE address = '{top['address']}' "
        "ORDER BY milestone_index, cause"
    ).to_pylist()
    assert len(rows) > 3
    return top["address"], rows


def cells(page):
    return [
        [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)]
        for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    ][1:]


@pytest.mark.parametrize("network", ["shimmer", "iota"])
def test_the_page_has_the_figures_of_sql(config, synthetic_settings, tmp_path, capsys, network) -> None:
    address, rows = busiest(synthetic_settings, network)
    target = tmp_path / "statement.html"
    assert run(config, capsys, address, "--network", network, "--html", target)[0] == 0
    page = target.read_text("utf-8")
    shown = [
        (int(row[1]), Decimal(row[2].replace(",", "")), Decimal(row[3].replace(",", "")), row[6])
        for row in cells(page)
    ]
    assert shown == [
        (row["milestone_index"], row["amount"], row["balance"], row["transaction_id"] or "receipt")
        for row in rows
    ]
    gained = sum((row["amount"] for row in rows if row["amount"] > 0), Decimal(0))
    assert f"<dt>Gained</dt><dd>{gained:,f}" in page
    first = [row["amount"] for row in rows if row["milestone_index"] == rows[0]["milestone_index"]]
    before = rows[0]["balance"] - sum(first, Decimal(0))
    assert f"<dt>Balance before the first row</dt><dd>{before:,f}" in page
    assert f"since milestone {rows[0]['since_milestone']}" in page
    assert "<script" not in page
    assert re.findall(r"https?://", page) == []


@pytest.mark.parametrize("network", ["shimmer", "iota"])
def test_every_proof_holds_for_the_network_s_keys(
    config, synthetic_settings, tmp_path, capsys, network
) -> None:
    address, rows = busiest(synthetic_settings, network)
    target = tmp_path / "statement.zip"
    code, err = run(config, capsys, address, "--network", network, "--proofs", target)
    assert code == 0, err
    archive = zipfile.ZipFile(target)
    names = {name for name in archive.namelist() if name.startswith("proofs/")}
    section = synthetic_settings.networks[network]
    trusted = TrustedKeys(section.coordinator_public_keys, 2)
    proven = set()
    for name in names:
        proof = json.loads(archive.read(name))
        assert is_valid_merkle_proof(proof, "applied", NETWORKS[network], trusted), name
        proven.add(name.removeprefix("proofs/").removesuffix(".json"))
    checked = verified(config, capsys, target, "--network", network)
    assert checked[0] == 0, checked
    assert f"{len(names)} proofs, each of them holds" in checked[1]
    damaged = tmp_path / "damaged.zip"
    with zipfile.ZipFile(damaged, "w") as copy:
        for name in archive.namelist():
            copy.writestr(name, re.sub(rb"[0-9a-f]{64}", b"0" * 64, archive.read(name), count=1))
    code, _, err = verified(config, capsys, damaged, "--network", network)
    assert code == 1
    assert "proofs/" in err
    for named in ({}, dict.fromkeys(names, min(names))):
        with zipfile.ZipFile(damaged, "w") as copy:
            copy.writestr("statement.csv", archive.read("statement.csv"))
            for name, other in named.items():
                copy.writestr(name, archive.read(other))
        code, _, err = verified(config, capsys, damaged, "--network", network)
        assert code == 1
        assert "there is no proof of " in err
    moved = {row["transaction_id"] for row in rows if row["transaction_id"]}
    listed = ", ".join(f"'{one}'" for one in moved)
    messages = open_reader(synthetic_settings).query(
        f"SELECT DISTINCT message_id FROM {network}.transactions "
        f"WHERE inclusion_state = 1 AND transaction_id IN ({listed})"
    )
    assert proven == set(messages["message_id"].to_pylist())
    assert len(proven) == len(moved)
    told = list(csv.DictReader(io.StringIO(archive.read("statement.csv").decode())))
    assert [Decimal(row["balance"]) for row in told] == [row["balance"] for row in rows]
    readme = archive.read("README.txt").decode()
    assert f"{len(proven)} files" in readme
    assert "validate" in readme


def test_a_forged_proof_does_not_hold(config, synthetic_settings, tmp_path, capsys) -> None:
    address, _ = busiest(synthetic_settings, "shimmer")
    target = tmp_path / "statement.zip"
    run(config, capsys, address, "--network", "shimmer", "--proofs", target)
    archive = zipfile.ZipFile(target)
    one, other = [
        json.loads(archive.read(name)) for name in archive.namelist() if name.startswith("proofs/")
    ][:2]
    trusted = TrustedKeys(synthetic_settings.networks["shimmer"].coordinator_public_keys, 2)
    assert not is_valid_merkle_proof({**one, "block": other["block"]}, "applied", "stardust", trusted)


def test_what_cannot_be_written_is_one_line(config, synthetic_settings, tmp_path, capsys) -> None:
    address, _ = busiest(synthetic_settings, "shimmer")
    code, err = run(config, capsys, address, "--network", "shimmer", "--html", tmp_path / "no" / "a.html")
    assert (code, err.count("\n")) == (1, 1)
    assert "--html" in err


def test_an_address_that_moved_nothing_has_an_empty_page(config, tmp_path, capsys) -> None:
    target = tmp_path / "statement.html"
    code, err = run(config, capsys, "smr1qabsent", "--network", "shimmer", "--html", target)
    assert (code, err) == (0, f"{target}: 0 rows\n")
    assert "Nothing moved" in target.read_text("utf-8")


@pytest.fixture(scope="module")
def token_moves():
    """What each address gained of each token, by transaction, from rows that tests made."""
    rows = synthetic_lake.tables("stardust")["native_tokens"]
    owners = {row["output_id"]: row["address"] for row in rows if not row["is_spent"]}
    moves = {}
    for row in rows:
        owner = owners.get(row["output_id"], row["address"])
        change = int(row["amount"]) * (-1 if row["is_spent"] else 1)
        own = moves.setdefault(owner, {}).setdefault(row["transaction_id"], Counter())
        own[row["token_id"]] += change
    return moves


def told(text):
    return {token: int(amount) for token, _, amount in (one.partition("=") for one in text.split())}


def test_command_and_page_have_one_statement_with_native_tokens(
    config, synthetic_api, token_moves, tmp_path, capsys
) -> None:
    address = max(token_moves, key=lambda one: len(token_moves[one]))
    expected = {
        transaction: {token: change for token, change in changes.items() if change}
        for transaction, changes in token_moves[address].items()
    }
    link = f"/api/analytics/v1/shimmer/account_statement?address={address}&format=csv"
    served = list(csv.DictReader(io.StringIO(synthetic_api.get(link).text)))
    target = tmp_path / "statement.zip"
    assert run(config, capsys, address, "--network", "shimmer", "--proofs", target)[0] == 0
    archive = zipfile.ZipFile(target)
    printed = list(csv.DictReader(io.StringIO(archive.read("statement.csv").decode())))
    assert list(printed[0]) == list(served[0])
    by_cause = {row["cause"]: row for row in served}
    assert [row["amount_base"] for row in printed] == [
        by_cause[row["cause"]]["amount_base"] for row in printed
    ]
    for rows in (printed, served):
        moved = {row["transaction_id"]: told(row["native_tokens"]) for row in rows if row["native_tokens"]}
        assert moved == {transaction: changes for transaction, changes in expected.items() if changes}
    assert any(change < 0 for changes in expected.values() for change in changes.values())
    page = synthetic_api.get(f"/shimmer/explore/address/{address}", headers={"Accept": "application/json"})
    for move in page.json()["found"]["history"]["moves"]:
        shown = {one["id"]: int(one["amount"]) for one in move["tokens"]}
        assert shown == expected.get(move["transaction_id"], {})
    text = synthetic_api.get(f"/shimmer/explore/address/{address}?format=csv&list=history.moves").text
    for row in csv.DictReader(io.StringIO(text)):
        assert told(row["tokens"]) == expected.get(row["transaction_id"], {}), "the page's own file"
    some = next(token for changes in expected.values() for token in changes)
    assert some in archive.read("statement.html").decode()


def test_addresses_in_conditions_are_links(synthetic_api) -> None:
    row = next(
        row for row in synthetic_lake.tables("stardust")["basic_outputs"] if row["expiration_return_address"]
    )
    for path in (f"address/{row['address']}", f"output/{row['output_id']}"):
        text = synthetic_api.get(f"/shimmer/explore/{path}", headers={"Accept": "text/html"}).text
        back = row["expiration_return_address"]
        assert f'from then on <a href="/shimmer/explore/address/{back}">{back}</a> alone.' in text
