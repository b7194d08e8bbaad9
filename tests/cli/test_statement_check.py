"""Archives of statements that were handed on: what is not proven, or is no archive, is refused."""

from __future__ import annotations

import zipfile

import pytest

from permalake.cli import statement_check
from permalake.config import Settings
from permalake.errors import ConfigError
from permalake.transparency.proofs import InvalidProofError

TRANSACTION = "ab" * 32


@pytest.fixture
def check(tmp_path):
    """The check of an archive of some files."""

    def check(*files):
        with zipfile.ZipFile(tmp_path / "statement.zip", "w") as archive:
            for name, content in files:
                archive.writestr(name, content)
        return "\n".join(statement_check.check_statement(Settings(), None, tmp_path / "statement.zip"))

    return check


@pytest.mark.parametrize("row", ["row_key,transaction_id\n2:00:1,", f"cause,transaction_id\nx,{TRANSACTION}"])
def test_rows_whose_proofs_were_taken_away_are_refused(check, row) -> None:
    with pytest.raises(InvalidProofError, match=r"^statement\.csv, row 1: there is no proof of "):
        check(("statement.csv", row))


def test_a_row_that_names_no_message_is_refused(check) -> None:
    with pytest.raises(InvalidProofError, match="row 1: there is no proof of its message"):
        check(("statement.csv", "row_key,amount\n,7"))


def test_receipts_are_told_as_not_proven(check) -> None:
    words = check(("statement.csv", "cause,transaction_id\nx,\ny,"), ("statement.html", "2 rows"))
    assert "2 rows; 0 proofs" in words
    assert words.endswith("2 rows without a transaction, as those of receipts are: nothing here proves them.")


def test_rows_and_proofs_alone_are_read_and_they_are_bounded(check, monkeypatch) -> None:
    monkeypatch.setattr(statement_check, "_LARGEST", 100)
    assert "0 rows" in check(("statement.csv", ""), ("README.txt", bytes(1000)))
    with pytest.raises(InvalidProofError, match="102 bytes, which are too many"):
        check(("statement.csv", ""), ("proofs/1.json", bytes(51)), ("proofs/2.json", bytes(51)))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("proofs/x.txt", b"x"),
        ("proofs/x.json", b"[]"),
        ("proofs/x.json", b""),
        ("proofs/x.json", b"[" * 100_000),
    ],
)
def test_what_is_no_proof_is_named(check, name, content) -> None:
    with pytest.raises((InvalidProofError, ConfigError), match="proof"):
        check(("statement.csv", ""), (name, content))


def test_an_archive_with_a_file_twice_or_without_rows_is_refused(check) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"), pytest.raises(InvalidProofError, match="twice"):
        check(("statement.csv", ""), ("statement.csv", "row_key\n1"))
    with pytest.raises(ConfigError, match=r"statement\.csv is missing"):
        check(("README.txt", ""))
    with pytest.raises(ConfigError, match="no archive"):
        check(("statement.csv", b"\xff"))
