"""A live head that holds what a day of a synthetic lake will publish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import pyarrow as pa

from permalake.config import Settings
from permalake.domains import domain_of
from permalake.lake.head import Head
from permalake.lake.head_position import Reached
from support import lakes


def follow_day(
    settings: Settings,
    network: str,
    rows: Mapping[str, Sequence[Mapping]],
    tables: Sequence[str],
    day: date,
    reached: Reached,
) -> None:
    """Write the rows of one day into the network's head, in the tables that a head has."""
    names = [name for name in tables if name in rows and name != "quarantine"]
    contracts = {name: domain_of(network).tables[name] for name in names}
    head = Head(settings, lakes.OpenLake(settings).database, network, contracts)
    head.ensure()
    written = []
    for name, contract in contracts.items():
        of_day = [row for row in rows[name] if row["date"] == day]
        written += head.write(name, pa.Table.from_pylist(of_day, contract.arrow))
    head.commit(written, reached=reached)
