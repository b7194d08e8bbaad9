"""Work that several requests do together."""

from __future__ import annotations

import asyncio

import pytest
from starlette.responses import Response

from permalake.web.batches import BatchedAnswer, Batches, alone


class Halves:
    """Halves even numbers, and keeps what each call was given."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def __call__(self, items: list[int]) -> list[int]:
        self.calls.append(list(items))
        if any(item % 2 for item in items):
            raise ValueError(f"odd: {items}")
        return [item // 2 for item in items]


def _answer(half: int) -> Response:
    if half > 100:
        raise OverflowError(half)
    return Response(str(half))


def _together(halves: Halves, items: list[int]) -> list[Response | BaseException]:
    async def ask() -> list[Response | BaseException]:
        batches = Batches()
        asked = (batches.answer(BatchedAnswer(halves, item, _answer)) for item in items)
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(ask())


def _bodies(answers: list[Response | BaseException]) -> list[bytes]:
    return [bytes(answer.body) if isinstance(answer, Response) else b"" for answer in answers]


def test_requests_of_one_turn_are_computed_in_one_call() -> None:
    halves = Halves()
    assert _bodies(_together(halves, [2, 8, 4])) == [b"1", b"4", b"2"]
    assert halves.calls == [[2, 8, 4]]


def test_another_turn_is_another_call() -> None:
    halves = Halves()

    async def ask() -> list[Response]:
        batches = Batches()
        return [await batches.answer(BatchedAnswer(halves, item, _answer)) for item in (2, 4)]

    assert _bodies([*asyncio.run(ask())]) == [b"1", b"2"]
    assert halves.calls == [[2], [4]]


def test_an_error_is_that_of_its_own_request() -> None:
    answers = _together(Halves(), [2, 3, 8, 400])
    assert _bodies(answers) == [b"1", b"", b"4", b""]
    assert isinstance(answers[1], ValueError)
    assert str(answers[1]) == "odd: [3]"
    assert isinstance(answers[3], OverflowError)


def test_a_client_that_left_is_not_answered() -> None:
    halves = Halves()

    async def ask() -> bytes:
        batches = Batches()
        gone = asyncio.create_task(batches.answer(BatchedAnswer(halves, 2, _answer)))
        stays = asyncio.create_task(batches.answer(BatchedAnswer(halves, 4, _answer)))
        await asyncio.sleep(0)
        gone.cancel()
        return bytes((await stays).body)

    assert asyncio.run(ask()) == b"2"


def test_alone_computes_what_is_batched() -> None:
    plain = Response("as it is")
    assert alone(plain) is plain
    assert alone(BatchedAnswer(Halves(), 6, _answer)).body == b"3"
    with pytest.raises(ValueError, match="odd"):
        alone(BatchedAnswer(Halves(), 7, _answer))
