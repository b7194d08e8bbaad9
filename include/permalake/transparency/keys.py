"""The key that signs the log: one line in a file outside the warehouse, or in the environment."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from permalake.errors import ConfigError
from permalake.paths import HOME
from permalake.transparency.notes import NAME, SignerKey, VerifierKey

VARIABLE = "PERMALAKE_SIGNING_KEY"
KEY_FILE = HOME / "keys" / "log.key"
_PREFIX = "PRIVATE+KEY+"
_ED25519 = b"\x01"
RUNBOOK = "docs/runbooks/signing-key.md"


def create_key(name: str) -> SignerKey:
    """Create the key of a log named ``name``; the file can be read by its owner alone.

    Raises:
        ConfigError: if there is one already, here or in the environment, or the name is no name of a log.
    """
    if os.environ.get(VARIABLE):
        raise ConfigError(f"{VARIABLE} holds the key that signs here; unset it first, see {RUNBOOK}")
    if not NAME.fullmatch(name):
        raise ConfigError(f"--name {name!r}: use letters, digits, '.', '/', ':', '_' and '-', 128 at most")
    key = SignerKey(name, Ed25519PrivateKey.generate())
    KEY_FILE.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    line = f"{_PREFIX}{name}+{key.verifier.hash.hex()}+{_base64(key.key.private_bytes_raw())}\n"
    try:
        with os.fdopen(os.open(KEY_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(line)
    except FileExistsError:
        raise ConfigError(
            f"{KEY_FILE} exists; a log has one key. To rotate it, move file and log away: see {RUNBOOK}"
        ) from None
    return key


def signing_key() -> SignerKey | None:
    """Return the key of this machine; None where there is none, and nothing is signed.

    Raises:
        ConfigError: if the line is no private key.
    """
    if text := os.environ.get(VARIABLE):
        return _parse(text, VARIABLE)
    try:
        return _parse(KEY_FILE.read_text(), str(KEY_FILE))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{KEY_FILE} cannot be read: {error.strerror}") from None


def trusted_key(text: str) -> VerifierKey:
    """Read a public key from its line, or from a file that holds the line."""
    path = Path(text)
    if "+" not in text and path.is_file():
        return VerifierKey.parse(path.read_text())
    return VerifierKey.parse(text)


def _parse(text: str, place: str) -> SignerKey:
    # The base64 may hold a plus, so that the name's end is searched from the left.
    name, _, rest = text.strip().removeprefix(_PREFIX).partition("+")
    stated, _, encoded = rest.partition("+")
    try:
        content = base64.b64decode(encoded, validate=True)
        key = SignerKey(name, Ed25519PrivateKey.from_private_bytes(content[1:]))
    except ValueError:
        key = None
    if key is None or not text.startswith(_PREFIX) or key.verifier.hash.hex() != stated:
        raise ConfigError(f"{place} holds no private key; restore it from its backup, see {RUNBOOK}")
    return key


def _base64(seed: bytes) -> str:
    return base64.b64encode(_ED25519 + seed).decode()
