"""Mirrors: what a publisher exported is built again from its raw bytes, and is the same; lies are refused."""

from __future__ import annotations

import shutil
from datetime import date

import pyarrow as pa
import pytest

from permalake.config import load_settings
from permalake.domains import domain_of, open_reader
from permalake.paths import ROOT
from support import whole_runs
from support.publishers import Side, digests, lying_export
from support.signed_lakes import NAME, at_home, public_key
from support.web_server import web_server

SAMPLE_DAY = "2022-09-28"
SAMPLE_MESSAGES = 81
WORMHOLE_DAYS = ("2100-01-01", "2100-01-02")


def sample_sections() -> str:
    text = (ROOT / "permalake.toml").read_text()
    return text.replace('"include/sample', f'"{ROOT}/include/sample')


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def publisher(spark, tmp_path_factory, patch):
    """The bundled sample, built, signed and exported."""
    side = Side(spark, tmp_path_factory.mktemp("publisher"), patch, sample_sections())
    assert side.call("keys", "create", "--name", NAME) == 0
    assert side.call("run", "iota", "--network", "shimmer", "--date", SAMPLE_DAY) == 0
    first, last = WORMHOLE_DAYS
    assert side.call("run", "wormhole", "--date", first, "--to", last) == 0
    assert side.call("export", side.folder / "export") == 0
    return side


@pytest.fixture(scope="module")
def mirrored(spark, publisher, tmp_path_factory, patch):
    """A mirror of it over HTTP, with the paths that it asked for."""
    side = Side(spark, tmp_path_factory.mktemp("mirror"), patch, sample_sections())
    key = publisher.key()
    with web_server(publisher.folder / "export") as (url, asked):
        assert side.call("mirror", url, "--key", key) == 0
        side.asked = list(asked)
        side.url = url
        yield side


def test_a_mirror_has_the_rows_and_digests_of_its_publisher(publisher, mirrored, patch) -> None:
    for network in ("shimmer", "wormhole"):
        theirs = whole_runs.rows(publisher.config, network)
        ours = whole_runs.rows(mirrored.config, network)
        signed = {name for name, table in domain_of(network).tables.items() if table.commit != "side"}
        whole_runs.assert_same(
            {n: rows for n, rows in ours.items() if n in signed},
            {n: rows for n, rows in theirs.items() if n in signed},
        )
    export = publisher.folder / "export"
    signed = digests(export, _key(publisher, patch))
    assert mirrored.call("keys", "create", "--name", "example.org/mirror") == 0
    assert mirrored.call("export", mirrored.folder / "export") == 0
    assert digests(mirrored.folder / "export", _key(mirrored, patch)) == signed


def test_a_day_tells_whose_it_is_and_what_is_taken_over(mirrored) -> None:
    days = {day.date: day for day in open_reader(load_settings(mirrored.config)).status("wormhole")}
    notes = days[date.fromisoformat(WORMHOLE_DAYS[0])].notes
    assert any(note.startswith(f"copied from {NAME}/") for note in notes)
    assert any(note.startswith("prices, answers of chains and counts") and NAME in note for note in notes)


def test_what_is_copied_is_left_and_no_data_is_fetched_again(mirrored, publisher, capsys) -> None:
    with web_server(publisher.folder / "export") as (url, asked):
        assert mirrored.call("mirror", url) == 0
    told = capsys.readouterr().out.splitlines()
    assert "shimmer: 1 day, all copied" in told
    assert "wormhole: 2 days, all copied" in told
    assert not [path for path in asked if path.startswith("/data/")]


def test_raw_bytes_are_fetched_once_and_tables_that_follow_from_them_never(mirrored) -> None:
    data = [path for path in mirrored.asked if path.startswith("/data/")]
    assert data
    assert len(data) == len(set(data))
    tables = {path.split("/")[3] for path in data if path.startswith("/data/shimmer")}
    assert tables == {"milestones", "messages", "consumed_outputs"}


def test_the_sample_is_built_again_over_http_by_whoever_checks_it(
    spark, publisher, tmp_path, patch, capsys
) -> None:
    key = _key(publisher, patch)
    lying = lie(publisher, tmp_path, "shimmer", "ledger_updates", "amount", 7)
    side = Side(spark, tmp_path / "stranger", patch, sample_sections())
    with web_server(publisher.folder / "export") as (url, asked):
        assert side.call("verify", url, "--deep", "--key", key) == 0
        data = [path for path in asked if path.startswith("/data/")]
        said = capsys.readouterr().out
    assert f"shimmer: built again from their raw bytes: {SAMPLE_MESSAGES} messages of 2 milestones." in said
    assert "wormhole: built again from their raw bytes: " in said
    assert len(data) == len(set(data)), "what was fetched for the rows serves the derivation, too"
    (side.folder / "home" / "seen_logs.json").unlink()
    with web_server(lying) as (url, _):
        assert side.call("verify", url, "--deep", "--key", key, "--network", "shimmer") == 1
    assert "amount is 7, from the raw bytes follows " in capsys.readouterr().err


def _key(side, patch):
    at_home(patch, side.folder / "home")
    return public_key()


def lie(publisher, folder, network, table, column, value):
    """An export whose publisher signed another value in the first row of a table."""
    lying = shutil.copytree(publisher.folder / "export", folder / "lying")

    def change(rows):
        at = rows.schema.get_field_index(column)
        values = [value, *rows[column].to_pylist()[1:]]
        return rows.set_column(at, rows.field(column), pa.array(values, rows.field(column).type))

    lying_export(lying, network, table, change)
    return lying


def published(side, network):
    days = open_reader(load_settings(side.config)).status(network)
    return {str(day.date): day.notes for day in days if day.published}


def test_a_signed_day_that_does_not_follow_is_refused_with_table_and_row_and_the_next_publisher_is_asked(
    spark, publisher, tmp_path, patch, capsys
) -> None:
    key = _key(publisher, patch)
    honest = publisher.folder / "export"
    lying = lie(publisher, tmp_path, "shimmer", "ledger_updates", "amount", 7)
    side = Side(spark, tmp_path / "mirror", patch, sample_sections())
    assert side.call("mirror", lying, "--key", key, "--network", "shimmer") == 1
    said = capsys.readouterr().err
    assert f"shimmer.ledger_updates of {SAMPLE_DAY} is not what {NAME}/" in said
    assert "; first at milestone_index 1" in said
    assert "amount is " in said
    assert "7 there" in said
    assert published(side, "shimmer") == {}
    (side.folder / "home" / "seen_logs.json").unlink()  # the honest log is another one than the lying one's
    urls = [tmp_path / "nowhere", honest]
    assert side.call("mirror", *urls, "--key", key, "--network", "shimmer") == 0
    assert f"{tmp_path}/nowhere/" in capsys.readouterr().err
    assert any(note.startswith("copied from ") for note in published(side, "shimmer")[SAMPLE_DAY])


def test_a_signed_milestone_without_a_payload_is_refused_and_named(
    spark, publisher, tmp_path, patch, capsys
) -> None:
    key = _key(publisher, patch)
    lying = lie(publisher, tmp_path, "shimmer", "milestones", "payload", None)
    side = Side(spark, tmp_path / "mirror", patch, sample_sections())
    assert side.call("mirror", lying, "--key", key, "--network", "shimmer") == 1
    said = capsys.readouterr().err
    assert (
        f"{lying}: shimmer.milestones of {SAMPLE_DAY}: the rows cannot be read: a row has no payload" in said
    )
    assert published(side, "shimmer") == {}


def test_a_figure_that_does_not_follow_from_what_is_taken_over_is_refused(
    spark, publisher, tmp_path, patch, capsys
) -> None:
    key = _key(publisher, patch)
    lying = lie(publisher, tmp_path, "wormhole", "notional_transferred_daily", "transfers", 99)
    side = Side(spark, tmp_path / "mirror", patch, sample_sections())
    options = ["--network", "wormhole", "--to", WORMHOLE_DAYS[0]]
    assert side.call("mirror", lying, "--key", key, *options) == 1
    said = capsys.readouterr().err
    assert f"wormhole.notional_transferred_daily of {WORMHOLE_DAYS[0]} is not what" in said
    assert "99 there" in said
    assert published(side, "wormhole") == {}
    assert side.call("mirror", lying, "--key", key, *options) == 1
    assert "did not hold before" in capsys.readouterr().err
