"""A guardian's spy: the signed VAAs of the gossip network as they come, by its stream of gRPC.

The service is ``spy.v1.SpyRPCService`` (wormhole-foundation/wormhole, ``proto/spy/v1/spy.proto``). It sends
what it hears from now on and knows nothing of before; what was signed while nobody listened is a gap.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import grpc

from permalake.errors import PermalakeError, line_of

SUBSCRIBE = "/spy.v1.SpyRPCService/SubscribeSignedVAA"
_EVERYTHING = b""
"""A request without filters."""
_VAA_BYTES = 1
_MOST_WAITING = 20_000
"""VAAs that wait to be taken; the stream stands still while there are more."""
_CONNECT_SECONDS = 10.0
_START_SECONDS = 5.0
"""Time that a busy machine may take to start an attempt and to report its failure."""
_PAUSES = (0.1, 0.5, 2.0, 5.0)
"""Seconds until a lost stream is opened again, longer from one failure to the next."""
_OPTIONS = [
    *(("grpc.keepalive_time_ms", 30_000), ("grpc.keepalive_timeout_ms", 10_000)),
    ("grpc.max_receive_message_length", 4 << 20),
]
_LOG = logging.getLogger(__name__)

Gap = tuple[int, int]
"""A time when nobody listened: first and last second, unix time."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A VAA, and when it came (unix seconds)."""

    raw: bytes
    at: float


class SpyStream:
    """The stream of a spy, followed in a thread of its own until it is closed.

    ``address``: HOST:PORT, or https://HOST:PORT for TLS. ``until``: when somebody listened last, None if
    never.
    """

    def __init__(
        self, address: str, until: float | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.address = address
        self._clock = clock
        self._changed = threading.Condition()
        self._heard: deque[Heard] = deque()
        self._gaps: list[Gap] = []
        self._until = until
        self._fault: str | None = None
        self._is_open = self._is_closed = False
        self._channel: grpc.Channel | None = None
        self._thread = threading.Thread(target=self._follow, name="spy", daemon=True)
        self._thread.start()

    def heard(self, most: int) -> list[Heard]:
        """Return what waits, the oldest first; it waits until it is :meth:`dropped <drop>`.

        A stream that was lost is given the time to open again before that is an error.

        Raises:
            PermalakeError: if nothing waits and the spy does not answer.
        """
        with self._changed:
            # Longer than an attempt takes, which says why it failed.
            longest = _CONNECT_SECONDS + _START_SECONDS
            self._changed.wait_for(lambda: self._is_open or self._heard or self._fault, longest)
            if not self._heard and not self._is_open:
                fault = self._fault or "no answer"
                raise PermalakeError(f"live.spy: {self.address}: {fault}; see whether the spy runs there")
            return [vaa for vaa, _ in zip(self._heard, range(most), strict=False)]

    def gaps(self) -> list[Gap]:
        """Return when nobody listened, in order."""
        with self._changed:
            return list(self._gaps)

    def drop(self, count: int) -> None:
        """Forget the oldest ones, which are kept elsewhere by now."""
        with self._changed:
            for _ in range(count):
                self._heard.popleft()
            self._changed.notify_all()

    def close(self) -> None:
        """End the stream and its thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            if self._channel is not None:
                self._channel.close()
        self._thread.join(_CONNECT_SECONDS)

    def _follow(self) -> None:
        failures = 0
        while not self._is_closed:
            failures += 1
            try:
                for raw in self._messages():
                    failures = 0
                    self._hear(raw)
                reason = "the spy ended the stream"
            except grpc.RpcError as error:
                reason = _reason(error)
            except ValueError as error:
                reason = str(error)
            with self._changed:
                self._fault, self._is_open = reason if failures else None, False
                self._changed.notify_all()
                pause = _PAUSES[min(failures, len(_PAUSES) - 1)]
                self._changed.wait_for(lambda: self._is_closed, pause)

    def _messages(self) -> Iterator[bytes]:
        with self._changed:
            if self._is_closed:
                return
            channel = self._channel = _channel(self.address)
        try:
            # Bytes go in and out as they are: the one message has one field.
            call = channel.unary_stream(SUBSCRIBE, request_serializer=bytes, response_deserializer=_vaa_bytes)
            stream = call(_EVERYTHING)
            grpc.channel_ready_future(channel).result(_CONNECT_SECONDS)
            self._opened()
            yield from stream
        except grpc.FutureTimeoutError:
            raise ValueError(f"no connection within {_CONNECT_SECONDS:g} s") from None
        finally:
            channel.close()

    def _opened(self) -> None:
        now = self._clock()
        with self._changed:
            if self._until is not None and int(now) > int(self._until):
                self._gaps.append((int(self._until), int(now)))
                _LOG.info("spy: nobody listened for %.0f s; its VAAs come with their day", now - self._until)
            self._until, self._is_open, self._fault = now, True, None
            self._changed.notify_all()

    def _hear(self, raw: bytes) -> None:
        with self._changed:
            self._until = self._clock()
            self._heard.append(Heard(raw, self._until))
            self._changed.notify_all()
            self._changed.wait_for(lambda: len(self._heard) < _MOST_WAITING or self._is_closed)


def _reason(error: grpc.RpcError) -> str:
    """Return gRPC's status and its details; the error's own text has several lines and begins with none."""
    if isinstance(error, grpc.Call):
        return f"{error.code().name}: {error.details()}"
    return line_of(error)


def _channel(address: str) -> grpc.Channel:
    if address.startswith("https://"):
        target = address.removeprefix("https://")
        return grpc.secure_channel(target, grpc.ssl_channel_credentials(), _OPTIONS)
    return grpc.insecure_channel(address, _OPTIONS)


def _vaa_bytes(message: bytes) -> bytes:
    """Return the field ``vaa_bytes`` of a SubscribeSignedVAAResponse; other fields are passed over.

    Raises:
        ValueError: if the message is none of protobuf.
    """
    vaa, at = b"", 0
    while at < len(message):
        tag, at = _varint(message, at)
        field, kind = tag >> 3, tag & 7
        if kind == 0:
            _, at = _varint(message, at)
            continue
        size, at = _varint(message, at) if kind == 2 else ({1: 8, 5: 4}.get(kind, -1), at)
        if size < 0 or at + size > len(message):
            raise ValueError("the spy sent a message that is none of its service")
        if field == _VAA_BYTES and kind == 2:
            vaa = message[at : at + size]
        at += size
    return vaa


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("the spy sent a message that is none of its service")
