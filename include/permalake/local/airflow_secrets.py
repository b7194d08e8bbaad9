"""Secrets that the Airflow processes of one installation share.

They are made once, in files that only the owner can read.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from cryptography.fernet import Fernet

USER = "admin"


def environment(folder: Path) -> dict[str, str]:
    """Airflow's settings for JWT secret, Fernet key and the one user; a setting of the user's own wins."""
    kept = _once(
        folder / "secrets.json",
        {
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(48),
            "AIRFLOW__API__SECRET_KEY": secrets.token_urlsafe(48),
            "AIRFLOW__CORE__FERNET_KEY": Fernet.generate_key().decode(),
        },
    )
    _once(_passwords(folder), {USER: secrets.token_urlsafe(12)})
    login = {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(_passwords(folder)),
    }
    return {name: os.environ.get(name, value) for name, value in (kept | login).items()}


def password(folder: Path) -> str:
    """Return the password of :data:`USER`."""
    return str(json.loads(_passwords(folder).read_text())[USER])


def _passwords(folder: Path) -> Path:
    return folder / "passwords.json"


def _once(file: Path, fresh: dict[str, str]) -> dict[str, str]:
    """Return the file's content; write ``fresh`` if there is no file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return dict(json.loads(file.read_text()))
    with os.fdopen(descriptor, "w") as stream:
        json.dump(fresh, stream)
    return fresh
