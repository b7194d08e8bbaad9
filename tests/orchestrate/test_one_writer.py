"""Writing requests of one server to one sqlite file, in the two shapes that Airflow's have."""

import asyncio
import sqlite3
import threading

import httpx
from fastapi import Depends, FastAPI

from permalake.orchestrate.metadata_locks import OneWriter

PATIENCE = 2.0


def server(file, written: threading.Event, asked: threading.Event) -> FastAPI:
    """``/heartbeat`` writes in a thread and commits with the loop's help; ``/mark`` writes on the loop."""
    app = FastAPI()

    def connection():
        opened = sqlite3.connect(file, timeout=PATIENCE, check_same_thread=False)
        yield opened
        opened.commit()
        opened.close()

    @app.put("/heartbeat")
    def heartbeat(opened=Depends(connection, scope="function")):  # noqa: B008 the way of FastAPI
        opened.execute("INSERT INTO run VALUES ('heartbeat')")
        written.set()
        asked.wait(PATIENCE / 4)

    @app.patch("/mark")
    async def mark(opened=Depends(connection, scope="function")):  # noqa: B008
        asked.set()
        opened.execute("INSERT INTO run VALUES ('mark')")

    @app.get("/health")
    async def health():
        return written.is_set()

    return app


async def both(app, written: threading.Event) -> tuple[int, int, bool]:
    """A mark while a heartbeat has written and not committed, and whether a reader was served meanwhile."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://airflow") as client:
        beat = asyncio.create_task(client.put("/heartbeat"))
        await asyncio.to_thread(written.wait)
        read = (await client.get("/health")).json()
        marked = await client.patch("/mark")
        return (await beat).status_code, marked.status_code, read


def requests(file, wrap) -> tuple[int, int, bool]:
    written, asked = threading.Event(), threading.Event()
    return asyncio.run(both(wrap(server(file, written, asked)), written))


def test_writers_take_turns_and_readers_do_not_wait(metadata_file) -> None:
    assert requests(metadata_file, OneWriter) == (200, 200, True)
    with sqlite3.connect(metadata_file) as reader:
        assert reader.execute("SELECT id FROM run").fetchall() == [("heartbeat",), ("mark",)]


def test_without_turns_the_loop_waits_for_a_request_that_waits_for_the_loop(metadata_file) -> None:
    assert requests(metadata_file, lambda app: app) == (200, 500, True)
