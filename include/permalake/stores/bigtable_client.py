"""Google's Bigtable client, with the credentials of the settings or those that it finds itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from permalake.config import BigtableSettings
from permalake.errors import ConfigError

if TYPE_CHECKING:
    from google.cloud.bigtable import Client
    from google.oauth2.service_account import Credentials


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
        ConfigError: Project or instance is not set, or ``bigtable.credentials`` is no service account's key.
    """
    from google.oauth2.service_account import Credentials

    for key in ("project", "instance"):
        if getattr(settings, key) is None:
            raise ConfigError(
                f"bigtable.{key}: not set; the Airflow connection {settings.connection} counts in DAGs alone"
            )
    if settings.credentials is None:
        return None
    try:
        key = json.loads(settings.credentials.get_secret_value())
        made: Credentials = Credentials.from_service_account_info(key)  # type: ignore[no-untyped-call]
    except (ValueError, KeyError, TypeError):  # none of which may show the key
        raise ConfigError("bigtable.credentials: not the JSON of a service account's key") from None
    return made
