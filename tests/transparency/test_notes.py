"""Signed notes and checkpoints."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from permalake.errors import ConfigError
from permalake.transparency import keys
from permalake.transparency.notes import (
    Checkpoint,
    InvalidNoteError,
    SignerKey,
    VerifierKey,
    open_note,
    read_checkpoint,
)
from support.signed_lakes import at_home

# Key, text and note of the documentation of Go's package golang.org/x/mod/sumdb/note.
PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
NOTE = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
    "\n"
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6Ryy"
    "BwJnAM=\n"
)
KEY = SignerKey("example.org/log", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))


def opened(note, key):
    return open_note(note, {key.name: key})


def test_a_note_that_another_implementation_signed_is_opened() -> None:
    assert opened(NOTE.encode(), VerifierKey.parse(PETER)) == NOTE.split("\n\n", maxsplit=1)[0] + "\n"
    assert str(VerifierKey.parse(PETER)) == PETER


def test_a_checkpoint_survives_signing() -> None:
    checkpoint = Checkpoint("example.org/log", 300, bytes(32))
    assert read_checkpoint(opened(KEY.sign(checkpoint.text), KEY.verifier)) == checkpoint


@pytest.mark.parametrize("at", range(0, len(NOTE.encode())))
def test_a_changed_byte_is_noticed(at) -> None:
    note = bytearray(NOTE.encode())
    note[at] ^= 1
    with pytest.raises(InvalidNoteError):
        opened(bytes(note), VerifierKey.parse(PETER))


@pytest.mark.parametrize(
    "note", [b"", b"\n\n", b"text\n", b"text\n\n", b"\xff\n\n", NOTE.encode()[:-1], b"x" * 2**21]
)
def test_what_is_no_note_is_refused(note) -> None:
    with pytest.raises(InvalidNoteError):
        opened(note, VerifierKey.parse(PETER))


def test_another_key_of_the_same_name_has_not_signed_it() -> None:
    other = SignerKey(KEY.name, Ed25519PrivateKey.from_private_bytes(bytes(32)))
    with pytest.raises(InvalidNoteError, match="another key"):
        opened(KEY.sign("text\n"), other.verifier)


@pytest.mark.parametrize(
    "text", ["", "name", PETER[:-4], PETER.replace("c74f", "c74e"), PETER + "A", "a b+1+2"]
)
def test_what_is_no_key_is_refused(text) -> None:
    with pytest.raises(InvalidNoteError):
        VerifierKey.parse(text)


@pytest.mark.parametrize(
    "text", ["log\n-1\nAA==\n", "log\n01\n" + "A" * 44, "log\n1\nAA==\n", "log\n1\n", "a\nb\nc\nd\ne"]
)
def test_what_is_no_checkpoint_is_refused(text) -> None:
    with pytest.raises(InvalidNoteError):
        read_checkpoint(text)


def test_a_key_is_kept_for_its_owner_alone_and_never_replaced(tmp_path, monkeypatch) -> None:
    at_home(monkeypatch, tmp_path)
    assert keys.signing_key() is None
    key = keys.create_key("example.org/log")
    assert keys.KEY_FILE.stat().st_mode & 0o777 == 0o600
    assert keys.signing_key().verifier == key.verifier
    with pytest.raises(ConfigError, match="exists"):
        keys.create_key("example.org/log")
    monkeypatch.setenv(keys.VARIABLE, keys.KEY_FILE.read_text())
    keys.KEY_FILE.unlink()
    assert keys.signing_key().verifier == key.verifier


@pytest.mark.parametrize("text", ["", "PRIVATE+KEY+a+b+c", "PRIVATE+KEY+a+00000000+" + "A" * 44])
def test_a_damaged_private_key_is_named_and_not_shown(tmp_path, monkeypatch, text) -> None:
    at_home(monkeypatch, tmp_path)
    keys.KEY_FILE.write_text(text)
    with pytest.raises(ConfigError, match="no private key") as refused:
        keys.signing_key()
    assert not text or text not in str(refused.value)


def test_a_name_that_would_break_a_note_is_refused(tmp_path, monkeypatch) -> None:
    at_home(monkeypatch, tmp_path)
    for name in ("", "two words", "plus+", "line\nbreak", "x" * 129):
        with pytest.raises(ConfigError):
            keys.create_key(name)
