"""The check that swaps the served state after a publication."""

from __future__ import annotations

import logging
import threading

from permalake.lake.serving import LakeReader
from permalake.stores.readers import StoreReaders

INTERVAL = 2.0
"""Seconds between two looks at the catalog."""
_LOG = logging.getLogger(__name__)


def keep_fresh(reader: LakeReader, stores: StoreReaders, ended: threading.Event) -> None:
    """Look for publications until ``ended`` is set; a catalog that is away leaves the state as it is."""
    while not ended.wait(INTERVAL):
        try:
            if reader.refresh():
                _LOG.info("publication %s is served", reader.snapshot().publication)
            stores.refresh()
        except Exception as error:  # noqa: BLE001
            _LOG.warning("the published state cannot be read: %s: %s", type(error).__name__, error)
