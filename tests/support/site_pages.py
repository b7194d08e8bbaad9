"""The pages of ``permalake serve``, one of each kind, and what must hold for each in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from support import npm
from support.browser import Browser, Visit
from support.chromium_binary import HERE

WIDTHS = (1280, 360)
THEMES = ("light", "dark")
LARGEST = 150_000
_AXE = """
axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(one =>
  one.id + ': ' + one.nodes.map(node => node.target.join(' ')).slice(0, 3).join(', ')))
"""


def pages_of(address: str) -> dict[str, str]:
    """Return the path of a page of each kind."""
    cards = _json(address, "/")["cards"]
    networks = [card["network"] for card in cards]
    found = {"overview": "/", "operations": "/operations"}
    for name in networks:
        found[f"quality-{name}"] = f"/quality?network={name}"
        if name != "wormhole":
            found |= {f"network-{name}": f"/{name}"} | _explorer(address, name)
    if "wormhole" in networks:
        flows = _json(address, "/wormhole")
        found |= {"flows": "/wormhole", "message": f"/wormhole/vaa/{flows['recent'][0]['id']}"}
        if flows["tokens"]:
            token = flows["tokens"][0]
            found["token"] = f"/wormhole/token/{token['chain_id']}/{token['address']}"
            found["chain"] = f"/wormhole/chain/{flows['corridors'][0]['source_id']}"
            found["application"] = "/wormhole/application/PORTAL_TOKEN_BRIDGE"
            found["search"] = f"/wormhole?q={token['chain_id']}:{token['address']}"
    return found


def _json(address: str, path: str) -> Any:
    answer = httpx.get(address + path, headers={"Accept": "application/json"}, timeout=60)
    assert answer.status_code == 200, (path, answer.text)
    return answer.json()


def _explorer(address: str, network: str) -> dict[str, str]:
    """Return a milestone that changes the ledger, and a page of each kind that it leads to."""
    base = f"/{network}/explore"
    newest = _json(address, f"/api/analytics/v1/{network}/ms_analytics?pageSize=1000")["items"]
    index = next(row["milestone_index"] for row in newest if row["transaction_count"])
    milestone = _json(address, f"{base}/milestone/{index}")["found"]
    included = next(one for one in milestone["messages"] if one["state"] == "included")
    output = _json(address, f"{base}/output/{milestone['created'][0]}")["found"]
    owner = next(word for one in output["conditions"] for word in one.split() if len(word) > 40)
    paths = {
        "explore": "",
        "milestone": f"/milestone/{index}",
        "message": f"/message/{included['id']}",
        "output": f"/output/{output['id']}",
        "address": f"/address/{owner}",
        "transaction": f"/transaction/{output['transaction_id']}",
        "day": f"/day/{milestone['time'][:10]}",
    }
    for kind in ("alias", "nft", "foundry"):
        index_of = f"{address}/{network}/api/indexer/v1/outputs/{kind}?state=all&pageSize=1"
        answer = httpx.get(index_of, timeout=60)
        if answer.status_code == 200 and answer.json()["items"]:  # Chrysalis has none
            state = answer.json()["items"][0].removeprefix("0x")
            paths[kind] = f"/{kind}/{_json(address, f'{base}/output/{state}')['found']['chain']}"
    return {f"{kind}-{network}": base + path for kind, path in paths.items()}


def faults(browser: Browser, visit: Visit, address: str, width: int) -> list[str]:
    """Return what is wrong with the page that is shown."""
    found = [f"console: {line}" for line in visit.console]
    found += [f"asks {url}" for url in visit.requests if not url.startswith((address, "data:"))]
    if browser.evaluate("document.documentElement.scrollWidth") > width:
        found.append("wider than its window")
    return found + [f"axe: {one}" for one in violations(browser)]


def violations(browser: Browser) -> list[str]:
    """Return what axe-core finds: rule, and the elements that break it."""
    if not browser.evaluate("typeof axe !== 'undefined'"):
        source = npm.install(HERE) / "axe-core" / "axe.min.js"
        browser.evaluate(source.read_text("utf-8") + "\n;true")
    return list(browser.evaluate(_AXE))


def is_too_large(address: str, path: str) -> bool:
    """Whether the page itself, not compressed, has more bytes than a page may have."""
    return len(httpx.get(address + path, headers={"Accept": "text/html"}, timeout=60).content) > LARGEST


def tall(browser: Browser, most: int) -> int:
    """Return the height of the page, at most ``most``."""
    return min(int(browser.evaluate("document.documentElement.scrollHeight")), most)


def screenshot(browser: Browser, file: Path, *, width: int, theme: str, most: int) -> None:
    """Take a picture of the page as far as ``most`` pixels down."""
    browser.look(width=width, theme=theme, height=tall(browser, most))
    browser.screenshot(file)
    browser.look(width=width, theme=theme)
