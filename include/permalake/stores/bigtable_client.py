"""Google's Bigtable client, with the credentials of the settings or those that it finds itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from permalake.config.stores import BigtableSettings
from permalake.errors import ConfigError

if TYPE_CHECKING:
    from google.auth.credentials import Credentials
    from google.cloud.bigtable import Client

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


def client(settings: BigtableSettings, *, admin: bool = False) -> Client:
    """Return a client of the project; with ``admin`` it may create tables.

    Raises:
        ConfigError: See :func:`credentials`.
    """
    from google.cloud.bigtable import Client

    return Client(project=settings.project, credentials=credentials(settings), admin=admin)


def credentials(settings: BigtableSettings) -> Credentials | None:
    """Return the credentials of the settings; None where the client is to look for them itself.

    Raises:
        ConfigError: Project or instance is not set, ``bigtable.credentials`` is no JSON of Google's
            credentials, or there is nothing that could impersonate the accounts of the chain.
    """
    for key in ("project", "instance"):
        if getattr(settings, key) is None:
            raise ConfigError(
                f"bigtable.{key}: not set; the Airflow connection {settings.connection} counts in DAGs alone"
            )
    source = _given(settings)
    if not settings.impersonation_chain:
        return source
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError
    from google.auth.impersonated_credentials import Credentials as Impersonated

    *delegates, target = settings.impersonation_chain
    try:
        begin = source or google.auth.default(scopes=_SCOPES)[0]
    except DefaultCredentialsError:
        raise ConfigError(
            "bigtable.impersonation_chain: no credentials to begin with; set bigtable.credentials or "
            "GOOGLE_APPLICATION_CREDENTIALS"
        ) from None
    return Impersonated(begin, target, target_scopes=_SCOPES, delegates=delegates)


def _given(settings: BigtableSettings) -> Credentials | None:
    """Return ``bigtable.credentials``, whatever type of Google's credentials it is."""
    import google.auth
    from google.auth.exceptions import GoogleAuthError

    if settings.credentials is None:
        return None
    try:
        made: Credentials = google.auth.load_credentials_from_dict(
            json.loads(settings.credentials.get_secret_value())
        )[0]
    except (ValueError, KeyError, TypeError, AttributeError, GoogleAuthError):  # none may show the key
        raise ConfigError(
            "bigtable.credentials: not the JSON of a service account's key or of a federation"
        ) from None
    return made
