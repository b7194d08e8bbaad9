"""An export as an answer: it holds one of few slots, and gives it back when its client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from threading import BoundedSemaphore

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from permalake.web.problems import ProblemError

SLOTS = BoundedSemaphore(2)
"""Exports that run at once: each keeps a connection of the pool."""


class ExportResponse(StreamingResponse):
    """Streams the chunks that ``open_chunks`` yields, each made in a thread.

    ``abandon`` interrupts the query below the chunks; it is called when the client has left. An error before
    the first chunk is raised, so that the answer is a problem document.
    """

    def __init__(
        self,
        open_chunks: Callable[[], Generator[bytes]],
        abandon: Callable[[], None],
        media_type: str,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__((), headers=headers, media_type=media_type)
        self._open_chunks = open_chunks
        self._abandon = abandon
        self._gone = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Answer; whatever happens, free the slot and the connection at once.

        Raises:
            ProblemError: 503 if all slots are taken.
        """
        if not SLOTS.acquire(blocking=False):
            raise ProblemError(503, "two exports are under way; try again", headers={"Retry-After": "10"})
        chunks = self._open_chunks()
        listener = asyncio.create_task(self._listen(receive))
        try:
            first = await run_in_threadpool(next, chunks, None)
            self.body_iterator = self._rest(first, chunks)
            await self.stream_response(send)
        except Exception:
            # The query of a client that has left ends with an interrupt, which nobody waits for.
            if not self._gone:
                raise
        finally:
            listener.cancel()
            try:
                await run_in_threadpool(chunks.close)
            finally:
                SLOTS.release()

    async def _rest(self, first: bytes | None, chunks: Generator[bytes]) -> AsyncIterator[bytes]:
        chunk = first
        while chunk is not None and not self._gone:
            yield chunk
            chunk = await run_in_threadpool(next, chunks, None)

    async def _listen(self, receive: Receive) -> None:
        await self.listen_for_disconnect(receive)
        self._gone = True
        self._abandon()
