"""One address corrected on the first of 1,000 days: what carrying reads and writes again.

``python -m bench.carry_correction [DAYS]``: synthetic days of a ledger with 5,000 addresses, 100 transfers
each, published and carried in an empty lake. Then a transfer of the first day goes to another address; the
day is published anew, and carrying goes on. The peer is to carry the same days from the first one in a lake
that nothing was carried in, which is what a correction cost before days were independent, without what their
builds cost on top. Bytes are those of the carried tables' data files.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path

from bench.machine import say, timed
from permalake.config import CONFIG_VARIABLE, Settings, load_settings
from permalake.lake.catalog import open_table
from permalake.lake.counts import files

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests"))
from support.carried_days import CARRIED, LedgerDay, carry, publish  # noqa: E402
from support.lakes import NETWORK, OpenLake  # noqa: E402

DAYS, ADDRESSES, TRANSFERS = 1_000, 5_000, 100
FIRST = date(2020, 1, 1)
_LETTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def run(days: int = DAYS) -> list[dict]:
    """Seconds and bytes of carrying after the correction, beside carrying all."""
    history = _history(days)
    with tempfile.TemporaryDirectory(prefix="bench-carry-") as folder:
        settings = _settings(Path(folder) / "corrected")
        lake = OpenLake(settings)
        publish(settings, lake, history, "all")
        carry(None, "all")
        before = _placed(lake)
        sender, receiver, amount = history[0].moves[0]
        history[0].moves[0] = (sender, _address(ADDRESSES), amount)
        say(f"{amount} of {sender} go to another address than {receiver}")
        publish(settings, lake, history[:1], "correction")
        seconds = timed(lambda: carry(None, "correction"))
        after = _placed(lake)
        rows = _rows(lake)
        settings = _settings(Path(folder) / "anew")
        lake = OpenLake(settings)
        publish(settings, lake, history, "all")
        anew = timed(lambda: carry(None, "all"))
        if rows != _rows(lake):
            raise SystemExit("the corrected lake has other rows than one carried anew")
    written = {
        name: {one: after[name][one] for one in after[name].keys() - before[name].keys()} for name in after
    }
    whole = sum(sum(placed.values()) for placed in after.values())
    size = sum(sum(placed.values()) for placed in written.values())
    return [
        {
            "name": f"One address corrected on day 1 of {days:,}, carried again",
            "unit": "s",
            "ours": round(seconds, 2),
            "peer": round(anew, 2),
            "peer_name": "all days carried anew",
            "ratio": round(anew / seconds, 2),
            "bytes_written": size,
            "bytes_of_the_carried_tables": whole,
            "files_written": {name: f"{len(written[name])} of {len(after[name])}" for name in after},
        }
    ]


def _settings(folder: Path) -> Settings:
    folder.mkdir()
    config = folder / "permalake.toml"
    config.write_text(
        f'[lake]\nwarehouse = "{folder}/lake"\n[networks.{NETWORK}]\nprotocol = "stardust"\n'
        f'bech32_hrp = "smr"\npath = "{folder}"\nv_byte_cost = 100\n'
    )
    os.environ[CONFIG_VARIABLE] = str(config)
    return load_settings()


def _history(count: int) -> list[LedgerDay]:
    chance = random.Random(7)
    days = []
    for number in range(count):
        one = LedgerDay(FIRST + timedelta(days=number), number + 1)
        one.moves = [
            (
                _address(chance.randrange(ADDRESSES)),
                _address(chance.randrange(ADDRESSES)),
                10 ** chance.randrange(1, 9),
            )
            for _ in range(TRANSFERS)
        ]
        days.append(one)
    return days


def _address(number: int) -> str:
    return "smr1q" + "".join(_LETTERS[number >> shift & 31] for shift in (15, 10, 5, 0)) + "qqqqqq"


def _placed(lake: OpenLake) -> Mapping[str, Mapping[str, int]]:
    """Data files of the carried tables with their bytes."""
    locations = lake.reader.locations(NETWORK)
    return {
        name: {one.file_path: one.file_size_in_bytes for one in files(open_table(locations[name]))}
        for name in CARRIED
    }


def _rows(lake: OpenLake) -> dict[str, list[dict]]:
    return {name: lake.query(f"SELECT * FROM {NETWORK}.{name} ORDER BY ALL").to_pylist() for name in CARRIED}


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]) if len(sys.argv) > 1 else DAYS), indent=1))
