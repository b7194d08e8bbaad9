"""``make site-tour``: the pages of ``permalake serve`` in a real browser, in both themes, narrow and wide.

Fails for a message on the console, a request to another host, a page wider than its window, or one of more
than 150 kB. Needs Chromium and its driver (Debian: apt-get install chromium chromium-driver), and the lake
of ``make demo``; ``--folder DIR`` takes the screenshots elsewhere.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import httpx
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from permalake.api.app import create_app
from permalake.config import load_settings
from permalake.paths import ROOT
from support.live_api import live_api

SHOTS = ROOT / "docs" / "tour"
WIDTHS = (1280, 360)
THEMES = ("light", "dark")
LARGEST = 150_000
TALLEST = 2600
KEPT = {("flows", 1280, "light"): "13-flows", ("overview", 1280, "light"): "14-overview"}
"""Screenshots that belong into the documentation."""


def opened() -> webdriver.Chrome:
    """Return a browser that logs its console and its requests."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def pages_of(address: str) -> dict[str, str]:
    """Return a page of each kind."""
    overview = httpx.get(f"{address}/?format=json").json()
    networks = [card["network"] for card in overview["cards"]]
    found = {"overview": "/", **{f"network-{name}": f"/{name}" for name in networks if name != "wormhole"}}
    for name in networks:
        if name != "wormhole":
            found |= explorer_pages(address, name)
    if "wormhole" in networks:
        flows = httpx.get(f"{address}/wormhole?format=json").json()
        found |= {"flows": "/wormhole", "message": f"/wormhole/vaa/{flows['recent'][0]['id']}"}
        token = flows["tokens"][0]
        found["search"] = f"/wormhole?q={token['chain_id']}:{token['address']}"
    return found


def explorer_pages(address: str, network: str) -> dict[str, str]:
    """Return a milestone, and a message and an output of it."""
    analytics = httpx.get(f"{address}/api/analytics/v1/{network}/ms_analytics?pageSize=1").json()
    base = f"/{network}/explore"
    index = analytics["items"][0]["milestone_index"]
    milestone = httpx.get(f"{address}{base}/milestone/{index}?format=json").json()["found"]
    found = {
        f"milestone-{network}": f"{base}/milestone/{index}",
        f"block-{network}": f"{base}/message/{milestone['messages'][0]['id']}",
    }
    for output_id in milestone["created"][:1]:
        found[f"output-{network}"] = f"{base}/output/{output_id}"
    return found


def size(browser: webdriver.Chrome, width: int, height: int) -> None:
    """Set the window."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def faults(browser: webdriver.Chrome, address: str, path: str, width: int) -> list[str]:
    """Return what is wrong with the page that is shown."""
    found = [entry["message"] for entry in browser.get_log("browser")]
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if not url.startswith((address, "data:")):
                found.append(f"asks {url}")
    if browser.execute_script("return document.documentElement.scrollWidth") > width:
        found.append("wider than its window")
    if len(httpx.get(address + path).content) > LARGEST:
        found.append("too large")
    return found


def visit(browser: webdriver.Chrome, address: str, folder: Path) -> int:
    """Visit every page; return the number of faults."""
    count = 0
    for theme in THEMES:
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        for width in WIDTHS:
            for name, path in pages_of(address).items():
                size(browser, width, 900)
                browser.get(address + path)
                wrong = faults(browser, address, path, width)
                count += len(wrong)
                height = browser.execute_script("return document.documentElement.scrollHeight")
                size(browser, width, min(height, 1100 if (name, width, theme) in KEPT else TALLEST))
                kept = KEPT.get((name, width, theme), f"{name}-{width}-{theme}")
                if folder != SHOTS or (name, width, theme) in KEPT:
                    browser.save_screenshot(str(folder / f"{kept}.png"))
                sys.stdout.write(f"{name} {width} {theme}: {'; '.join(wrong) or 'fine'}\n")
    return count


def main() -> int:
    """Visit the pages over the configured lake."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=SHOTS)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with live_api(create_app(load_settings(None))) as address:
        browser = opened()
        try:
            return 1 if visit(browser, address, folder) else 0
        finally:
            browser.quit()


if __name__ == "__main__":
    sys.exit(main())
