"""Settings: ``permalake.toml`` with environment overrides (``PERMALAKE_LAKE__WAREHOUSE=…``).

Unknown keys and wrong types are errors that name the key. Passwords, tokens and keys of services come from
the environment only.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from permalake.config.alerts import AlertsSettings
from permalake.config.lake import LakeSettings
from permalake.config.live import LiveSettings
from permalake.config.networks import NetworkName, NetworkSettings, WormholeSettings
from permalake.config.services import ChainSettings, PricesSettings
from permalake.config.serving import ServeSettings
from permalake.config.stores import BigtableSettings, CassandraSettings
from permalake.errors import ConfigError

CONFIG_VARIABLE = "PERMALAKE_CONFIG"
DEFAULT_FILE = "permalake.toml"
_FROM_ENVIRONMENT_ONLY = (
    ("prices", "api_key"),
    ("alerts", "smtp_password"),
    ("serve", "tokens"),
    ("cassandra", "password"),
    ("bigtable", "credentials"),
)
RESERVED_NAMES = (
    *("api", "audit", "data", "day", "docs", "freshness", "health", "iceberg", "metrics", "operations"),
    *("quality", "reasons", "search", "static", "verify"),
)
"""Names that no network may have: first parts of the REST API's own paths."""


class Settings(BaseSettings):
    """The whole configuration."""

    model_config = SettingsConfigDict(
        extra="forbid", frozen=True, env_prefix="PERMALAKE_", env_nested_delimiter="__"
    )

    lake: LakeSettings = LakeSettings()
    networks: dict[NetworkName, NetworkSettings] = {}
    wormhole: WormholeSettings | None = None
    prices: PricesSettings = PricesSettings()
    chains: dict[int, ChainSettings] = {}
    cassandra: CassandraSettings = CassandraSettings()
    bigtable: BigtableSettings = BigtableSettings()
    alerts: AlertsSettings = AlertsSettings()
    live: LiveSettings = LiveSettings()
    serve: ServeSettings = ServeSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources by rank: the environment, then the file, which arrives as init arguments."""
        return env_settings, init_settings

    @model_validator(mode="after")
    def _names_do_not_clash(self) -> Settings:
        if "wormhole" in self.networks:
            raise ValueError(
                "networks.wormhole: this name is the namespace of the Wormhole tables; take another"
            )
        for name in RESERVED_NAMES:
            if name in self.networks:
                raise ValueError(f"networks.{name}: this name is a path of the REST API; take another")
        for name in self.networks:
            if name.endswith("_live"):
                raise ValueError(f"networks.{name}: names that end in _live are those of heads; take another")
        default = self.serve.default_network
        if default is not None and default not in self.networks:
            configured = ", ".join(sorted(self.networks)) or "none"
            raise ValueError(f"serve.default_network: {default} is not configured (configured: {configured})")
        if self.serve.backend == "stores" and not (self.cassandra.contact_points or self.bigtable.table):
            raise ValueError(
                "serve.backend: no store is configured; set [cassandra] or [bigtable], or 'lake'"
            )
        return self

    def network(self, name: str) -> NetworkSettings:
        """Return the settings of an IOTA network; raise :class:`ConfigError` if it is not configured."""
        try:
            return self.networks[name]
        except KeyError:
            configured = ", ".join(sorted(self.networks)) or "none"
            raise ConfigError(f"networks.{name}: not configured (configured: {configured})") from None

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Lake namespaces: the IOTA networks, and ``wormhole`` where it is configured."""
        return (*self.networks, *(("wormhole",) if self.wormhole else ()))


def config_file(path: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the configuration file: the given one, ``PERMALAKE_CONFIG``'s, or ``./permalake.toml``."""
    named = path or os.environ.get(CONFIG_VARIABLE)
    if named:
        file = Path(named)
        if not file.is_file():
            raise ConfigError(f"{file}: no such configuration file; set --config or {CONFIG_VARIABLE}")
        return file.resolve()
    file = Path(DEFAULT_FILE)
    return file.resolve() if file.is_file() else None


@contextmanager
def used(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Make a configuration file that of this process, and of those that it starts, while the block lasts."""
    before = os.environ.get(CONFIG_VARIABLE)
    if file := config_file(path):
        os.environ[CONFIG_VARIABLE] = str(file)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(CONFIG_VARIABLE, None)
        else:
            os.environ[CONFIG_VARIABLE] = before


def load_settings(path: str | os.PathLike[str] | None = None) -> Settings:
    """Read the configuration. Relative paths in the file start at the file's folder.

    Raises:
        ConfigError: A key is unknown or its value is invalid; the message names the first such key.
    """
    file = config_file(path)
    values: dict[str, Any] = {}
    if file:
        try:
            values = tomllib.loads(file.read_text("utf-8"))
        except OSError as error:
            raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: not valid TOML: {error}") from None
        _refuse_secrets(values, file)
        _anchor_paths(values, file.parent)
    _refuse_unknown_variables()
    try:
        return Settings(**values)
    except ValidationError as error:
        raise ConfigError(_first_fault(error)) from None
    except SettingsError as error:
        raise ConfigError(_not_json(error)) from None


def _refuse_unknown_variables() -> None:
    prefix = str(Settings.model_config["env_prefix"])
    for variable in os.environ:
        section = variable.upper().removeprefix(prefix).partition("__")[0].lower()
        if variable.upper().startswith(prefix) and "__" in variable and section not in Settings.model_fields:
            raise ConfigError(
                f"{variable}: unknown section {section}; known: {', '.join(Settings.model_fields)}"
            )


def _refuse_secrets(values: dict[str, Any], file: Path) -> None:
    for section, key in _FROM_ENVIRONMENT_ONLY:
        if isinstance(values.get(section), dict) and key in values[section]:
            variable = f"PERMALAKE_{section}__{key}".upper()
            raise ConfigError(f"{section}.{key}: a secret does not belong in {file.name}; set {variable}")


def _anchor_paths(values: dict[str, Any], folder: Path) -> None:
    def anchor(section: Any, key: str) -> None:
        if isinstance(section, dict) and isinstance(section.get(key), str) and "://" not in section[key]:
            section[key] = str((folder / Path(section[key]).expanduser()).resolve())

    anchor(values.get("lake"), "warehouse")
    anchor(values.get("wormhole"), "path")
    anchor(values.get("wormhole"), "reference")
    anchor(values.get("wormhole"), "observations")
    anchor(values.get("wormhole"), "operations")
    prices = values.get("prices")
    anchor(prices, "path")
    fallback = prices.get("fallback") if isinstance(prices, dict) else None
    for source in fallback if isinstance(fallback, list) else ():
        anchor(source, "path")
    for key in ("ssl_ca_file", "ssl_cert_file", "ssl_key_file"):
        anchor(values.get("cassandra"), key)
    networks = values.get("networks")
    for section in (*(networks.values() if isinstance(networks, dict) else ()), values.get("wormhole")):
        _anchor_exports(section, folder)
    for network in networks.values() if isinstance(networks, dict) else ():
        anchor(network, "path")
        anchor(network.get("ledger") if isinstance(network, dict) else None, "path")


def _anchor_exports(section: Any, folder: Path) -> None:
    """Let the folders of exports start at the file's folder."""
    if not isinstance(section, dict) or section.get("source") != "permalake":
        return

    def anchored(url: Any) -> Any:
        is_path = isinstance(url, str) and "://" not in url
        return str((folder / Path(url).expanduser()).resolve()) if is_path else url

    section["url"] = anchored(section.get("url"))
    if isinstance(section.get("fallback"), list):
        section["fallback"] = [anchored(url) for url in section["fallback"]]


def _not_json(error: SettingsError) -> str:
    """Name the variable that holds a list or a section and is not written as JSON."""
    prefix = str(Settings.model_config["env_prefix"])
    text = getattr(error.__cause__, "doc", None)
    ours = (name for name, value in os.environ.items() if name.upper().startswith(prefix) and value == text)
    variable = next(ours, f"a variable {prefix}…")
    return f'{variable}: not JSON; write a list as ["a", "b"], a section as {{"key": "value"}}'


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(str(part) for part in fault["loc"] if part != "[key]")
    if fault["type"] == "extra_forbidden":
        return f"{key}: unknown key; remove it or correct its spelling"
    message = fault["msg"].removeprefix("Value error, ")
    return f"{key}: {message}" if key else message
