"""MutateRows requests to Bigtable: several under way, each repeated until every entry is taken."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from permalake.config.stores import BigtableSettings
from permalake.errors import PermalakeError
from permalake.stores.bigtable_client import client
from permalake.stores.bigtable_wire import requests

_METHOD = "/google.bigtable.v2.Bigtable/MutateRows"
_UNDER_WAY = 4
# Codes of google.rpc that say "again": DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED, INTERNAL, UNAVAILABLE.
_AGAIN = frozenset((4, 8, 10, 13, 14))


@dataclass(frozen=True, slots=True)
class SendLimits:
    """The time that an answer may take (seconds), and the number of times a request is sent."""

    seconds: float
    tries: int


SEND_LIMITS = SendLimits(60, 6)


class Sender:
    """Sends entries of one table; what fails for good fails the write, at the latest in :meth:`finish`."""

    def __init__(self, settings: BigtableSettings, table: str, name: str, limits: SendLimits) -> None:
        from google.cloud.bigtable_v2.types import MutateRowsResponse

        self._call = client(settings).table_data_client.transport.grpc_channel.unary_stream(
            _METHOD, request_serializer=None, response_deserializer=MutateRowsResponse.pb().FromString
        )
        # What routes a request to the servers of its table.
        self._routed = [("x-goog-request-params", f"table_name={name}")]
        self._limits = limits
        self._table = table
        self._name = name
        self._under_way: deque[tuple[pa.Array, Any]] = deque()

    def send(self, written: pa.Array, request: bytes) -> None:
        """Send a request with these entries; waits while enough are under way."""
        if len(self._under_way) >= _UNDER_WAY:
            self._settle(*self._under_way.popleft())
        self._under_way.append((written, self._start(request)))

    def finish(self) -> None:
        """Until all is taken."""
        while self._under_way:
            self._settle(*self._under_way.popleft())

    def _start(self, request: bytes) -> Any:
        return self._call(request, timeout=self._limits.seconds, metadata=self._routed)

    def _settle(self, written: pa.Array, answers: Any) -> None:
        for number in range(self._limits.tries):
            failed, reason = self._failed(len(written), answers)
            if not failed:
                return
            time.sleep(min(0.2 * 2**number, 5))
            written = written.take(pa.array(failed))
            ((_, _, request),) = requests(self._name, written, len(written), 1 << 40)
            answers = self._start(request)
        raise unreachable(self._table, reason)

    def _failed(self, count: int, answers: Any) -> tuple[list[int], str]:
        """Places of the entries that were not taken, and why; an error that will not pass is raised."""
        import grpc

        taken = [False] * count
        reason = "no answer for some entries"
        try:
            for answer in answers:
                for entry in answer.entries:
                    taken[entry.index] = not entry.status.code
                    if entry.status.code:
                        reason = entry.status.message
                        if entry.status.code not in _AGAIN:
                            raise unreachable(self._table, reason)
        except grpc.RpcError as error:
            reason = str(error.details())
            if error.code().value[0] not in _AGAIN:
                raise unreachable(self._table, reason) from None
        return [place for place, well in enumerate(taken) if not well], reason


def unreachable(table: str, reason: str) -> PermalakeError:
    """Return the error that says which table took not all, why, and what to look at."""
    line = " ".join(reason.split())
    return PermalakeError(
        f"Bigtable table {table}: {line}; check bigtable.* and that the server answers "
        "(`permalake services status`)"
    )
