"""Work that several requests do together: a decoder of columns takes as long for one row as for ten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.responses import Response

Compute = Callable[[Sequence[Any]], Sequence[Any]]
"""Returns a result for each item, in order. It only reads."""


@dataclass(frozen=True)
class BatchedAnswer:
    """An answer that rests on the result of ``compute`` for ``item``, which may be computed with others."""

    compute: Compute
    item: Any
    answer: Callable[[Any], Response]

    def alone(self) -> Response:
        """Return the answer, computed by itself."""
        return self.answer(self.compute([self.item])[0])


def alone(answer: Response | BatchedAnswer) -> Response:
    """Return an answer, computed by itself where it is a batched one."""
    return answer.alone() if isinstance(answer, BatchedAnswer) else answer


class Batches:
    """Computes together what requests ask for in one turn of the event loop."""

    def __init__(self) -> None:
        self._waiting: dict[Compute, list[tuple[BatchedAnswer, asyncio.Future[Response]]]] = {}

    async def answer(self, batched: BatchedAnswer) -> Response:
        """Return an answer; an error of one item is that of its own request alone."""
        loop = asyncio.get_running_loop()
        if batched.compute not in self._waiting:
            self._waiting[batched.compute] = []
            loop.call_soon(self._compute, batched.compute)
        future: asyncio.Future[Response] = loop.create_future()
        self._waiting[batched.compute].append((batched, future))
        return await future

    def _compute(self, compute: Compute) -> None:
        waiting = [(batched, future) for batched, future in self._waiting.pop(compute) if not future.done()]
        try:
            results = compute([batched.item for batched, _ in waiting])
            answers: list[Callable[[], Response]] = [
                partial(batched.answer, result) for (batched, _), result in zip(waiting, results, strict=True)
            ]
        except Exception:  # noqa: BLE001 - each is computed again, and the error is raised where it belongs
            answers = [batched.alone for batched, _ in waiting]
        for (_, future), answer in zip(waiting, answers, strict=True):
            try:
                future.set_result(answer())
            except Exception as error:  # noqa: BLE001 - raised in the request
                future.set_exception(error)
