"""Places that others host: what they send is read within bounds."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest

from permalake.errors import PermalakeError
from permalake.transparency.copies import list_of
from permalake.transparency.places import open_place
from support.raw_server import RawServer, response

BOMB = gzip.compress(bytes(64 * 2**20))


@pytest.mark.parametrize(
    ("body", "encoding", "reason"),
    [
        (BOMB, "gzip", "more than 1048576 bytes"),
        (gzip.compress(gzip.compress(b"[]")), "gzip, gzip", "a coding that was not asked for"),
        (b"[]", "zstd", "a coding that was not asked for"),
        (gzip.compress(b"[]")[:-3], "gzip", "the answer broke off"),
        (bytes(2**20 + 1), "identity", "more than 1048576 bytes"),
    ],
    # The time in a gzip header would name the cases differently in each process.
    ids=["bomb", "twice", "unknown", "cut", "long"],
)
def test_a_small_answer_does_not_take_all_memory(body, encoding, reason) -> None:
    tracemalloc.start()
    with (
        RawServer(response(body, f"Content-Encoding: {encoding}")) as server,
        pytest.raises(PermalakeError, match=f"{server.url}/files.json cannot be read: .*{reason}"),
    ):
        open_place(server.url).read("files.json", 2**20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 2**20


def test_what_comes_with_a_redirection_is_not_read() -> None:
    moved = response(BOMB, "Content-Encoding: gzip", "Location: /there", status="302 Found")
    tracemalloc.start()
    with RawServer(moved, response(gzip.compress(b"[]"), "Content-Encoding: gzip")) as server:
        assert open_place(server.url).read("files.json") == b"[]"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 2**20
    assert [request.split()[1] for request in server.requests] == [b"/files.json", b"/there"]
    with RawServer(moved) as server, pytest.raises(PermalakeError, match="more than 3 redirections"):
        open_place(server.url).read("files.json")


def test_a_list_of_too_many_values_is_none() -> None:
    assert list_of(b"[" + b"{}," * 10_000_000 + b"{}]") is None
    assert list_of(b'[{"path": "a,b"}]') == [{"path": "a,b"}]
