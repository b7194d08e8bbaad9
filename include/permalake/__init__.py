"""Permalake: a permanode for the IOTA Tangle and an event store for Wormhole, as a lakehouse.

From Python, :func:`open` reads what is published, as Arrow, pandas, Polars or DuckDB::

    lake = permalake.open()
    lake.table("shimmer.ms_analytics", start="2022-09-28").pandas()
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from permalake.version import VERSION

if TYPE_CHECKING:
    from permalake.python_api import Lake, Moment

__version__ = VERSION
__all__ = ["__version__", "open"]


def open(config: str | Path | None = None, *, as_of: Moment | None = None) -> Lake:
    """Open the published lake for reading. Nothing is locked, and no server is needed.

    Args:
        config: The configuration file; without it, ``PERMALAKE_CONFIG``, else ``permalake.toml`` of the
            working directory, as on the command line.
        as_of: Read everything as it was published at that time, or by the publication of that number;
            ``"latest"``: of the one that is the last now, whatever is published later.

    Returns:
        The lake, whose tables are read when they are asked for.

    Raises:
        PermalakeError: if the configuration is wrong, or catalog and warehouse are not of one lake.
    """
    # Imported here: `import permalake` loads nothing heavy.
    from permalake.config import load_settings
    from permalake.python_api import Lake

    return Lake(load_settings(config), as_of)
