"""The synthetic world of VAAs (data/synthetic/wormhole), made by other code than this project's."""

from __future__ import annotations

import datetime as dt
import hashlib

from support import places

WORLD = places.DATA / "synthetic" / "wormhole"
PRICES = f'[prices]\npath = "{WORLD}/price_history.csv.gz"'
BEGIN, END = dt.date(1970, 1, 1), dt.date(2024, 3, 12)


def configuration(folder, *sections):
    """The text of a configuration with a lake in ``folder``, this world's input and further sections."""
    lake = f'[lake]\nwarehouse = "{folder}/warehouse"'
    world = f'[wormhole]\npath = "{WORLD}/input"\nreference = "{WORLD}/reference"'
    return "\n".join((lake, world, *sections))


def digested(row):
    return {
        f"{name}_sha256" if name in {"raw", "signed_vaa"} else name: (
            hashlib.sha256(value).hexdigest() if name in {"raw", "signed_vaa"} else value
        )
        for name, value in row.items()
    }
