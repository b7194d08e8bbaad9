"""Rows out of Bigtable for a server: whole rows by key, the newest version of each cell."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from permalake.config.stores import BigtableSettings
from permalake.errors import StoreUnavailableError
from permalake.stores.bigtable_client import credentials

Cells = dict[str, bytes]
"""Cells of a row, by ``FAMILY:QUALIFIER``."""

SECONDS = 5.0
"""Longest wait for an answer; a server that takes longer counts as away."""
_NO_ROW = "ping"
_LOG = logging.getLogger(__name__)


class BigtableReader:
    """Reads rows of the event table, version 2.

    ``observe`` is called after each query: with its table, its seconds, and the name of its error.
    """

    def __init__(self, settings: BigtableSettings) -> None:
        self._settings = settings
        self._client: Any = None
        self._table: Any = None
        self._opening = threading.Lock()
        self.observe: Callable[[str, float, str | None], None] = lambda *_: None

    def rows(self, keys: Sequence[str], deadline: float) -> dict[str, Cells]:
        """Return the rows that exist, by key; an empty list of keys asks for nothing.

        Args:
            keys: Row keys.
            deadline: As of :func:`time.monotonic`.

        Raises:
            StoreUnavailableError: if Bigtable does not answer in time.
        """
        from google.api_core.exceptions import GoogleAPIError
        from google.cloud.bigtable.data import ReadRowsQuery
        from google.cloud.bigtable.data.row_filters import CellsColumnLimitFilter

        if not keys:
            return {}
        began, failure = time.monotonic(), None
        seconds = max(min(SECONDS, deadline - began), 0.001)
        try:
            query = ReadRowsQuery(
                row_keys=[key.encode() for key in keys], row_filter=CellsColumnLimitFilter(1)
            )
            rows = self._opened().read_rows(query, operation_timeout=seconds, attempt_timeout=seconds)
        except GoogleAPIError as error:
            failure = type(error).__name__
            _LOG.warning("Bigtable: %s", " ".join(str(error).split()))
            raise StoreUnavailableError("Bigtable does not answer; try again") from error
        finally:
            self.observe(str(self._settings.table), time.monotonic() - began, failure)
        return {row.row_key.decode(): _cells(row) for row in rows}

    def ping(self, deadline: float) -> None:
        """Raise :class:`StoreUnavailableError` unless Bigtable answers."""
        self.rows([_NO_ROW], deadline)

    def close(self) -> None:
        """Close the connection."""
        with self._opening:
            if self._client is not None:
                self._client.close()
            self._client = self._table = None

    def _opened(self) -> Any:
        with self._opening:
            if self._table is None:
                self._client = _client(self._settings)
                self._table = self._client.get_table(self._settings.instance, self._settings.table)
            return self._table


def _client(settings: BigtableSettings) -> Any:
    from google.cloud.bigtable.data import BigtableDataClient

    with warnings.catch_warnings():
        # It warns of every emulator.
        warnings.simplefilter("ignore", RuntimeWarning)
        return BigtableDataClient(project=settings.project, credentials=credentials(settings))


def _cells(row: Any) -> Cells:
    return {f"{cell.family}:{cell.qualifier.decode()}": bytes(cell.value) for cell in row}
