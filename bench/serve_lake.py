"""A lake of made-up days for the benchmark of the REST API, written straight through the lake's catalog.

Building millions of messages by the jobs takes hours and says nothing about reading them. Blocks are valid
(tagged data, random parents and data) and carry their own ids; milestones are valid but for their signatures
and roots; Wormhole's VAAs are random bytes. Only the tables that a message by id needs have rows. Rows lie in
the contracts' order, a file per day, as a build leaves them.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.machine import say
from permalake.config import Settings, load_settings
from permalake.domains import domain_of
from permalake.iota.codec.milestones import milestone_id
from permalake.lake.catalog import open_catalog
from permalake.pipeline.workspace import Workspace

NETWORK, WORMHOLE = "bench", "wormhole"
FIRST = date(2022, 10, 1)
MILESTONES_A_DAY = 1440
CHAIN, EMITTER = 2, "ab" * 32
_DATA, _SIGNED = 220, 1000
_TAG = b"permalake bench"
_DAYS_AT_ONCE = 20
_SEED = 19


def settings_of(folder: Path, **more: str) -> Settings:
    """Settings of a lake in ``folder`` with one Stardust network and Wormhole; ``more``: sections of TOML."""
    sections = {
        "lake": 'warehouse = "warehouse"',
        f"networks.{NETWORK}": 'protocol = "stardust"\nbech32_hrp = "smr"\npath = "."',
        "wormhole": 'path = "."',
        **more,
    }
    file = folder / "permalake.toml"
    file.write_text("".join(f"[{name}]\n{body}\n" for name, body in sections.items()), "utf-8")
    return load_settings(file)


def publish(settings: Settings, network: str, days: int, rows: int, after: int = 0) -> None:
    """Publish ``rows`` messages in ``days`` days, in one publication; ``after``: days before the first."""
    first, last = FIRST + timedelta(after), FIRST + timedelta(after + days - 1)
    builds = Workspace.open(settings, domain_of(network), network).builds
    with builds.begin(network, first, last, f"bench after {after}") as attempt:
        catalog = open_catalog(settings, attempt.id)
        for tables in _portions(network, range(after, after + days), rows // days):
            for name, frame in tables.items():
                with warnings.catch_warnings():
                    # PyIceberg cannot size row groups by bytes; a day's file here is one group either way.
                    warnings.simplefilter("ignore", UserWarning)
                    catalog.load_table((network, name)).append(frame)
        pinned = attempt.pin()
        for day in pinned.days_with_rows():
            pinned.verdict(day, True)
        builds.publish(pinned)
    say(f"{network}: {days} days published")


def _portions(network: str, days: range, rows: int) -> Iterator[dict[str, pa.Table]]:
    """Yield the tables of some days at a time: a commit for each day would take longer than its rows."""
    contracts = domain_of(network).tables
    make = _blocks_of if network == NETWORK else _vaas_of
    rng = np.random.default_rng(_SEED + days.start)
    for at in range(0, len(days), _DAYS_AT_ONCE):
        made = [make(rng, number, rows) for number in days[at : at + _DAYS_AT_ONCE]]
        yield {
            name: pa.concat_tables([_frame(contracts[name].arrow, one[name]) for one in made])
            for name in made[0]
        }


def _frame(schema: pa.Schema, columns: dict[str, object]) -> pa.Table:
    """Return the columns as a table of this schema; a scalar is every row's value, a missing column null."""
    count = max(len(values) for values in columns.values() if isinstance(values, list | np.ndarray))
    arrays = [
        pa.array(values, field.type)
        if isinstance(values := columns.get(field.name), list | np.ndarray)
        else pa.array([values] * count, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _blocks_of(rng: np.random.Generator, number: int, rows: int) -> dict[str, dict[str, object]]:
    day = FIRST + timedelta(number)
    first = 1 + number * MILESTONES_A_DAY
    places = np.arange(rows)
    minutes = places * MILESTONES_A_DAY // rows
    order = places - np.searchsorted(minutes, minutes)
    blocks = _blocks(rng, rows)
    indices = list(range(first, first + MILESTONES_A_DAY))
    payloads = [_milestone(rng, index) for index in indices]
    return {
        "messages": {
            "message_id": [blake2b(block, digest_size=32).hexdigest() for block in blocks],
            "version": 2,
            "message": blocks,
            "milestone_index": first + minutes,
            "white_flag_index": order,
            "inclusion_state": 2,
            "conflict_reason": 0,
            "date": day,
        },
        "milestones": {
            "milestone_index": indices,
            "timestamp": [_time(index) for index in indices],
            "payload": payloads,
            "milestone_id": [milestone_id(one) for one in payloads],
            "date": day,
        },
        "date_cache": {"date": [day], "start_ms": [indices[0]], "end_ms": [indices[-1]]},
    }


def _time(index: int) -> int:
    start = datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC)
    return int(start.timestamp()) + 60 * (index - 1)


def _blocks(rng: np.random.Generator, count: int) -> list[bytes]:
    """Return blocks of four ascending random parents and tagged random data (TIP-23, TIP-24)."""
    payload = struct.pack("<IB", 5, len(_TAG)) + _TAG + struct.pack("<I", _DATA)
    template = b"\x02\x04" + bytes(128) + struct.pack("<I", len(payload) + _DATA) + payload
    raw = rng.integers(0, 256, (count, len(template) + _DATA + 8), np.uint8)
    raw[:, :2] = np.frombuffer(template[:2], np.uint8)
    raw[:, 130 : len(template)] = np.frombuffer(template[130:], np.uint8)
    for parent in range(4):
        raw[:, 2 + 32 * parent] = parent
    width, flat = raw.shape[1], raw.tobytes()
    return [flat[at : at + width] for at in range(0, len(flat), width)]


def _milestone(rng: np.random.Generator, index: int) -> bytes:
    """Return the payload of a milestone with one random signature (TIP-29)."""
    head = struct.pack("<IIIB", 7, index, _time(index), 2) + rng.bytes(32) + b"\x01" + rng.bytes(32)
    return head + rng.bytes(64) + struct.pack("<HBBB", 0, 0, 1, 0) + rng.bytes(96)


def _vaas_of(rng: np.random.Generator, number: int, rows: int) -> dict[str, dict[str, object]]:
    day = FIRST + timedelta(number)
    sequences = range(number * rows, (number + 1) * rows)
    keys = [row_key(sequence) for sequence in sequences]
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return {
        "message_publication": {
            "row_key": keys,
            "version": 1,
            "guardian_set_index": 3,
            "timestamp": [start + timedelta(seconds=at) for at in range(rows)],
            "nonce": 0,
            "sequence": [Decimal(sequence) for sequence in sequences],
            "emitter_chain": CHAIN,
            "emitter_address": EMITTER,
            "initiating_tx_id": [f"0x{rng.bytes(32).hex()}" for _ in keys],
            "payload": [rng.bytes(133) for _ in keys],
            "digest": [rng.bytes(32).hex() for _ in keys],
            "date": day,
        },
        "quorum_state": {
            "row_key": keys,
            "signed_vaa": [rng.bytes(_SIGNED) for _ in keys],
            "date": day,
        },
    }


def row_key(sequence: int) -> str:
    """Return the row key of the made-up emitter's message."""
    return f"{CHAIN}:{EMITTER}:{sequence:016d}"
