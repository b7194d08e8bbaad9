"""A connection of type Google Cloud as the provider's hook reads it, in values that reach a Spark job.

Where the key lies in Secret Manager, the hook fetches it with the credentials of the machine. The job gets
credentials in Google's own JSON and the accounts to impersonate, and opens them itself: a token ends after an
hour and would not last for a range of days.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk.log import mask_secret

from permalake.errors import ConfigError, PermalakeError, line_of

VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
_UNSUPPORTED = ("idp_issuer_url", "quota_project_id")
_KEYS = ("keyfile_dict", "key_path", "key_secret_name", "credential_config_file")


def google_values(name: str) -> dict[str, str]:
    """Return project, instance, credentials and impersonation chain of a connection, as far as it has them.

    The provider's form has no field for the instance: it is ``instance`` in the extra.

    Raises:
        ConfigError: The connection cannot be opened as it stands.
        PermalakeError: Google did not answer.
    """
    from google.api_core.exceptions import RetryError, ServerError
    from google.auth.exceptions import TransportError

    try:
        return _values(name)
    except PermalakeError:
        raise
    except OSError as error:
        if error.filename is None:  # the network's
            raise PermalakeError(f"bigtable.connection: {name}: {line_of(error)}") from None
        raise ConfigError(f"bigtable.connection: {name}: {error.filename} cannot be read") from None
    except (RetryError, ServerError, TransportError) as error:
        raise PermalakeError(f"bigtable.connection: {name}: {line_of(error)}") from None
    except Exception as error:  # noqa: BLE001 - whatever the hook raises, the connection has to change
        raise ConfigError(f"bigtable.connection: {name}: {line_of(error)}") from None


def _values(name: str) -> dict[str, str]:
    from airflow.providers.google.common.hooks.base_google import GoogleBaseHook, get_field

    hook = GoogleBaseHook(gcp_conn_id=name)
    fields = {field: get_field(hook.extras, field) for field in (*_KEYS, *_UNSUPPORTED)}
    for field in _UNSUPPORTED:
        if fields[field]:
            raise ConfigError(f"bigtable.connection: {name} has {field}, which is not supported; remove it")
    if fields["key_secret_name"]:
        key = _secret(name, fields["key_secret_name"], get_field(hook.extras, "key_secret_project_id"))
        fields["keyfile_dict"], fields["key_secret_name"] = key, None
        hook.extras = {**hook.extras, **fields}
    elif os.environ.get(VARIABLE):  # It counts in place of the connection's key.
        fields = dict.fromkeys(fields)
        hook.extras = {**hook.extras, **fields}
    values = {"instance": get_field(hook.extras, "instance"), "project": get_field(hook.extras, "project")}
    chain = get_field(hook.extras, "impersonation_chain")
    if chain or any(fields.values()):
        _, values["project"] = hook.get_credentials_and_project_id()
    if text := _credentials(fields):
        mask_secret(text)
        values["credentials"] = text
    if chain:
        accounts = [chain] if isinstance(chain, str) else chain
        accounts = [account.strip() for text in accounts for account in text.split(",")]
        values["impersonation_chain"] = json.dumps(accounts)
    return {key: value for key, value in values.items() if value}


def _secret(name: str, secret: str, project: str | None) -> str:
    """Return a key that lies in Secret Manager; the machine's own credentials read it."""
    from airflow.providers.google.cloud.hooks.secret_manager import GoogleCloudSecretManagerHook

    hook = GoogleCloudSecretManagerHook(gcp_conn_id=name)
    hook.extras = {}
    answer = hook.access_secret(secret_id=secret, project_id=project or hook.project_id)
    return str(answer.payload.data.decode("utf-8"))


def _credentials(fields: Mapping[str, Any]) -> str | None:
    """Return the JSON of a service account's key or of a federation, whichever form the connection has."""
    key = fields["keyfile_dict"] or fields["credential_config_file"]
    path = fields["key_path"]
    if isinstance(key, str) and not key.lstrip().startswith("{"):
        path, key = key, None
    if path:
        return Path(path).read_text("utf-8")
    return key if key is None or isinstance(key, str) else json.dumps(key)
