"""A guardian's spy on this machine: it streams the VAAs that it is given to who listens, and keeps none."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc

from permalake.wormhole.sources.spy import SUBSCRIBE

_END = object()


class SpyServer:
    """``say`` streams VAAs to every listener; ``reset`` breaks all streams, ``stop`` ends the server."""

    def __init__(self, port=0):
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._listeners = []
        self.subscriptions = 0
        method = grpc.unary_stream_rpc_method_handler(self._subscribe)
        service, name = SUBSCRIBE.strip("/").split("/")
        self._server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {name: method})])
        self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self._server.start()
        self.address = f"127.0.0.1:{self.port}"

    def _subscribe(self, request, context):
        assert request == b"", "everything is asked for"
        mine = queue.SimpleQueue()
        with self._changed:
            self._listeners.append(mine)
            self.subscriptions += 1
            self._changed.notify_all()
        context.add_callback(lambda: mine.put(_END))
        context.send_initial_metadata(())
        while (one := mine.get()) is not _END:
            if one is None:
                context.abort(grpc.StatusCode.UNAVAILABLE, "reset")
            yield response(one)

    def wait(self, subscriptions) -> None:
        """Wait until so many have ever been made."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.subscriptions >= subscriptions, 60)

    def say(self, vaas) -> None:
        with self._lock:
            for raw in vaas:
                for listener in self._listeners:
                    listener.put(raw)

    def reset(self) -> None:
        """Break every stream, after what was said."""
        with self._lock:
            for listener in self._listeners:
                listener.put(None)
            self._listeners.clear()

    def stop(self) -> None:
        with self._lock:
            for listener in self._listeners:
                listener.put(_END)
        self._server.stop(0).wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def response(raw):
    """A SubscribeSignedVAAResponse, with a field that its readers do not know."""
    return b"\x18\x05" + b"\x0a" + _varint(len(raw)) + raw


def _varint(value):
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
