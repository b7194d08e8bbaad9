"""Settings: ``permalake.toml`` with environment overrides (``PERMALAKE_LAKE__WAREHOUSE=…``).

Unknown keys and wrong types are errors that name the key. Secrets come from the environment only.
"""

from __future__ import annotations

import hashlib
import math
import os
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from permalake.errors import ConfigError
from permalake.paths import HOME

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

PRICE_WINDOW_HOURS = 12.0
"""Default of ``prices.window_hours``."""
_SHORTEST_WINDOW = 1 / 60
"""A minute: services are asked by the minute."""
_LONGEST_WINDOW = 24.0 * 31
"""A month: a quote further away is no price of that time, and the audit reads all quotes as far as this."""
_PROVIDERS = Path(__file__).parent / "wormhole" / "enrich" / "providers"


def window_days(window_hours: float) -> int:
    """Return how many days a quote may lie before or after the day of what it prices."""
    return math.ceil(window_hours / 24)


Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
NetworkName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,47}$")]


def _digest(value: SecretStr) -> str:
    return hashlib.blake2b(value.get_secret_value().encode(), digest_size=16).hexdigest()


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


@cache
def price_providers() -> tuple[str, ...]:
    """Return the names that ``prices.provider`` may have: one module each, which is not imported for it."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules([str(_PROVIDERS)])))


class LakeSettings(_Section):
    """``[lake]``: the warehouse, the catalog database, and what maintenance keeps."""

    warehouse: str = str(HOME / "warehouse")
    """Folder or bucket of the tables; without it, ``PERMALAKE_HOME/warehouse``."""
    catalog: SecretStr | None = None
    retention_days: int = Field(default=30, ge=1)
    """Days of history that ``--as-of`` can always read."""
    abandoned_days: int = Field(default=7, ge=1)
    """Days after which a staging that nobody published or continued is removed."""
    orphan_hours: int = Field(default=24, ge=1)
    """Age below which a file is never removed as an orphan."""
    target_file_mib: int = Field(default=128, ge=1)
    """Target size of compacted files, in MiB."""

    @property
    def target_bytes(self) -> int:
        """``target_file_mib`` in bytes."""
        return self.target_file_mib << 20

    @field_validator("warehouse")
    @classmethod
    def _absolute(cls, value: str) -> str:
        return value.rstrip("/") if "://" in value else str(Path(value).expanduser().resolve())

    @property
    def catalog_uri(self) -> str:
        """SQLAlchemy URI of the catalog; SQLite in the warehouse unless configured."""
        if self.catalog:
            return self.catalog.get_secret_value()
        if "://" in self.warehouse:
            raise ConfigError("lake.catalog: a warehouse on object storage needs a catalog database URI")
        return f"sqlite:///{self.warehouse}/catalog.db"


class CoordinatorKey(_Section):
    """A coordinator key and the milestones (inclusive) for which it signs."""

    key: Hex32
    start: int = Field(default=0, ge=0)
    end: int = Field(default=2**32 - 1, ge=0)
    threshold: int | None = Field(default=None, ge=1)
    """How many signatures a milestone of this range needs; without it, ``coordinator_threshold``."""


class KnownLedger(_Section):
    """``[networks.NAME.ledger]``: the known ledger state from which running figures start.

    ``path`` holds the unspent outputs after ``milestone``, the last one before the network's first day, as
    JSON Lines with ``rawOutput``. With it, running figures are absolute.
    """

    path: Path
    milestone: int = Field(ge=0)


class BaseToken(_Section):
    """``[networks.NAME.base_token]``: the base token as a node's ``info`` describes it (TIP-25)."""

    name: str
    ticker_symbol: str
    unit: str
    subunit: str | None = None
    decimals: int = Field(ge=0, le=38)
    use_metric_prefix: bool = False


class NodeParameters(_Section):
    """Keys of ``[networks.NAME]`` that only the REST API uses: what a node's ``info`` says of its network.

    Left out, a known network's values count, by its name; see ``permalake.iota.rest.known_networks``.
    """

    network_name: str | None = Field(default=None, min_length=1)
    """Name that the network id is the hash of."""
    token_supply: int | None = Field(default=None, ge=0, le=2**64 - 1)
    protocol_version: int | None = Field(default=None, ge=1, le=255)
    min_pow_score: int | None = Field(default=None, ge=0)
    v_byte_factor_data: int | None = Field(default=None, ge=0, le=255)
    v_byte_factor_key: int | None = Field(default=None, ge=0, le=255)
    base_token: BaseToken | None = None


class MirrorSettings(_Section):
    """Keys of ``[networks.NAME]`` and ``[wormhole]`` with source ``permalake``: whose days are copied.

    ``url`` is the address of an export, ``fallback`` lists those that are asked in order when it lies or
    lags, and ``publisher_keys`` holds the lines of the public keys of which one must have signed.
    """

    url: str | None = Field(default=None, repr=False)
    fallback: tuple[str, ...] = ()
    publisher_keys: tuple[str, ...] = ()

    def check_publishers(self) -> None:
        """Check that it is said whose days are copied."""
        if not self.url or not self.publisher_keys:
            raise ValueError("source 'permalake' needs url and publisher_keys")


OF_MIRRORS = frozenset({"fallback", "publisher_keys"})
"""Keys that nothing but a mirror reads."""


class NetworkSettings(NodeParameters, MirrorSettings):
    """``[networks.NAME]``: an IOTA network and the source of its milestones."""

    protocol: Literal["chrysalis", "stardust"]
    bech32_hrp: str = Field(pattern=r"^[a-z]{1,16}$")
    chunk_size: int = Field(default=250_000, gt=0)
    below_max_depth: int = Field(default=15, ge=1)
    """Protocol parameter: how many milestones old a parent's cone root may be when a block is attached."""
    look_back: int = Field(default=40, ge=1, le=4_096)
    """How many milestones back a cone may reach, and how far from a source's first milestone an absent parent
    counts as a solid entry point. More than ``below_max_depth``: a block may be referenced some milestones
    after it was attached."""
    source: Literal["archive_rest", "chronicle", "node", "permalake"] = "archive_rest"
    path: Path | None = None
    rate_per_second: float = Field(default=200.0, gt=0)
    concurrency: int = Field(default=16, ge=1, le=256)
    timeout: float = Field(default=30.0, gt=0)
    coordinator_public_keys: tuple[CoordinatorKey, ...] = ()
    coordinator_threshold: int | None = Field(default=None, ge=1)
    transaction_signatures: bool = True
    """Whether transaction signatures are verified; milestone signatures always are."""
    richest_addresses: int = Field(default=100, ge=1, le=10_000)
    """Number of addresses per day in the table ``richest_addresses``."""
    v_byte_cost: int | None = Field(default=None, ge=0)
    """Base tokens of storage deposit per virtual byte (TIP-19); without it the ledger's deposit is null."""
    ledger: KnownLedger | None = None

    @model_validator(mode="after")
    def _has_place(self) -> NetworkSettings:
        if self.source == "node" and not self.url:
            raise ValueError("source 'node' needs url")
        if self.look_back < self.below_max_depth:
            raise ValueError("look_back must not be below below_max_depth")
        if self.source == "permalake":
            self.check_publishers()
        elif self.source != "node" and not self.path:
            raise ValueError(f"source '{self.source}' needs path")
        return self


class WormholeSettings(MirrorSettings):
    """``[wormhole]``: the source of VAAs and additional reference data."""

    source: Literal["files", "wormholescan", "permalake"] = "files"
    path: Path | None = None
    guardian_url: str | None = Field(default=None, repr=False)
    reference: Path | None = None
    observations: Path | None = None
    observation_requests: int = Field(default=1_000, ge=0)
    """Requests for observations that a run may send to Wormholescan; 0 asks for none."""
    operations: Path | None = None
    rate_per_second: float = Field(default=5.0, gt=0)

    @model_validator(mode="after")
    def _is_whole(self) -> WormholeSettings:
        if self.source == "permalake":
            self.check_publishers()
        return self


class PriceSource(_Section):
    """A provider of prices: its place and its rate limit."""

    provider: str = "file"
    url: str | None = Field(default=None, repr=False)
    path: Path | None = None
    rate_per_second: float = Field(default=1.0, gt=0)

    @field_validator("provider")
    @classmethod
    def _exists(cls, value: str) -> str:
        if value not in price_providers():
            raise ValueError(f"{value} is no price provider; choose {', '.join(price_providers())}")
        return value


class PricesSettings(PriceSource):
    """``[prices]``: the providers of token prices.

    ``fallback`` lists further providers, asked in order for quotes that the first does not have; ``api_key``
    belongs to the first. ``cross_check`` is one more, whose quotes are stored beside those in use and
    compared with them by the audit. A quote counts within ``window_hours`` of the transfer. ``max_missing``
    is the share of a day's transfers of listed tokens that may lack a price; a day with more fails its audit.
    The default passes every day with a warning, so that a provider outage blocks nothing.

    A quote in which its provider has less confidence than ``min_confidence`` gives no value. One that differs
    by more than ``max_factor`` from the token's quotes before and after it, or from the cross-check, is an
    outlier: the audit warns of it, and with ``exclude_outliers`` it gives no value either.
    """

    api_key: SecretStr | None = None
    window_hours: float = Field(default=PRICE_WINDOW_HOURS, ge=_SHORTEST_WINDOW, le=_LONGEST_WINDOW)
    """Hours that a quote may lie before or after a transfer."""
    min_confidence: float = Field(default=0.5, ge=0, le=1)
    max_factor: float = Field(default=10.0, gt=1, allow_inf_nan=False)
    exclude_outliers: bool = False
    max_missing: float = Field(default=1.0, ge=0, le=1)
    fallback: tuple[PriceSource, ...] = ()
    cross_check: PriceSource | None = None

    @model_validator(mode="after")
    def _checks_another(self) -> PricesSettings:
        used = {self.provider, *(source.provider for source in self.fallback)}
        if self.cross_check and self.cross_check.provider in used:
            raise ValueError(
                f"cross_check: {self.cross_check.provider} is already asked for prices; name another provider"
            )
        return self


class ChainSettings(_Section):
    """``[chains.ID]``: RPC of a chain, by Wormhole chain id."""

    rpc_url: Annotated[SecretStr, PlainSerializer(_digest)]
    """Often holds an API key; a dump has its digest, so that fingerprints follow a change."""
    rate_per_second: float = Field(default=5.0, gt=0)
    concurrency: int = Field(default=4, ge=1, le=64)

    @field_validator("rpc_url")
    @classmethod
    def _is_http(cls, value: SecretStr) -> SecretStr:
        if not value.get_secret_value().startswith(("http://", "https://")):
            raise ValueError("give an http:// or https:// address")
        return value


class CassandraSettings(_Section):
    """``[cassandra]``: empty means that nothing is published there.

    ``connection`` names an Airflow connection that gives the DAGs what the section leaves out.
    ``ssl_ca_file`` switches TLS on: PEM certificates that sign the servers'. ``ssl_cert_file`` and
    ``ssl_key_file`` are for servers that ask for a client's certificate. All three must be at the same path
    on every node.
    """

    connection: str | None = Field(default=None, min_length=1)
    contact_points: tuple[str, ...] = ()
    port: int = Field(default=9042, ge=1, le=65535)
    local_dc: str = "datacenter1"
    replication: int = Field(default=1, ge=1)
    partition_size: int = Field(default=100_000, ge=1)
    username: str | None = Field(default=None, min_length=1)
    password: SecretStr | None = None
    """From the environment only."""
    ssl_ca_file: Path | None = None
    ssl_cert_file: Path | None = None
    ssl_key_file: Path | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> CassandraSettings:
        if (self.username is None) != (self.password is None):
            raise ValueError("give username and password (PERMALAKE_CASSANDRA__PASSWORD), or neither")
        if (self.ssl_cert_file is None) != (self.ssl_key_file is None):
            raise ValueError("give ssl_cert_file and ssl_key_file, or neither")
        if self.ssl_cert_file and not self.ssl_ca_file:
            raise ValueError("ssl_cert_file needs ssl_ca_file, which switches TLS on")
        return self

    @property
    def configured(self) -> bool:
        """Whether days are published into Cassandra."""
        return bool(self.contact_points or self.connection)


class BigtableSettings(_Section):
    """``[bigtable]``: without a table nothing is published there.

    ``connection`` names an Airflow connection that gives the DAGs what the section leaves out.
    """

    connection: str = Field(default="google_cloud_default", min_length=1)
    project: str | None = None
    instance: str | None = None
    table: str | None = None
    table_v1: str | None = None
    credentials: SecretStr | None = None
    """Google's credentials as JSON, from the environment only: a service account's key, or a federation's
    configuration. Without it, Google's client looks for credentials itself
    (``GOOGLE_APPLICATION_CREDENTIALS``, the machine's account)."""
    impersonation_chain: tuple[str, ...] = ()
    """Service accounts to impersonate, each by the one before it; the last one is used."""


class AlertsSettings(_Section):
    """``[alerts]``: the receivers of failures, missed deadlines and publications."""

    webhook: SecretStr | None = None
    publications: bool = True
    """Whether the webhook is also told what was published."""
    smtp_host: str | None = None
    smtp_port: int = Field(default=25, ge=1, le=65535)
    smtp_user: str | None = None
    smtp_password: SecretStr | None = None
    mail_from: str | None = None
    mail_to: tuple[str, ...] = ()
    deadline: str = Field(default="06:00", pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")


class ServeSettings(_Section):
    """``[serve]``: the REST API's address and its limits."""

    host: str = "127.0.0.1"
    port: int = Field(default=8042, ge=1, le=65535)
    default_network: str | None = None
    """Network whose node routes stand at the root too."""
    root_path: str = Field(default="", pattern=r"^(/[A-Za-z0-9._~-]+)*$")
    """Prefix under which a proxy publishes the API."""
    backend: Literal["lake", "stores"] = "lake"
    """Where single messages and events are read: from the lake alone, or from the configured stores as far as
    they hold them."""
    lake_pool: int = Field(default=4, ge=1, le=64)
    """Queries that run at once."""
    concurrency: int = Field(default=64, ge=1)
    """Requests that are answered at once."""
    queue: int = Field(default=256, ge=0)
    """Requests that wait for their turn; one more gets 503."""
    queue_seconds: float = Field(default=1.0, gt=0, le=3600)
    """Seconds that a request waits for its turn, and its queries for theirs; then it gets 503."""
    client_concurrency: int = Field(default=16, ge=0)
    """Requests of one client address that are answered at once; 0: no limit. Off on the loopback."""
    timeout: float = Field(default=15.0, gt=0, le=3600)
    """Seconds that a request may take; a query is cancelled then."""
    page_size: int = Field(default=100, ge=1)
    max_page_size: int = Field(default=1000, ge=1)
    body_bytes: int = Field(default=1 << 20, ge=1)
    connections: int = Field(default=1024, ge=16)
    """Open connections; one more ends the one that has kept the server waiting longest."""
    header_bytes: int = Field(default=32_768, ge=16_384)
    """Size of a request's address and headers."""
    header_timeout: float = Field(default=10.0, gt=0, le=3600)
    """Seconds until a request's headers are there."""
    body_timeout: float = Field(default=10.0, gt=0, le=3600)
    """Seconds from there until its body is there."""
    write_timeout: float = Field(default=10.0, gt=0, le=3600)
    """Seconds in which a client has to take 4 KiB per second of its answer, or all of it."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies whose X-Forwarded-For names the client; of others it is ignored."""
    rate_per_minute: int = Field(default=0, ge=0)
    """Requests per client address and minute; 0: no limit."""
    cors_origins: tuple[str, ...] = ("*",)
    tokens: tuple[SecretStr, ...] = ()
    """Bearer tokens; with any, every route but health needs one. From the environment only."""
    sql: bool | None = None
    """Whether the server takes SQL; unset: where it listens on the loopback and no proxy is configured."""
    sql_seconds: float = Field(default=10.0, gt=0, le=3600)
    """Seconds that a statement may take; it never takes longer than ``timeout``."""
    sql_memory: str = Field(default="512MiB", pattern=r"^[0-9]+(\.[0-9]+)?[KMGT]i?B$")
    """Memory of a statement; beyond it, temporary files."""
    sql_rows: int = Field(default=10_000, ge=1, le=1_000_000)
    """Rows that a statement may give; the others are left out."""

    @property
    def catalog_wait(self) -> float:
        """Seconds to wait for a locked catalog: well below :attr:`timeout`."""
        return self.timeout / 3

    @field_validator("trusted_proxies")
    @classmethod
    def _addresses(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for proxy in proxies:
            ip_network(proxy)
        return proxies


class LiveSettings(_Section):
    """``[live]``: how a network is followed between the days that are built."""

    poll_seconds: float = Field(default=2.0, gt=0, le=3600)
    """Seconds until a source that has nothing new is asked again."""
    batch_milestones: int = Field(default=64, ge=1, le=10_000)
    """How many milestones are read, proven and added at once."""
    days: int = Field(default=2, ge=1, le=31)
    """Days, the newest included, that a head may hold; what is older and unpublished leaves it."""
    attempts: int = Field(default=20, ge=1)
    """Batches that may fail one after the other until the run ends with the last reason."""
    max_lag_seconds: float = Field(default=600.0, gt=0)
    """A head whose last milestone or VAA is older than that for as long again is told to alerts' targets."""
    walk_seconds: float = Field(default=5.0, ge=0, le=60)
    """How long a walk over what no milestone references yet may take, from an IOTA node's tips; 0: none."""
    provisional_seconds: int = Field(default=86_400, ge=2, le=31_536_000)
    """How long rows of an IOTA head stay in Cassandra where no published day takes their place."""
    spy: str | None = None
    """A guardian's spy as HOST:PORT, or https://HOST:PORT, that tells VAAs instead of Wormhole's source."""

    @field_validator("spy")
    @classmethod
    def _names_a_port(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"(https://)?[^/\s]+:[0-9]{1,5}", value):
            raise ValueError("not HOST:PORT or https://HOST:PORT, such as 127.0.0.1:7073")
        return value


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
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: not valid TOML: {error}") from None
        _refuse_secrets(values, file)
        _anchor_paths(values, file.parent)
    _refuse_unknown_variables()
    try:
        return Settings(**values)
    except ValidationError as error:
        raise ConfigError(_first_fault(error)) from None


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


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(str(part) for part in fault["loc"] if part != "[key]")
    if fault["type"] == "extra_forbidden":
        return f"{key}: unknown key; remove it or correct its spelling"
    message = fault["msg"].removeprefix("Value error, ")
    return f"{key}: {message}" if key else message
