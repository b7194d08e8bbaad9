"""The check that swaps the served state after a publication."""

from __future__ import annotations

import logging
import threading
import time
from functools import partial

from permalake.lake.serving import LakeReader
from permalake.stores.readers import StoreReaders

INTERVAL = 2.0
"""Seconds between two looks at the catalog."""
_LOG = logging.getLogger(__name__)


def keep_fresh(reader: LakeReader, stores: StoreReaders, ended: threading.Event) -> None:
    """Look for publications until ``ended`` is set; a catalog that is away leaves the state as it is.

    A new state is served once the stores are known as of it, or later: of a day that was published again they
    still have the earlier rows. To read a state may take minutes, so they are asked before it, too.

    Between two looks, single rows of what is served are copied; see :meth:`LakeReader.copy_rows`.
    """
    while True:
        until = time.monotonic() + INTERVAL
        try:
            reader.copy_rows(partial(_goes_on, until, ended))
        except Exception as error:  # noqa: BLE001
            _LOG.warning("single rows cannot be copied: %s: %s", type(error).__name__, error)
        if ended.wait(max(until - time.monotonic(), 0)):
            return
        try:
            stores.refresh()
            if reader.refresh(before=stores.refresh):
                _LOG.info("publication %s is served", reader.snapshot().publication)
        except Exception as error:  # noqa: BLE001
            _LOG.warning("the published state cannot be read: %s: %s", type(error).__name__, error)


def _goes_on(until: float, ended: threading.Event) -> bool:
    return time.monotonic() < until and not ended.is_set()
