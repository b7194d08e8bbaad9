"""Files of `permalake statement` over the synthetic Wormhole world: figures as SQL has them, signed VAAs."""

from __future__ import annotations

import csv
import html
import io
import re
import zipfile
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.cli import main as front
from permalake.config import load_settings
from permalake.domains import open_reader
from permalake.wormhole.codec.guardians import verify
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.reference import load_reference
from support.vaa_data import SYNTHETIC

SIDES = (("sent", -1, "sender_address"), ("received", 1, "receiver_address"))


@pytest.fixture(scope="module")
def config(published_world, tmp_path_factory):
    settings, _ = published_world
    file = tmp_path_factory.mktemp("statement") / "permalake.toml"
    file.write_text(
        f'[lake]\nwarehouse = "{settings.lake.warehouse}"\n'
        f'[wormhole]\npath = "{settings.wormhole.path}"\nreference = "{settings.wormhole.reference}"\n'
    )
    return file


@pytest.fixture(scope="module")
def transfers(published_world):
    """Every transfer with its value, as analysts read them."""
    return open_reader(published_world[0]).query("SELECT * FROM wormhole.priced_transfers").to_pylist()


@pytest.fixture(scope="module")
def busiest(transfers):
    """The address with most transfers on one of the sides."""
    sides = [row[own] for row in transfers for _, _, own in SIDES if row[own]]
    [(address, count)] = Counter(sides).most_common(1)
    assert count > 3
    return address


def expected(transfers, address):
    """The rows of an address's statement: message, side, signed amount, signed value."""
    return sorted(
        (
            row["row_key"],
            side,
            *(None if row[name] is None else sign * row[name] for name in ("amount", "notional_usd")),
        )
        for row in transfers
        for side, sign, own in SIDES
        if (row[own] or "").lower() == address.lower()
    )


def run(config, capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        front.main(["statement", *map(str, arguments), "--config", str(config)])
    printed = capsys.readouterr()
    return int(end.value.code or 0), printed.err


def checked(config, capsys, archive):
    """The exit code of the check of an archive, and how many proofs hold."""
    with pytest.raises(SystemExit) as end:
        front.main(["verify", str(archive), "--config", str(config)])
    found = re.search(r"(\d+) proofs, each of them holds", capsys.readouterr().out)
    return int(end.value.code or 0), int(found[1]) if found else 0


def number(text):
    return Decimal(text.replace(",", "")) if re.fullmatch(r"-?[\d,]+(\.\d+)?", text) else None


def held(signed):
    """Which signed messages their guardians signed."""
    vaas = decode_vaas(pa.array(signed, pa.binary()))
    return verify(vaas, load_reference(SYNTHETIC / "reference").guardian_sets).ok().tolist()


def test_the_page_has_the_figures_of_sql(config, transfers, busiest, tmp_path, capsys) -> None:
    target = tmp_path / "statement.html"
    code, err = run(config, capsys, busiest, "--network", "wormhole", "--html", target)
    rows = expected(transfers, busiest)
    assert (code, err) == (0, f"{target}: {len(rows)} rows\n")
    page = target.read_text("utf-8")
    table = [
        [html.unescape(re.sub("<[^>]*>", "", cell)) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)]
        for row in re.findall(r"<tr>(.*?)</tr>", page, re.S)
    ][1:]
    shown = sorted((row[8], row[1], number(row[4]), number(row[6])) for row in table)
    assert shown == rows
    words = {row[6].partition(";")[0] for row in table if number(row[6]) is None}
    assert words <= {"no_quote", "not_listed", "no_decimals", "denied", "not_asked", "unknown"}
    assert "<script" not in page
    assert re.findall(r"https?://", page) == []


def test_every_proof_is_the_signed_message(config, transfers, busiest, tmp_path, capsys) -> None:
    target = tmp_path / "statement.zip"
    code, err = run(config, capsys, busiest, "--network", "wormhole", "--proofs", target)
    assert code == 0, err
    archive = zipfile.ZipFile(target)
    proofs = {
        name.removeprefix("proofs/").removesuffix(".vaa").replace("_", ":"): archive.read(name)
        for name in archive.namelist()
        if name.startswith("proofs/")
    }
    rows = expected(transfers, busiest)
    assert set(proofs) == {key for key, *_ in rows}
    assert all(held(proofs.values()))
    whole = next(iter(proofs.values()))
    assert not any(held([whole[:-1] + bytes([whole[-1] ^ 1])]))
    told = list(csv.DictReader(io.StringIO(archive.read("statement.csv").decode())))
    assert sorted((row["row_key"], row["side"]) for row in told) == [row[:2] for row in rows]
    assert f"{len(proofs)} files" in archive.read("README.txt").decode()
    assert checked(config, capsys, target) == (0, len(proofs))
    damaged = tmp_path / "damaged.zip"
    with zipfile.ZipFile(damaged, "w") as copy:
        copy.writestr("statement.csv", archive.read("statement.csv"))
        copy.writestr("proofs/one.vaa", whole[:-1] + bytes([whole[-1] ^ 1]))
    assert checked(config, capsys, damaged) == (1, 0)
    names = [name for name in archive.namelist() if name.startswith("proofs/")]
    for named in ({}, dict.fromkeys(names, names[0]), {name: name for name in names[1:]}):
        with zipfile.ZipFile(damaged, "w") as copy:
            copy.writestr("statement.csv", archive.read("statement.csv"))
            for name, other in named.items():
                copy.writestr(name, archive.read(other))
        assert checked(config, capsys, damaged) == (1, 0), "a row rests on a message that is not there"


def test_a_statement_of_several_addresses_names_the_one_of_each_row(config, transfers, capsys) -> None:
    both = sorted({row["receiver_address"] for row in transfers if row["receiver_address"]})[:2]
    with pytest.raises(SystemExit) as end:
        front.main(["statement", *both, "--network", "wormhole", "--config", str(config)])
    printed = capsys.readouterr()
    assert not end.value.code, printed.err
    told = list(csv.DictReader(io.StringIO(printed.out)))
    for address in both:
        own = sorted((row["row_key"], row["side"]) for row in told if row["address"] == address)
        assert own == [row[:2] for row in expected(transfers, address)]


def test_days_bound_the_statement(config, transfers, busiest, tmp_path, capsys) -> None:
    day = min(row["date"] for row in transfers if busiest in {row[own] for _, _, own in SIDES})
    target = tmp_path / "statement.html"
    options = ("--network", "wormhole", "--from", day, "--to", day)
    code, err = run(config, capsys, busiest, *options, "--html", target)
    rows = expected([row for row in transfers if row["date"] == day], busiest)
    assert (code, err) == (0, f"{target}: {len(rows)} rows\n")
    assert f"{day} to {day}" in target.read_text("utf-8")


def test_command_and_page_have_one_statement_with_transactions(
    config, transfers, busiest, tmp_path, capsys
) -> None:
    settings = load_settings(str(config))
    target = tmp_path / "statement.zip"
    assert run(config, capsys, busiest, "--network", "wormhole", "--proofs", target)[0] == 0
    text = zipfile.ZipFile(target).read("statement.csv").decode()
    printed = list(csv.DictReader(io.StringIO(text)))
    with TestClient(create_app(settings)) as client:
        path = f"/wormhole/address/{busiest}?format=csv&list=statement"
        served = list(csv.DictReader(io.StringIO(client.get(path).text)))
        page = client.get(f"/wormhole/address/{busiest}", headers={"Accept": "text/html"}).text
    assert list(served[0]) == list(printed[0])

    def place(row):
        return row["time"], row["row_key"], row["side"]

    assert sorted(served, key=place) == sorted(printed, key=place)
    emitted = {row["row_key"]: row["transaction_id"] or "" for row in transfers}
    assert {row["row_key"]: row["transaction_id"] for row in printed}.items() <= emitted.items()
    signs = {side: sign for side, sign, _ in SIDES}
    of_key = {row["row_key"]: row for row in transfers}
    for row in printed:
        known = of_key[row["row_key"]]
        assert (row["stand_in"] or None, row["price_source"] or None) == (
            known["stand_in"],
            known["price_source"],
        )
        for name, sign in (
            ("notional_usd", signs[row["side"]]),
            ("stand_in_notional_usd", signs[row["side"]]),
            ("token_price_usd", 1),
            ("stand_in_price_usd", 1),
        ):
            value = known[name]
            assert (Decimal(row[name]) if row[name] else None) == (None if value is None else sign * value), (
                name
            )
        assert not (row["notional_usd"] and row["stand_in_notional_usd"]), "a price needs no stand-in"
    for name in ("transaction_id", "notional_usd", "stand_in"):
        assert any(row[name] for row in printed), name
    assert "list=statement" in page
