"""Pages in a headless Chromium: time to answer, bytes, requests and first paint, over two lakes.

One is the demo's, the lake that is configured; ``make demo`` builds it, and without it the other is measured
alone. That has a year of daily figures of three networks (:mod:`bench.year_lake`) and no blocks. Each page is
opened once to warm up, then :data:`VISITS` times at 1280 px with an empty browser cache; the fastest visit
counts, for what else the machine does only adds. ``processor_ms`` is the processor time of server and client
alone. ``page_bytes`` are those of the page, not compressed, ``received_bytes`` those of all requests.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from bench import year_lake
from bench.machine import say
from permalake.api.app import create_app
from permalake.config import Settings, load_settings
from permalake.lake.serving import has_lake
from support.browser import Browser, browser
from support.live_api import live_api
from support.site_pages import LARGEST, pages_of

VISITS = 7
TARGET_MS = 100
"""What a page may take, warm from the lake."""
HTML = {"Accept": "text/html"}
OF_A_YEAR = {
    "overview": "/",
    "network-shimmer": "/shimmer",
    "network-iota": "/iota",
    "flows": "/wormhole",
    "quality-shimmer": "/quality?network=shimmer",
    "operations": "/operations",
}


def run() -> list[dict]:
    """Return the figures of every page, and of the slowest and the largest one of each lake."""
    settings = load_settings(None)
    figures = []
    with browser() as page, tempfile.TemporaryDirectory() as folder:
        page.look(width=1280, theme="light")
        if has_lake(settings):
            figures += _measured(page, settings, "demo", None)
        say("  a lake with a year of three networks …")
        year = year_lake.settings_of(Path(folder))
        year_lake.write(year)
        figures += _measured(page, year, "year", OF_A_YEAR)
    return figures


def _measured(page: Browser, settings: Settings, lake: str, paths: Mapping[str, str] | None) -> list[dict]:
    with live_api(create_app(settings)) as address:
        found = [
            _page(page, f"{lake}: {name}", address + path)
            for name, path in (paths or pages_of(address)).items()
        ]
    slowest = max(found, key=lambda one: one["ours"])
    largest = max(found, key=lambda one: one["page_bytes"])
    return [
        _worst("slowest", slowest, slowest["ours"], TARGET_MS, "ms"),
        _worst("largest", largest, largest["page_bytes"], LARGEST, "bytes"),
        *found,
    ]


def _worst(word: str, page: Mapping[str, Any], ours: float, target: float, unit: str) -> dict[str, Any]:
    lake, _, name = page["name"].partition(": ")
    return {
        "name": f"{lake}: the {word} page, {name}",
        "ours": ours,
        "unit": f"{unit} (less is better)",
        "peer": target,
        "peer_name": "the target",
        "ratio": float(f"{target / ours:.3g}"),
    }


def _page(browser_page: Browser, name: str, url: str) -> dict[str, Any]:
    browser_page.visit(url)
    visits = []
    for _ in range(VISITS):
        browser_page.call("Network.clearBrowserCache")
        visits.append(browser_page.visit(url))
    seconds, processor = [], []
    with httpx.Client(headers=HTML, timeout=60) as client:
        text = client.get(url)
        for _ in range(VISITS):
            began, used = time.perf_counter(), time.process_time()
            text = client.get(url)
            seconds.append(time.perf_counter() - began)
            processor.append(time.process_time() - used)
    last = visits[-1]
    return {
        "name": name,
        "ours": round(1000 * min(seconds), 1),
        "unit": "ms",
        "processor_ms": round(1000 * min(processor), 1),
        "page_bytes": len(text.content),
        "received_bytes": last.received,
        "requests": sum(not url.startswith("data:") for url in last.requests),
        "first_paint_ms": round(min(visit.first_paint or 0 for visit in visits)),
    }
