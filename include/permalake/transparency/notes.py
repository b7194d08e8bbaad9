"""Signed notes (C2SP ``signed-note``) with Ed25519 keys, and checkpoints (C2SP ``tlog-checkpoint``).

A verifier's key is one line, ``NAME+HASH+KEY``; the hash binds name and key together.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from permalake.errors import PermalakeError

_ED25519 = b"\x01"
_DASH = "— "
_LONGEST_NOTE = 1 << 20
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9./:_-]{0,127}")
"""Names of keys and origins of logs."""


class InvalidNoteError(PermalakeError):
    """Raised if a note is no signed note, or no trusted key has signed it."""


@dataclass(frozen=True)
class VerifierKey:
    """A public key with its name."""

    name: str
    key: bytes

    @classmethod
    def parse(cls, text: str) -> VerifierKey:
        """Read ``NAME+HASH+KEY``; :class:`InvalidNoteError` says what is wrong with it."""
        name, _, rest = text.strip().partition("+")
        stated, _, encoded = rest.partition("+")
        content = _from_base64(encoded)
        if not NAME.fullmatch(name) or content is None or len(content) != 33 or content[:1] != _ED25519:
            raise InvalidNoteError(f"{text.strip()[:80]!r} is no key; `permalake keys show` prints one")
        key = cls(name, content[1:])
        if key.hash.hex() != stated:
            raise InvalidNoteError(f"the key of {name} does not belong to its hash; copy the line whole")
        return key

    @property
    def hash(self) -> bytes:
        """Return the four bytes by which a signature names its key."""
        return sha256(self.name.encode() + b"\n" + _ED25519 + self.key).digest()[:4]

    def __str__(self) -> str:
        return f"{self.name}+{self.hash.hex()}+{base64.b64encode(_ED25519 + self.key).decode()}"


@dataclass(frozen=True)
class SignerKey:
    """A private key with its name."""

    name: str
    key: Ed25519PrivateKey

    @property
    def verifier(self) -> VerifierKey:
        """Return the public key."""
        return VerifierKey(self.name, self.key.public_key().public_bytes_raw())

    def sign(self, text: str) -> bytes:
        """Return a note: the text, which ends with a line break, and the signature below it."""
        signature = self.verifier.hash + self.key.sign(text.encode())
        return f"{text}\n{_DASH}{self.name} {base64.b64encode(signature).decode()}\n".encode()


@dataclass(frozen=True)
class Checkpoint:
    """The state of a log that its origin signs: number of entries and root of the tree over them."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """The text to sign."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"


def open_note(note: bytes, keys: dict[str, VerifierKey]) -> str:
    """Return the text of a note that one of ``keys``, by name, has signed.

    Raises:
        InvalidNoteError: if the note has no such form, none of the keys signed it, or a signature is wrong.
    """
    if len(note) > _LONGEST_NOTE:
        raise InvalidNoteError("the note is longer than a mebibyte")
    try:
        text, separator, signatures = note.decode().rpartition("\n\n")
    except UnicodeDecodeError:
        raise InvalidNoteError("the note is no text") from None
    if not separator or not signatures.endswith("\n"):
        raise InvalidNoteError("the note has no signature")
    text += "\n"
    verified = False
    for line in signatures.splitlines():
        name, _, encoded = line.removeprefix(_DASH).partition(" ")
        content = _from_base64(encoded)
        if not line.startswith(_DASH) or content is None or len(content) < 5:
            raise InvalidNoteError("a signature of the note is damaged")
        key = keys.get(name)
        if key is None or content[:4] != key.hash:
            continue
        try:
            Ed25519PublicKey.from_public_bytes(key.key).verify(content[4:], text.encode())
        except (InvalidSignature, ValueError):
            raise InvalidNoteError(f"the signature of {name} is wrong") from None
        verified = True
    if not verified:
        names = ", ".join(sorted(str(key) for key in keys.values()))
        raise InvalidNoteError(f"the note is signed by another key than {names}")
    return text


def read_checkpoint(text: str) -> Checkpoint:
    """Read the text of a checkpoint; :class:`InvalidNoteError` if it is none."""
    lines = text.split("\n")
    root = _from_base64(lines[2]) if len(lines) == 4 else None
    if root is None or len(root) != 32 or not re.fullmatch(r"0|[1-9][0-9]{0,15}", lines[1]):
        raise InvalidNoteError("the checkpoint is no checkpoint")
    return Checkpoint(lines[0], int(lines[1]), root)


def _from_base64(text: str) -> bytes | None:
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return content if base64.b64encode(content).decode() == text else None
