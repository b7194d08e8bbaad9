"""The Accept header, weighed: one rule for every route that has more than one form."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from permalake.web.accept import preferred

JSON, HTML, RAW, CSV = "application/json", "text/html", "application/octet-stream", "text/csv"
FIREFOX = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


def asked(*accept: str) -> Request:
    headers = [(b"accept", text.encode("latin-1")) for text in accept]
    return Request({"type": "http", "headers": headers})


@pytest.mark.parametrize(
    ("accept", "offers", "chosen"),
    [
        ((), (JSON, RAW), JSON),
        (("",), (JSON, RAW), JSON),
        (("*/*",), (JSON, RAW), JSON),
        (("application/*",), (JSON, RAW), JSON),
        ((RAW,), (JSON, RAW), RAW),
        ((f"{RAW}, */*",), (JSON, RAW), RAW),
        ((f"{RAW};q=0.5, {JSON}",), (JSON, RAW), JSON),
        ((f"{JSON};q=0.5, {RAW};q=0.6",), (JSON, RAW), RAW),
        ((f"{JSON}, {RAW}",), (JSON, RAW), JSON),
        ((f"{RAW}, {JSON}",), (JSON, RAW), RAW),
        ((f"{RAW};q=0, */*",), (JSON, RAW), JSON),
        ((f"{JSON};q=0, */*",), (JSON, CSV), CSV),
        ((f"{JSON};q=0.1, {HTML}",), (HTML, JSON), HTML),
        ((f"{HTML};q=0.1, {JSON}",), (HTML, JSON), JSON),
        ((FIREFOX,), (JSON, HTML), HTML),
        ((FIREFOX,), (HTML, JSON), HTML),
        (("image/png",), (JSON, HTML), JSON),
        ((f"{JSON};q=0, {RAW};q=0",), (JSON, RAW), JSON),
        ((f"{CSV}; header=present ; Q=0.2", f"{RAW};q=0.3"), (JSON, CSV, RAW), RAW),
        ((f"{CSV};q=nan, {JSON};q=2",), (JSON, CSV), CSV),
        (("TEXT/HTML",), (JSON, HTML), HTML),
        ((",,;;q=,q=1,\xff/\xfe",), (JSON, HTML), JSON),
    ],
)
def test_the_heaviest_type_is_chosen(accept: tuple[str, ...], offers: tuple[str, ...], chosen: str) -> None:
    assert preferred(asked(*accept), offers) == chosen
