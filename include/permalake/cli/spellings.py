"""Words of a statement that the lake writes otherwise: why a query may have found nothing."""

from __future__ import annotations

import re
from functools import lru_cache

from permalake.cli.tables import ALL_TABLES, ALL_VIEWS
from permalake.wormhole.contracts.analyst_views import CHAIN_NAMES

_TEXTS = re.compile(r"'([^']{1,60})'")


def spelled_otherwise(sql: str) -> list[str]:
    """Return a line for each text of a statement that differs from a value of the lake in its case alone.

    Known are values that contracts list, and names of chains; not those that anybody may write, such as tags.
    """
    values = _known_values()
    texts = dict.fromkeys(_TEXTS.findall(sql))
    pairs = ((text, values.get(text.casefold())) for text in texts)
    return [
        f"no rows: the lake writes '{value}', not '{text}'"
        for text, value in pairs
        if value not in {None, text}
    ]


@lru_cache(maxsize=1)
def _known_values() -> dict[str, str]:
    tables = (
        *(table.columns for table in ALL_TABLES.values()),
        *(view.columns for view in ALL_VIEWS.values()),
    )
    columns = (column for listed in tables for column in listed)
    listed = {value for column in columns for value in column.values or () if isinstance(value, str)}
    return {value.casefold(): value for value in (*listed, *CHAIN_NAMES)}
