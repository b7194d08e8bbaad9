"""Settings that stay as they were when a network's first rows were published: rows of two values would mix.

The catalog records each value when rows that depend on it are first published, or first written into a store.
From then on every command compares it with the configuration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, and_, delete, insert, select

from permalake.config import Settings
from permalake.errors import ConfigError
from permalake.lake.state import fixed_settings, now

FixedValue = str | int | None
"""A value of such a setting."""


@dataclass(frozen=True, slots=True)
class FixedSetting:
    """A setting, and what its value decides.

    ``store``: it decides where rows lie in that store; None: what rows of the lake mean. ``may_be_added``: a
    network that was built without a value may get one, for the days from then on.
    """

    key: str
    decides: str
    store: str | None = None
    may_be_added: bool = False

    def name(self, network: str) -> str:
        """Return the setting's full name for a network."""
        return f"{self.store}.{self.key}" if self.store else f"networks.{network}.{self.key}"

    def value(self, settings: Settings, network: str) -> FixedValue:
        """Return its value as configured."""
        section = getattr(settings, self.store) if self.store else settings.network(network)
        value: FixedValue = getattr(section, self.key)
        return value


FIXED_SETTINGS = (
    FixedSetting("protocol", "how bytes are decoded and proven, and which tables have rows"),
    FixedSetting("bech32_hrp", "how addresses are written, by which sums are kept"),
    FixedSetting("chunk_size", "the number of milestones in an ms_range_id"),
    FixedSetting("v_byte_cost", "the storage deposit, which is summed over days", may_be_added=True),
    FixedSetting("partition_size", "the rows in a partition of Chrysalis look-ups", store="cassandra"),
)


def check_fixed_settings(connection: Connection, settings: Settings) -> None:
    """Compare the configuration with what the networks of this lake were built with.

    Raises:
        ConfigError: if a value differs; it names the setting and both values.
    """
    built = {(row.network, row.name): row.value for row in connection.execute(select(fixed_settings))}
    for network in settings.networks:
        for setting in FIXED_SETTINGS:
            value = setting.value(settings, network)
            text = built.get((network, setting.key), json.dumps(value))
            if text != json.dumps(value) and not (setting.may_be_added and text == "null"):
                raise ConfigError(
                    f"{setting.name(network)}: the lake's days of {network} were built with "
                    f"{json.loads(text)}, the setting is {value}; set it back, or build into another "
                    "lake.warehouse"
                )


def fix_settings(connection: Connection, settings: Settings, network: str, store: str | None = None) -> None:
    """Record what is not recorded yet; with ``store``, what decides where rows lie in it.

    Raises:
        ConfigError: as :func:`check_fixed_settings`: somebody has published with other values meanwhile.
    """
    if network not in settings.networks:
        return
    check_fixed_settings(connection, settings)
    of_network = {
        setting.key: setting.value(settings, network) for setting in FIXED_SETTINGS if setting.store == store
    }
    put_fixed_settings(connection, network, of_network)


def fixed_settings_of(connection: Connection, network: str) -> dict[str, FixedValue]:
    """Return what is recorded of a network: key -> value."""
    rows = connection.execute(select(fixed_settings).where(fixed_settings.c.network == network))
    return {row.name: json.loads(row.value) for row in rows}


def put_fixed_settings(connection: Connection, network: str, values: Mapping[str, FixedValue]) -> None:
    """Record values of a network."""
    present = fixed_settings_of(connection, network)
    for key, value in values.items():
        if key in present and present[key] == value:
            continue
        here = and_(fixed_settings.c.network == network, fixed_settings.c.name == key)
        connection.execute(delete(fixed_settings).where(here))
        connection.execute(
            insert(fixed_settings).values(
                network=network, name=key, value=json.dumps(value), recorded_at=now()
            )
        )
